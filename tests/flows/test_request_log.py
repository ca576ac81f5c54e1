"""What an operator reads of a request: one line at its end, over real sockets, whatever became of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowing import DEEPSEEK, PLAIN, Flow, running_flow
from isthmus.log import Told
from isthmus.testing import Gate, chat, chat_chunks, error, reply, stream
from isthmus.testing.script import CUT
from socketing import open_socket
from talking import Reply, Stream
from waiting import until


class Lines(logging.Handler):
    """Every event that was told, with its level."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, Told):
            self.told.append((record.levelname.lower(), record.msg.event, record.msg.facts))

    def wait(self, event: str, **facts: Any) -> tuple[str, dict[str, Any]]:
        """The one line that says so: it is written when the client has its answer already."""
        (line,) = until(
            lambda: [line for line in self.of(event) if facts.items() <= line[1].items()], lambda: self.told
        )
        return line

    def of(self, event: str) -> list[tuple[str, dict[str, Any]]]:
        return [(level, facts) for level, name, facts in self.told if name == event]


@pytest.fixture
def lines() -> Iterator[Lines]:
    heard, log = Lines(), logging.getLogger("isthmus")
    before = log.level
    log.addHandler(heard)
    log.setLevel(logging.DEBUG)
    yield heard
    log.removeHandler(heard)
    log.setLevel(before)


@pytest.fixture
def flow(tmp_path: Path, lines: Lines) -> Iterator[Flow]:
    with running_flow(tmp_path, store="memory") as running:
        logging.getLogger("isthmus").setLevel(logging.DEBUG)  # the gateway has set its own
        yield running


def only(lines: Lines, answer: Reply | Stream) -> tuple[str, dict[str, Any]]:
    """The one line of this request; a gateway of another test may still be at its last words."""
    return lines.wait("request.done", id=answer.headers["x-request-id"])


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_one_line_with_all_that_there_is_to_know(flow: Flow, lines: Lines, streamed: bool) -> None:
    flow.script(chat("hello", usage=(1000, 20)))
    body = {"model": DEEPSEEK, "input": "hi", "stream": streamed, "seed": 1, "temperature": 3}
    answer: Reply | Stream
    if streamed:
        with flow.streaming("/v1/responses", body) as answer:
            response = list(answer)[-1]["response"]
    else:
        answer = flow.post("/v1/responses", body)
        response = answer.json
    level, line = only(lines, answer)
    assert level == "info"
    assert line["response"] == response["id"]
    assert (line["caller"], line["method"], line["status"]) == ("local", "POST", 200)
    assert (line["provider"], line["model"]) == ("deepseek", "deepseek-v4-pro")
    assert (line["attempts"], line["outcome"]) == (1, "completed")
    assert (line["input_tokens"], line["output_tokens"]) == (1000, 20)
    assert line["cost"] > 0
    assert line["ms"] >= line["first_ms"] >= 0
    actions = [said["action"] for said in response["isthmus"]["diagnostics"]]
    assert (line["degraded"], line["ignored"]) == (actions.count("degraded"), actions.count("ignored"))
    assert line["degraded"] + line["ignored"] > 0


def test_a_summary_is_one_too_with_what_it_cost(flow: Flow, lines: Lines) -> None:
    flow.script(chat("Notes.", usage=(1000, 20)))
    made = flow.post("/v1/responses/compact", {"model": PLAIN, "input": "hi"}).json
    level, line = lines.wait("request.done", response=made["id"])
    assert (level, line["path"], line["status"], line["provider"]) == ("info", "/v1/responses/compact", 200, "plain")
    assert (line["input_tokens"], line["output_tokens"]) == (1000, 20)


def test_what_the_plan_changed_is_told_under_the_id_of_the_response(flow: Flow, lines: Lines) -> None:
    flow.script(chat("hello"))
    response = flow.post("/v1/responses", {"model": DEEPSEEK, "input": "hi", "temperature": 3}).json
    diagnostics = response["isthmus"]["diagnostics"]
    assert diagnostics
    ((level, changed),) = lines.of("plan.changed")
    assert (level, changed["id"]) == ("info", response["id"])
    for action in ("degraded", "ignored"):
        said = [each for each in diagnostics if each["action"] == action]
        assert changed.get(action, "") == ", ".join(each["path"] for each in said)
        told = [(level, each["id"], each["code"], each["path"]) for level, each in lines.of(f"plan.{action}")]
        assert told == [("debug", response["id"], each["code"], each["path"]) for each in said]


def test_a_stream_that_fails_is_a_warning_that_names_provider_and_reason(flow: Flow, lines: Lines) -> None:
    flow.script(stream([*chat_chunks("hello there", pieces=3)[:2], CUT]))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as events:
        response = list(events)[-1]["response"]
    level, line = only(lines, events)
    assert (level, line["status"], line["outcome"]) == ("warning", 200, "failed")
    assert (line["provider"], line["code"]) == ("plain", response["error"]["code"])
    assert line["reason"] == response["error"]["message"]
    failed, attempt = lines.wait("attempt.failed", id=response["id"])
    assert (failed, attempt["provider"]) == ("warning", "plain")


def test_an_upstream_that_refuses_is_a_warning(flow: Flow, lines: Lines) -> None:
    flow.script(error(503))
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi"})
    level, line = only(lines, answer)
    assert answer.status == 503
    assert (level, line["status"], line["outcome"], line["provider"]) == ("warning", 503, "refused", "plain")
    assert "plain" in line["reason"]


def test_what_the_caller_did_wrong_is_not(flow: Flow, lines: Lines) -> None:
    level, line = only(lines, flow.post("/v1/responses", {"model": PLAIN, "input": 3}))
    assert (level, line["status"], line["param"]) == ("info", 400, "input")
    assert "response" not in line


def test_a_background_response_has_a_line_of_its_own_at_its_end(flow: Flow, lines: Lines) -> None:
    flow.script(chat("hello"))
    id = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "background": True}).json["id"]
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as events:
        assert list(events)[-1]["type"] == "response.completed"
    level, line = lines.wait("background.done", response=id)
    assert (level, line["response"], line["outcome"], line["provider"]) == ("info", id, "completed", "plain")


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_probes_are_nobodys_news(flow: Flow, lines: Lines, path: str) -> None:
    assert only(lines, flow.get(path))[0] == "debug"


def test_a_client_that_leaves_is_told(flow: Flow, lines: Lines) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("hello there", pieces=3)[:2], gate]))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as events:
        events.next()
        events.close()
    _, line = only(lines, events)
    gate.open()
    assert (line["left"], line["outcome"]) == (True, "cancelled")


def test_nothing_that_a_client_sends_poses_as_another_line(flow: Flow, lines: Lines) -> None:
    _, line = only(lines, flow.get("/v1/models/x%0A12:00:00%20I%20request.done%20status=200"))
    assert "\n" in line["path"], "as it came; the formatter is what shows it"


@pytest.mark.parametrize(("proxies", "peer"), [("[]", None), ('["127.0.0.1"]', "192.0.2.7")])
def test_where_a_request_came_from_is_told_as_far_as_it_is_believed(
    tmp_path: Path, lines: Lines, proxies: str, peer: str | None
) -> None:
    with running_flow(tmp_path, store="memory", extra=f"[server]\ntrusted_proxies = {proxies}\n") as running:
        logging.getLogger("isthmus").setLevel(logging.DEBUG)
        answer = running.request("GET", "/health", None, {"x-forwarded-for": "192.0.2.7"})
        assert only(lines, answer)[1].get("peer") == peer


def test_every_response_over_a_socket_is_a_line(flow: Flow, lines: Lines) -> None:
    asked = {"model": PLAIN, "input": "hi", "store": False}
    with open_socket(flow.server.url, headers={"originator": "codex_exec"}) as talk:
        flow.script(chat("ok", usage=(1000, 20)))
        done = talk.answer(asked, "a")
        level, line = lines.wait("request.done", response=done["id"])
        assert (level, line["method"], line["path"], line["status"]) == ("info", "WS", "/v1/responses", 200)
        assert (line["client"], line["input_tokens"]) == ("codex", 1000)
        talk.refused({**asked, "previous_response_id": "resp_none"})
        lines.wait("request.done", code="previous_response_not_found", status=400, method="WS")
    _, line = lines.wait("socket.closed")
    assert (line["answered"], line["code"]) == (2, 1000)


def test_embeddings_are_told_like_any_other_request(flow: Flow, lines: Lines) -> None:
    vectors = {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    flow.script(reply(vectors), error(429))
    asked = {"model": PLAIN, "input": "a", "user": "ann"}
    level, line = only(lines, flow.post("/v1/embeddings", asked))
    assert (level, line["path"], line["status"]) == ("info", "/v1/embeddings", 200)
    assert (line["provider"], line["model"], line["outcome"]) == ("plain", "some-model", "completed")
    assert (line["input_tokens"], line["attempts"], line["ignored"]) == (7, 1, 1)
    ((_, told),) = lines.of("plan.changed")
    assert (told["id"], told["ignored"]) == (line["response"], "user")
    level, line = only(lines, flow.post("/v1/embeddings", asked))
    assert (level, line["status"], line["code"]) == ("warning", 429, "rate_limit_exceeded")
    ((_, failed),) = lines.of("attempt.failed")
    assert failed["id"] == line["response"]


def test_a_clients_own_id_is_told_with_ours(flow: Flow, lines: Lines) -> None:
    answer = flow.request("GET", "/v1/models", None, {"X-Client-Request-Id": "my trace/1"})
    assert only(lines, answer)[1]["client_id"] == "my trace/1"
    assert "client_id" not in only(lines, flow.get("/v1/models"))[1]
