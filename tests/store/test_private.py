"""What lies on disk is for the user who runs the gateway, however generous that user's umask is."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from doc_pages import ROOT, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files there have no such modes")


def test_what_is_made_on_disk_is_its_owners_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = ["isthmus", "serve", "--port", "0", "--store", f"sqlite:{data / 'isthmus.db'}"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        umask=0,
    )
    with process:
        assert process.stderr is not None
        try:
            address = next(iter(process.stderr)).split()[-1]
            body = json.dumps({"input": "hello", "model": "demo"}).encode()
            asked = urllib.request.Request(f"{address}/v1/responses", body, {"content-type": "application/json"})
            with urllib.request.urlopen(asked, timeout=60) as answer:
                assert json.load(answer)["status"] == "completed"
            files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()}
        finally:
            process.terminate()
            process.stderr.read()
    assert {"isthmus.db", "isthmus.db.key"} <= set(files)
    assert set(files.values()) == {0o600}, files
