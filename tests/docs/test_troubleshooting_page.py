"""The page for when something is wrong quotes what really comes, and names codes that there are."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

from doc_pages import ROOT, environment
from isthmus.errors import FAILURES
from isthmus.testing import ScriptedUpstream, error
from serving import running_gateway_server
from talking import Reply, Talk

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
KEY = "sk-troubled-0123456789"
REFUSALS = {"unknown_provider"}
"""Codes of a plain 400, which stand in no table."""


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line[:2] == "| "]


def quoted(text: str) -> bool:
    """Whether the page has it in the first cell of a row."""
    return any(text in row[0] for row in rows())


def code(reply: Reply) -> tuple[int, str]:
    return reply.status, str(reply.json["error"]["code"])


def test_every_symptom_has_a_reason_and_something_to_do() -> None:
    found = [row for row in rows() if row[0] != "symptom"]
    assert len(found) > 25
    assert all(len(row) == 3 and all(row) for row in found)


def test_its_codes_are_those_of_the_table_of_errors() -> None:
    named = {word for row in rows() for word in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", row[0])}
    assert {"missing_api_key", "upstream_resting", "model_not_found"} <= named
    assert named - set(FAILURES) - REFUSALS == {"apply_patch"}, "a tool of Codex, no code"
    for status, named_code in re.findall(r"^\| (\d{3}) `(\w+)`", PAGE, re.MULTILINE):
        assert FAILURES[named_code].status == int(status), named_code


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = ["isthmus", "serve", "--port", str(port)]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=200
        )
        assert ran.returncode != 0
        assert quoted(f"cannot listen on 127.0.0.1:{port}: Address already in use".replace(str(port), "8484"))
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in ran.stderr
        # What the page advises reaches it.
        ran = subprocess.run(
            ["isthmus", "config", "print"],
            cwd=tmp_path,
            env={**environment(tmp_path), "ISTHMUS_PORT": "8585"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "ISTHMUS_PORT=8585 make run" in PAGE
        assert "port = 8585" in ran.stdout


def test_the_two_keys(tmp_path: Path) -> None:
    with ScriptedUpstream.running(default=error(401, "no such key"), strict=False) as upstream:
        toml = (
            f'[server]\nport = 0\napi_keys = ["{KEY}"]\n[store]\nurl = "sqlite:{tmp_path / "t.db"}"\n'
            f'[providers.main]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\napi_key = "sk-wrong"\n'
        )
        asked = {"model": "main/m", "input": "hi"}
        with running_gateway_server(toml) as running:
            talk = Talk(running.url)
            assert code(talk.post("/v1/responses", asked)) == (401, "missing_api_key")
            assert code(talk.post("/v1/responses", asked, {"authorization": "Bearer sk-other"})) == (
                401,
                "invalid_api_key",
            )
            refused = talk.post("/v1/responses", asked, {"authorization": f"Bearer {KEY}"})
            assert code(refused) == (403, "upstream_unauthorized")
            assert "refused our credentials" in refused.json["error"]["message"]
    assert quoted('403 `upstream_unauthorized`, "refused our credentials"')


def test_a_wrong_path_and_a_foreign_page(tmp_path: Path) -> None:
    toml = f'[server]\nport = 0\n[store]\nurl = "sqlite:{tmp_path / "t.db"}"\n[providers.demo]\nuses = "demo"\n'
    with running_gateway_server(toml) as running:
        talk = Talk(running.url)
        lost = talk.post("/v2/responses", {"input": "hi"})
        assert lost.status == 404
        assert lost.json["error"]["message"].startswith("there is nothing at `/v2/responses`; you probably mean")
        foreign = talk.post("/v1/responses", {"input": "hi"}, {"origin": "https://page.example"})
        assert code(foreign) == (403, "foreign_origin")
    assert quoted("there is nothing at `/v2/responses`")
    assert quoted("403 `foreign_origin`")
