"""Traces of what is no answer of a chat model: images, Codex's search, vectors, and models behind the Codex program;
and whose traces somebody sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from codex_program import install
from flowing import Flow, running_flow
from isthmus.cli.commands import app
from isthmus.testing import chat, reply
from serving import running_gateway_server
from talking import Talk
from tracing import TRACES, request_id, trace_of, traces, words
from waiting import until
from watched import scrape_until

Json = dict[str, Any]
PROMPT, QUERY, TEXT = "a-fox-in-the-snow", "where-otters-sleep", "words-to-be-measured"
SECTIONS = '[images]\nprovider = "demo"\n[search]\nbackend = "demo"\n'
FULL = '[trace]\ncapture = "full"\n'
VECTORS = {"data": [{"embedding": [0.123456789] * 64, "index": 0}], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
SEARCH: Json = {"id": "thread_1", "model": "m", "commands": {"search_query": [{"q": QUERY}]}}
PAINT: Json = {"prompt": PROMPT, "size": "1792x1024", "colour": "blue"}
EMBED: Json = {"model": "full/text-embedding-3-small", "input": TEXT, "colour": "blue"}
ASKED: dict[str, tuple[str, Json, str]] = {
    "images": ("/v1/images/generations", PAINT, PROMPT),
    "search": ("/v1/alpha/search", SEARCH, QUERY),
    "embeddings": ("/v1/embeddings", EMBED, TEXT),
}


def ask(flow: Flow, door: str, **more: Any) -> tuple[Json, Json]:
    """The trace, and what its client was told."""
    path, body, _ = ASKED[door]
    if door == "embeddings":
        flow.script(reply(VECTORS))
    answer = flow.post(path, {**body, **more})
    assert answer.status == 200, answer.body
    return trace_of(flow, request_id(answer)), answer.json


@pytest.mark.parametrize("door", ASKED)
def test_each_has_a_trace_of_its_own_door_without_a_word_of_it(tmp_path: Path, door: str) -> None:
    with running_flow(tmp_path, extra=SECTIONS) as flow:
        trace, told = ask(flow, door)
        summary = trace["summary"]
        assert (summary["door"], summary["path"], summary["status"]) == (door, ASKED[door][0], 200)
        assert summary["bytes"] > 0
        assert [each["id"] for each in traces(flow, f"door={door}")] == [summary["id"]]
        said = words(trace)
        assert ASKED[door][2] not in said
        if door == "images":
            assert told["data"][0]["b64_json"][:60] not in said
        if door != "search":
            assert summary["outcome"] == "completed"
            assert {"colour"} <= {each["path"] for each in trace["decisions"] if each["action"] == "ignored"}
            assert trace["calls"][0]["body"]["bytes"] > 0
            assert summary["provider"]
            explain = ["explain", summary["response"], "--json", "--gateway", flow.server.url]
            done = CliRunner().invoke(app, explain, env={"HOME": str(tmp_path)})
            assert done.exit_code == 0, done.output
            assert json.loads(done.stdout)["diagnostics"] == trace["diagnostics"]
        numbers = scrape_until(flow, lambda found: found["isthmus_http_requests_total", {"door": door}] == 1)
        assert numbers["isthmus_http_requests_total"] >= 1


@pytest.mark.parametrize("door", ASKED)
def test_where_all_is_captured_it_is_bounded(tmp_path: Path, door: str) -> None:
    with running_flow(tmp_path, extra=f"{SECTIONS}{FULL}max_content = 4000\n") as flow:
        trace, told = ask(flow, door)
        assert trace["request"]["content"] == ASKED[door][1]
        if door == "images":
            assert told["data"][0]["b64_json"][:60] not in words(trace)
        larger, _ = ask(flow, door, prompt=PROMPT * 900, input=TEXT * 900, padding="x" * 9000)
        assert "max_content" in larger["request"]["cut"]
        assert len(json.dumps(larger)) < 20_000


def test_a_model_behind_the_codex_program_leaves_a_trace(tmp_path: Path) -> None:
    install(tmp_path)
    toml = f"""
store.url = "sqlite:{tmp_path / "x.db"}"
server.port = 0
models.demo = false
log.level = "error"
providers.codex.uses = "codex"
providers.codex.codex.binary = "{tmp_path / "codex"}"
trace.capture = "full"
"""
    with running_gateway_server(toml) as gateway:
        talk = Talk(gateway.url)
        answer = talk.post("/v1/responses", {"model": "codex/gpt-5.5", "input": "say-hello-to-me", "temperature": 0.3})
        assert answer.status == 200, answer.body
        id = request_id(answer)
        until(lambda: talk.get(f"{TRACES}/{id}").status == 200)
        trace = talk.get(f"{TRACES}/{id}").json
        page = talk.request("GET", f"/ui/requests/{id}", headers={"accept": "text/html"})
        numbers = scrape_until(talk, lambda found: found["isthmus_requests_total", {"provider": "codex"}] == 1)
    summary = trace["summary"]
    assert (summary["provider"], summary["model"], summary["outcome"]) == ("codex", "gpt-5.5", "completed")
    assert "temperature" in {each["path"] for each in trace["decisions"] if each["action"] == "ignored"}
    (call,) = trace["calls"]
    assert call["body"]["bytes"] > 0
    assert "say-hello-to-me" in words(call)
    assert trace["answer"]["content"]["id"] == summary["response"] == answer.json["id"]
    assert summary["first_token"] > 0
    assert (page.status, b"codex" in page.body) == (200, True)
    assert numbers["isthmus_attempts_total", {"provider": "codex"}] == 1


# ── whose they are ───────────────────────────────────────────────────────────────────────────────────────────────────

ADMIN, ANNS, BOBS = "admin-key-1234567890", "anns-key-1234567890", "bobs-key-1234567890"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_key_sees_the_traces_of_its_owner_and_the_operator_all_of_them(tmp_path: Path) -> None:
    server = f'[server]\napi_keys = ["{ANNS}", "{BOBS}"]\nadmin_key = "{ADMIN}"\n'
    with running_flow(tmp_path, extra=server) as flow:
        flow.script(chat("ok"), chat("ok"))
        body = {"model": "plain/m", "input": "hi"}
        anns = request_id(flow.request("POST", "/v1/responses", body, bearer(ANNS)))
        bobs = request_id(flow.request("POST", "/v1/responses", body, bearer(BOBS)))
        refused = request_id(flow.request("POST", "/v1/responses", body, bearer("wrong-key-1234567890")))
        for id in (anns, bobs, refused):
            trace_of(flow, id, bearer(ADMIN))
        assert {each["id"] for each in traces(flow, "", bearer(ADMIN))} >= {anns, bobs, refused}
        for key in (ANNS, BOBS):
            seen = {each["id"] for each in traces(flow, "", bearer(key))}
            assert {anns, bobs} <= seen
            assert refused not in seen
            assert flow.request("GET", f"{TRACES}/{refused}", None, bearer(key)).status == 404
            assert flow.request("POST", f"{TRACES}/capture", {"seconds": 60}, bearer(key)).status in (401, 403)
        assert flow.request("GET", TRACES, None, bearer("wrong-key-1234567890")).status == 401
        assert flow.request("GET", f"/ui/requests/{anns}", None, {"accept": "text/html"}).status in (302, 303, 401)
        said = flow.request("GET", f"{TRACES}/{anns}", None, bearer(BOBS)).body
        for key in (ANNS, BOBS, ADMIN):
            assert key.encode() not in said
