"""What was changed is told in the same words everywhere: header, body, trace, `explain` and log, at every door."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flowing import DEEPSEEK, Flow
from isthmus.cli.commands import app
from isthmus.log import Told
from isthmus.testing import chat, reply
from socketing import open_socket
from talking import ANTHROPIC, finished
from tracing import trace_of
from waiting import until

Json = dict[str, Any]
Asked = tuple[str, str | None, list[Json]]
"""The id of the request or the response, the header, and the diagnostics of the body."""
CHANGED = {"temperature": 3, "top_logprobs": 30, "service_tier": "flex"}
RESPONSES = {"model": DEEPSEEK, "input": "hi", **CHANGED}
CHAT = {"model": DEEPSEEK, "messages": [{"role": "user", "content": "hi"}], "temperature": 3, "service_tier": "flex"}
MESSAGES = {"model": DEEPSEEK, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "top_k": 5}
VECTORS = {"data": [{"embedding": [0.5], "index": 0}], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def whole(flow: Flow, path: str, body: Json, headers: dict[str, str] | None = None) -> Asked:
    answer = flow.post(path, body, headers)
    assert answer.status == 200, answer.body
    told = answer.json["isthmus"]["diagnostics"]
    return answer.headers["x-request-id"], answer.headers["isthmus-plan"], told


def responses(flow: Flow) -> Asked:
    return whole(flow, "/v1/responses", RESPONSES)


def a_stream(flow: Flow) -> Asked:
    with flow.streaming("/v1/responses", {**RESPONSES, "stream": True}) as events:
        told = finished(list(events))["isthmus"]["diagnostics"]
        return events.headers["x-request-id"], events.headers["isthmus-plan"], told


def the_background(flow: Flow) -> Asked:
    begun = flow.post("/v1/responses", {**RESPONSES, "background": True})
    path = f"/v1/responses/{begun.json['id']}"
    until(lambda: flow.get(path).json["status"] == "completed", "it was never made")
    told = flow.get(path).json["isthmus"]["diagnostics"]
    return begun.headers["x-request-id"], begun.headers["isthmus-plan"], told


def a_socket(flow: Flow) -> Asked:
    with open_socket(flow.server.url) as talk:
        talk.ask({**RESPONSES, "store": False})
        response = talk.until("response.completed")["response"]
    return response["id"], None, response["isthmus"]["diagnostics"]


def compaction(flow: Flow) -> Asked:
    return whole(flow, "/v1/responses/compact", RESPONSES)


def chat_whole(flow: Flow) -> Asked:
    return whole(flow, "/v1/chat/completions", CHAT)


def chat_stream(flow: Flow) -> Asked:
    with flow.streaming("/v1/chat/completions", {**CHAT, "stream": True}) as stream:
        (told,) = [chunk["isthmus"]["diagnostics"] for chunk in stream if "isthmus" in chunk]
        return stream.headers["x-request-id"], stream.headers["isthmus-plan"], told


def messages(flow: Flow) -> Asked:
    return whole(flow, "/v1/messages", MESSAGES, ANTHROPIC)


DOORS: list[Callable[[Flow], Asked]] = [
    responses,
    a_stream,
    the_background,
    a_socket,
    compaction,
    chat_whole,
    chat_stream,
    messages,
]


_CHANGES = ("plan.degraded", "plan.ignored")


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, Json]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, Told):
            self.told.append((record.msg.event, record.msg.facts))


@pytest.fixture
def lines() -> Iterator[Lines]:
    heard, log = Lines(), logging.getLogger("isthmus")
    before = log.level
    log.addHandler(heard)
    log.setLevel(logging.DEBUG)
    yield heard
    log.removeHandler(heard)
    log.setLevel(before)


def said(diagnostics: list[Json]) -> Counter[tuple[str, str, str]]:
    return Counter((each["code"], each["action"], each["message"]) for each in diagnostics)


def explained(flow: Flow, folder: Path, *arguments: str) -> str:
    """What the command line says, beside the gateway and knowing nothing but its address."""
    environment = {"HOME": str(folder), "NO_COLOR": "1", "COLUMNS": "140"}
    done = CliRunner().invoke(app, ["explain", *arguments, "--gateway", flow.server.url], env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("ask", DOORS, ids=lambda door: door.__name__)
def test_header_body_trace_explain_and_log_say_the_same(
    flow: Flow, lines: Lines, tmp_path: Path, ask: Callable[[Flow], Asked]
) -> None:
    flow.script(chat("ok"))
    id, header, body = ask(flow)
    assert body, "there is something to be told"
    trace = trace_of(flow, id)
    assert said(trace["diagnostics"]) == said(body)
    response = trace["summary"]["response"]
    logged = [facts for event, facts in lines.told if event in _CHANGES and facts["id"] == response]
    assert Counter((each["code"], each["reason"]) for each in logged) == Counter(
        (code, message) for code, _, message in said(body).elements()
    )
    assert [each["path"] for each in logged] == [each["path"] for each in trace["diagnostics"]]
    (changed,) = [facts for event, facts in lines.told if event == "plan.changed" and facts["id"] == response]
    for action in ("degraded", "ignored"):
        paths = [each["path"] for each in trace["diagnostics"] if each["action"] == action]
        assert changed.get(action, "") == ", ".join(paths)
    counted = Counter(each["action"] for each in body)
    summary = trace["summary"]
    assert (summary.get("degraded", 0), summary.get("ignored", 0)) == (counted["degraded"], counted["ignored"])
    if header is not None:
        words = ", ".join(f"{action}={counted[action]}" for action in ("degraded", "ignored") if counted[action])
        assert header == words
    decided = {(each["path"], each["action"]) for each in trace["decisions"]}
    assert {(each["path"], each["action"]) for each in trace["diagnostics"]} <= decided
    (done,) = [
        facts
        for event, facts in lines.told
        if event in ("request.done", "background.done") and facts.get("response") == response
    ][-1:]
    assert (done["degraded"], done["ignored"]) == (counted["degraded"], counted["ignored"])
    for name in (summary["id"], response):
        told = json.loads(explained(flow, tmp_path, name, "--json"))
        assert told["diagnostics"] == trace["diagnostics"]
        assert [(each["path"], each["action"]) for each in told["decisions"]] == [
            (each["path"], each["action"]) for each in trace["decisions"]
        ]
    shown = explained(flow, tmp_path, response)
    for decision in trace["decisions"]:
        if decision["action"] in ("degraded", "ignored"):
            assert decision["path"] in shown
            assert decision["action"] in shown


def test_vectors_have_a_header_a_trace_and_lines_of_the_log(flow: Flow, lines: Lines, tmp_path: Path) -> None:
    """Their answer has no place for more."""
    flow.script(reply(VECTORS))
    asked = {"model": "full/text-embedding-3-small", "input": "x", "colour": "blue"}
    answer = flow.post("/v1/embeddings", asked)
    trace = trace_of(flow, answer.headers["x-request-id"])
    assert answer.headers["isthmus-plan"] == "ignored=1"
    logged = [facts for event, facts in lines.told if event == "plan.ignored"]
    assert [(each["path"], each["reason"]) for each in logged] == [
        (each["path"], each["message"]) for each in trace["diagnostics"]
    ]
    assert len(logged) == 1
    told = json.loads(explained(flow, tmp_path, trace["summary"]["response"], "--json"))
    assert told["diagnostics"] == trace["diagnostics"]
    assert "colour" in explained(flow, tmp_path, trace["summary"]["id"])
