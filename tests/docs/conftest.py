"""One gateway for all pages: `isthmus serve` as a process, the way `make run` starts it, on a free port."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest

from doc_pages import ROOT, Gateway, environment


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    home = tmp_path_factory.mktemp("newcomer")
    command = ["isthmus", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(home), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines: list[str] = []
            for line in process.stderr:
                lines.append(line)
                if "the built-in demo model answers" in line:
                    break
            else:
                raise RuntimeError(f"the gateway did not start:\n{''.join(lines)}")
            # Somebody must go on reading: a full pipe would stop the server.
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            yield Gateway(lines[0].split()[-1], home, "".join(lines))
        finally:
            process.terminate()
            process.wait(60)
        reader.join(60)
