"""The guide to watching shows configurations that are whole, numbers that a gateway tells, and names that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_pages import ROOT
from isthmus.config import load_config
from isthmus.observe.metrics.catalog import CATALOG
from isthmus.observe.otel import names
from serving import running_gateway_server
from talking import Talk
from watched import scrape_until

PAGE = (ROOT / "docs" / "guides" / "watch.md").read_text(encoding="utf-8")
TABLE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", blocks("toml"))
def test_its_configurations_are_whole(text: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-watch")
    file = tmp_path / "isthmus.toml"
    file.write_text(text.replace("/run/secrets/isthmus-metrics", str(tmp_path / "key")))
    file.chmod(0o600)
    reading = load_config(file, environ={"HOME": str(tmp_path)})
    assert reading.warnings == ()
    assert reading.config.otel.enabled or reading.config.metrics.key == "sk-watch"


def test_every_metric_that_it_names_is_told_and_in_the_table() -> None:
    named = set(re.findall(r"`(isthmus_\w+)`", PAGE))
    assert len(named) > 15
    assert named <= set(CATALOG)
    assert all(f"| `{name}` |" in TABLE for name in CATALOG)


def test_every_label_is_explained() -> None:
    for metric in CATALOG.values():
        for label in metric.labels:
            assert f"| `{label}` |" in TABLE


def test_the_names_of_opentelemetry_are_those_that_are_sent() -> None:
    known = {value for value in vars(names).values() if isinstance(value, str)}
    assert set(re.findall(r"`((?:gen_ai|isthmus)\.[\w.]+)`", PAGE)) <= known
    assert f"conventions {names.VERSION}" in PAGE


def test_what_it_shows_is_what_a_gateway_tells() -> None:
    (console,) = blocks("console")
    shown = [line for line in console.splitlines() if not line.startswith("$")]
    with running_gateway_server('[server]\nport = 0\n[store]\nurl = "memory:"\n') as gateway:
        talk = Talk(gateway.url)
        assert talk.post("/v1/responses", {"model": "demo/demo", "input": "hi"}).status == 200
        scrape_until(talk, lambda found: found["isthmus_http_requests_total"] == 1)
        told = talk.get("/metrics").body.decode().splitlines()
    assert [line for line in told if "requests_total" in line] == shown
