"""A real Prometheus scrapes a real gateway with our example of a configuration: it reads every line, and the rules and
the dashboard's queries find what they ask for."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.observe.metrics.catalog import CATALOG
from isthmus.testing import ScriptedUpstream, chat
from observe.metrics.test_deploy import panels
from one_provider import one_provider
from real.prometheus.conftest import ROOT, Promtool
from waiting import until
from watched import scrape_until

pytestmark = pytest.mark.real

_AUTHORIZATION = "    authorization:\n      credentials_file: "
ASKED: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": "hi"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
}
KEYS = '[metrics]\nkey = "sk-watch"\n'


@contextmanager
def running(program: str, folder: Path, gateway: str) -> Iterator[Prometheus]:
    """With the example from `deploy/`, changed as its words say: an address, a key in a file, a quicker pace."""
    (folder / "isthmus.key").write_text("sk-watch\n")
    shutil.copy(ROOT / "deploy/prometheus/alerts.yml", folder)
    example = (ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8")
    mine = example.replace("127.0.0.1:8484", gateway.removeprefix("http://")).replace("15s", "1s")
    mine = mine.replace("    # authorization:\n    #   credentials_file: /etc/prometheus/", _AUTHORIZATION)
    (folder / "prometheus.yml").write_text(mine)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}", folder / "log")
    finally:
        process.terminate()
        process.wait(30)


class Prometheus:
    def __init__(self, url: str, log: Path) -> None:
        self._url = url
        self._log = log

    def get(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self._url}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def ask(self, query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/api/v1/query", query=query)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self.get("/api/v1/rules")["groups"] for rule in group["rules"]]

    def scraped(self) -> dict[str, Any] | None:
        """The gateway as a target, once it was asked."""
        try:
            targets = self.get("/api/v1/targets")["activeTargets"]
        except OSError:  # it is not up yet
            return None
        return next((each for each in targets if each["lastScrape"][:4] != "0001"), None)


def test_it_reads_every_line_and_finds_what_is_asked_for(prometheus: str, tmp_path: Path) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream, one_provider(upstream, KEYS) as (talk, server):
        for path, body in ASKED.items():
            assert talk.post(path, {"model": "main/some-model", **body}).status == 200
        with running(prometheus, tmp_path, server.url) as watching:
            target = until(watching.scraped, lambda: (tmp_path / "log").read_text())
            assert target is not None
            assert (target["health"], target["lastError"]) == ("up", "")
            until(lambda: watching.ask('isthmus_requests_total{status="completed"}'))
            found = watching.ask("sum by (door) (isthmus_requests_total)")
            assert {each["metric"]["door"]: each["value"][1] for each in found} == {"responses": "1", "chat": "1"}
            names = set(watching.get("/api/v1/label/__name__/values"))
            assert {"isthmus_overhead_seconds_bucket", "isthmus_tokens_total", "process_resident_memory_bytes"} <= names
            kinds = watching.get("/api/v1/metadata")
            for name in ("isthmus_requests_total", "isthmus_overhead_seconds", "isthmus_open_streams"):
                told = kinds.get(name) or kinds[name.removesuffix("_total")]  # OpenMetrics names counters so
                assert (told[0]["type"], told[0]["help"]) == (CATALOG[name].kind, CATALOG[name].help)
            assert len(watching.rules()) == 19
            until(lambda: {rule["health"] for rule in watching.rules()} == {"ok"})
            for panel in panels():
                for each in panel["targets"]:
                    query = each["expr"].replace("$__rate_interval", "1m")
                    for name in ("instance", "provider", "model", "job"):
                        query = query.replace(f'"${name}"', '".*"')
                    watching.ask(query)  # raises where it cannot be carried out


def test_promtool_finds_no_fault_with_the_metrics(promtool: Promtool) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream, one_provider(upstream) as (talk, _):
        assert talk.post("/v1/responses", {"input": "hi"}).status == 200
        scrape_until(talk, lambda found: found["isthmus_requests_total"] == 1)
        text = talk.get("/metrics").body
    promtool("check", "metrics", given=text)
