"""Content in traces: only where it is asked for, never a secret, and gone with its response."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.log import Scrubbed, TextFormatter
from isthmus.observe.traces import recorder
from isthmus.scrub import Scrubber, Secret
from isthmus.testing import Gate, chat, error, reply
from isthmus.testing.replies import chat_reply
from leaking import assert_silent
from socketing import open_socket
from talking import ANTHROPIC
from tracing import TRACES, request_id, trace_of, traces, words
from waiting import until

Json = dict[str, Any]
SAID, TOLD = "a-question-nobody-else-asks", "an-answer-nobody-else-gives"
SECRET = "sk-upstream-secret"
"""The key of every provider of a flow."""
FULL = '[trace]\ncapture = "full"\n'
UNSTORED = f"{FULL}unstored = true\n"

ASKING: dict[str, tuple[str, Json, dict[str, str]]] = {
    "responses": ("/v1/responses", {"model": PLAIN, "input": SAID}, {}),
    "chat": ("/v1/chat/completions", {"model": PLAIN, "messages": [{"role": "user", "content": SAID}]}, {}),
    "messages": (
        "/v1/messages",
        {"model": PLAIN, "max_tokens": 9, "messages": [{"role": "user", "content": SAID}]},
        ANTHROPIC,
    ),
}


def on_disk(flow: Flow) -> bytes:
    """The file of the traces, and its log."""
    assert flow.database is not None
    return b"".join(path.read_bytes() for path in flow.database.parent.iterdir() if ".traces." in path.name)


def ask(flow: Flow, door: str = "responses", **more: Any) -> Json:
    path, body, headers = ASKING[door]
    flow.script(chat(TOLD))
    return trace_of(flow, request_id(flow.post(path, {**body, **more}, headers)))


@pytest.mark.parametrize("store", ["sqlite", "memory"])
@pytest.mark.parametrize("door", ASKING)
def test_full_capture_keeps_what_was_sent_and_told_on_both_sides(
    special: Callable[..., Flow], door: str, store: str
) -> None:
    flow = special(extra=FULL, store=store)
    trace = ask(flow, door)
    assert trace["summary"]["capture"] == "full"
    assert trace["request"]["content"] == ASKING[door][1], "as its client sent it"
    assert trace["calls"][0]["body"]["content"] == flow.sent[-1]
    assert trace["answer"]["content"]["output_text"] == TOLD


def test_a_socket_is_captured_too(special: Callable[..., Flow]) -> None:
    flow = special(extra=UNSTORED)
    flow.script(chat(TOLD))
    with open_socket(flow.server.url) as talk:
        talk.ask({"model": PLAIN, "input": SAID, "store": False})
        id = talk.until("response.completed")["response"]["id"]
    trace = trace_of(flow, id)
    assert trace["request"]["content"]["input"][0]["content"] == SAID
    assert trace["answer"]["content"]["output_text"] == TOLD


def test_what_cannot_be_read_is_captured_as_it_came(special: Callable[..., Flow]) -> None:
    flow = special(extra=FULL)
    answer = flow.post("/v1/responses", b'{"model": nonsense')
    assert trace_of(flow, request_id(answer))["request"]["content"] == '{"model": nonsense'


@pytest.mark.parametrize("door", ASKING)
def test_what_its_client_wants_nobody_to_store_is_not_captured_unless_the_operator_says_so(
    special: Callable[..., Flow], door: str
) -> None:
    flow = special(extra=FULL)
    trace = ask(flow, door, store=False)
    assert trace["summary"].get("capture", "metadata") == "metadata"
    assert SAID not in words(trace)
    assert TOLD not in words(trace)


def test_the_operator_may_say_so(special: Callable[..., Flow]) -> None:
    assert ask(special(extra=UNSTORED), store=False)["answer"]["content"]["output_text"] == TOLD


def test_full_capture_is_switched_on_for_a_while_and_off_again(flow: Flow) -> None:
    assert "content" not in ask(flow)["request"]
    on = flow.post(f"{TRACES}/capture", {"seconds": 600})
    assert (on.status, on.json["capture"]) == (200, "metadata")
    assert on.json["full_until"] > 0
    try:
        assert ask(flow)["request"]["content"]["input"] == SAID
        narrowed = flow.post(f"{TRACES}/capture", {"seconds": 600, "owner": "somebody-else"}).json
        assert narrowed["owner"] == "somebody-else"
        assert "content" not in ask(flow)["request"]
    finally:
        off = flow.post(f"{TRACES}/capture", {"seconds": 0}).json
    assert "full_until" not in off
    assert off["kept"] > 0
    assert "content" not in ask(flow)["request"]


@pytest.mark.parametrize("body", [{}, {"seconds": -1}, {"seconds": 1e9}, {"seconds": "long"}, {"seconds": 1, "x": 1}])
def test_a_switch_that_makes_no_sense_is_refused(flow: Flow, body: Json) -> None:
    assert flow.post(f"{TRACES}/capture", body).status == 400
    assert "full_until" not in flow.get(f"{TRACES}/capture").json


def test_what_is_too_long_is_left_out_and_said_so(special: Callable[..., Flow]) -> None:
    flow = special(extra=f"{FULL}max_content = 2000\n")
    trace = ask(flow, input=SAID * 100)
    assert "max_content" in trace["calls"][0]["body"]["cut"]
    assert trace["answer"]["content"]["output_text"] == TOLD, "what there is room for is kept"
    assert SAID not in words(trace)


@pytest.mark.parametrize("store", ["sqlite", "memory"])
def test_a_deleted_response_takes_its_content_along_and_leaves_figures(
    special: Callable[..., Flow], store: str
) -> None:
    flow = special(extra=FULL, store=store)
    trace = ask(flow)
    id = trace["summary"]["response"]
    assert flow.delete(f"/v1/responses/{id}").status == 200
    left = trace_of(flow, id)
    assert left["summary"]["deleted"] is True
    assert left["summary"]["input_tokens"] == trace["summary"]["input_tokens"]
    assert not [name for name, value in left.items() if value and name != "summary"], left
    if store == "sqlite":
        assert SAID.encode() not in on_disk(flow)


def test_a_deleted_completion_does_so_too(special: Callable[..., Flow]) -> None:
    flow = special(extra=FULL)
    flow.script(chat(TOLD))
    made = flow.chat({**ASKING["chat"][1], "store": True})
    assert trace_of(flow, made["id"])["answer"]["content"], "it is found by the name that its client knows"
    assert flow.delete(f"/v1/chat/completions/{made['id']}").status == 200
    assert SAID not in words(trace_of(flow, made["id"]))


def test_where_no_more_deletes_may_wait_nothing_is_deleted_at_either_door(
    special: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = special(extra=FULL)
    flow.script(chat(TOLD), chat(TOLD))
    places = [
        f"/v1/responses/{flow.post('/v1/responses', ASKING['responses'][1]).json['id']}",
        f"/v1/chat/completions/{flow.chat({**ASKING['chat'][1], 'store': True})['id']}",
    ]
    monkeypatch.setattr(recorder, "MOST_FORGETTING", 0)
    for place in places:
        refused = flow.delete(place)
        assert refused.status == 503
        assert "nothing was deleted, try again" in refused.json["error"]["message"]
        assert flow.get(place).status == 200
    assert flow.get(f"{TRACES}/capture").json["delayed"] == 2
    monkeypatch.undo()
    assert [flow.delete(place).status for place in places] == [200, 200]


def test_a_response_that_is_deleted_while_it_is_made_leaves_no_content(special: Callable[..., Flow]) -> None:
    flow, gate = special(extra=FULL), Gate()
    flow.script(reply(chat_reply(TOLD), after=gate))
    id = flow.post("/v1/responses", {"model": PLAIN, "input": SAID, "background": True}).json["id"]
    flow.wait_sent()
    assert flow.delete(f"/v1/responses/{id}").status == 200
    gate.open()
    assert trace_of(flow, id)["summary"]["deleted"] is True
    assert SAID not in words(trace_of(flow, id))


EVERYWHERE: Json = {
    "model": PLAIN,
    "input": [
        {"type": "message", "role": "user", "content": f"my key is {SECRET}"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": json.dumps({"with": SECRET})},
        {"type": "function_call_output", "call_id": "c1", "output": f"it said {SECRET}"},
    ],
    "instructions": f"use {SECRET}",
    "tools": [{"type": "function", "name": "look", "description": SECRET, "parameters": {"type": "object"}}],
    "metadata": {"key": SECRET},
    "prompt_cache_key": SECRET,
    f"unknown_{SECRET}": SECRET,
}


@pytest.mark.parametrize("extra", ["", FULL])
def test_a_secret_in_every_field_header_url_error_and_tool_result_is_in_no_trace_and_no_log(
    special: Callable[..., Flow], extra: str
) -> None:
    flow = special(extra=extra)
    headers = {"x-client-request-id": f"mine-{SECRET}", "user-agent": SECRET, "traceparent": SECRET, "x-other": SECRET}
    with written(Scrubber([Secret(SECRET, "api_key")])) as said:
        flow.script(chat(f"the key is {SECRET}"), error(500, f"no, not {SECRET}"), chat("ok"))
        flow.post(f"/v1/responses?key={SECRET}", EVERYWHERE, headers)
        flow.post("/v1/responses", {**EVERYWHERE, "stream": True}, headers)
        flow.post("/v1/chat/completions", {"model": PLAIN, "messages": [{"role": "user", "content": SECRET}]}, headers)
        for path, body in (
            (f"/v1/{SECRET}", {"input": "x"}),
            ("/v1/responses", {"model": f"nobody/{SECRET}", "input": "x"}),
            ("/v1/responses", {"model": SECRET, "input": {SECRET: SECRET}}),
            ("/v1/responses", f"{{not json {SECRET}".encode()),
        ):
            flow.post(path, body, headers)
        until(lambda: len(traces(flow)) == 7, lambda: traces(flow))
        told = b"".join(flow.get(f"{TRACES}/{each['id']}").body for each in traces(flow))
        listed = flow.get(TRACES).body + flow.get(f"{TRACES}/totals?by=model").body
    assert_silent([SECRET], traces=told, lists=listed, disk=on_disk(flow))
    assert "request.done" in said.getvalue()
    assert_silent([SECRET], log=said.getvalue())


@contextmanager
def written(scrubber: Scrubber) -> Iterator[StringIO]:
    """The log as `isthmus serve` writes it, down to the last detail."""
    text, log = StringIO(), logging.getLogger("isthmus")
    handler, before = logging.StreamHandler(text), log.level
    handler.setFormatter(Scrubbed(TextFormatter(), scrubber.text))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def test_what_the_operators_patterns_find_is_hidden_in_content_words_and_names(special: Callable[..., Flow]) -> None:
    flow = special(extra=f"{FULL}scrub = ['\\d{{3}}-\\d{{2}}-\\d{{4}}', '(?i)project (zeus|hera)']\n")
    flow.script(chat("Project Zeus it is: 123-45-6789"))
    body = {"model": PLAIN, "input": "About PROJECT hera, 987-65-4321?", "metadata": {"111-22-3333": "x"}}
    trace = trace_of(flow, request_id(flow.post("/v1/responses", body)))
    assert trace["request"]["content"]["input"] == "About <redacted>, <redacted>?"
    assert trace["request"]["content"]["metadata"] == {"<redacted>": "x"}
    assert trace["answer"]["content"]["output_text"] == "<redacted> it is: <redacted>"
    refused = flow.post("/v1/responses", {"model": "nobody/123-45-6789", "input": "x"})
    assert "123-45" not in words(trace_of(flow, request_id(refused)))
    assert b"123-45-6789" not in on_disk(flow)


def test_a_pattern_that_never_ends_stops_nobody_and_its_words_are_not_stored(special: Callable[..., Flow]) -> None:
    flow = special(extra=f"{FULL}scrub = ['^(a+)+$']\n[checks]\ndeadline = 1\n")
    flow.script(chat("ok"), chat("ok"))
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "a" * 40 + "!"})
    assert flow.create({"model": PLAIN, "input": "quick"})["status"] == "completed"
    trace = trace_of(flow, request_id(answer))
    assert trace["summary"]["asked_model"] == "<withheld>"
    assert "aaaa" not in words(trace)
    until(lambda: flow.get(f"{TRACES}/capture").json.get("withheld") == 1, "it is counted")
