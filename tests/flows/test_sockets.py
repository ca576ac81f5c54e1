"""Responses over a WebSocket, to the bytes: order, lanes, what a socket remembers, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import CUT, Gate, chat, chat_chunks, error, stream
from socketing import Socket, open_socket

Json = dict[str, Any]
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
HI = {"model": PLAIN, "input": "hi", "store": False}


@pytest.fixture
def talk(flow: Flow) -> Iterator[Socket]:
    with open_socket(flow.server.url) as socket:
        yield socket


def _said(body: Json) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in body["messages"]]


def held(text: str, gate: Gate) -> Any:
    """A stream that stops behind its first word."""
    role, first, *rest = chat_chunks(text)
    return stream([role, first, gate, *rest])


# ── one lane ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_events_are_those_of_sse_without_the_done(flow: Flow, talk: Socket) -> None:
    flow.script(chat("Hello there."), chat("Hello there."))
    over_sse, _ = flow.stream({**HI, "stream": True})
    talk.ask(HI)
    over_socket = talk.rest()
    assert [event["type"] for event in over_socket] == [event["type"] for event in over_sse]
    assert [event["sequence_number"] for event in over_socket] == [*range(len(over_sse))]
    assert not any("stream_id" in event for event in over_socket)
    assert flow.sent[0] == flow.sent[1]


def test_what_clients_put_in_a_frame_besides_is_taken(flow: Flow, talk: Socket) -> None:
    """openai-agents sends `stream` in every frame, Codex `client_metadata`; neither may be refused."""
    flow.script(chat("ok"))
    extra = {"stream": True, "client_metadata": {"x-codex-window-id": "1"}, "background": False, "of_tomorrow": 1}
    delivery = {"stream_options": {"reasoning_summary_delivery": "sequential_cutoff"}, "stream_id": None}
    assert talk.answer({**HI, **extra, **delivery})["status"] == "completed"
    assert flow.sent[0]["stream"] is True


def test_the_default_lane_answers_one_after_the_other(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    flow.script(held("first answer", gate), chat("second"))
    talk.ask(HI)
    talk.ask({**HI, "input": "and?"})
    talk.until("response.output_text.delta")
    assert len(flow.sent) == 1
    gate.open()
    talk.rest(begun=1)
    assert talk.rest()[-1]["response"]["output_text"] == "second"


def test_two_turns_without_a_store_know_each_other(flow: Flow, talk: Socket) -> None:
    flow.script(chat("One."), chat("Two."), chat("Three."))
    first = talk.answer(HI)
    second = talk.answer({**HI, "input": "next", "previous_response_id": first["id"]})
    talk.answer({**HI, "input": "last", "previous_response_id": second["id"]})
    said = [("user", "hi"), ("assistant", "One."), ("user", "next"), ("assistant", "Two."), ("user", "last")]
    assert _said(flow.sent[2]) == said
    assert second["previous_response_id"] == first["id"]
    assert flow.get(f"/v1/responses/{second['id']}").status == 404


@pytest.mark.parametrize("store", [False, True], ids=["unstored", "stored"])
def test_only_the_last_response_of_a_lane_is_known(flow: Flow, talk: Socket, store: bool) -> None:
    flow.script(chat("One."), chat("Two."))
    first = talk.answer(HI)
    talk.answer({**HI, "store": store, "previous_response_id": first["id"]})
    assert talk.refused({**HI, "previous_response_id": first["id"]}) == NOT_FOUND


NOT_FOUND = (400, "previous_response_not_found", "previous_response_id")


def test_another_socket_knows_nothing_of_it_and_goes_on(flow: Flow, talk: Socket) -> None:
    flow.script(chat("One."), chat("Fresh."))
    first = talk.answer(HI)
    with open_socket(flow.server.url) as other:
        assert other.refused({**HI, "previous_response_id": first["id"]}) == NOT_FOUND
        assert other.answer(HI)["output_text"] == "Fresh."


def test_what_is_stored_is_known_everywhere(flow: Flow, talk: Socket) -> None:
    flow.script(chat("One."), chat("Two."), chat("Three."), chat("Four."))
    first = flow.create({"model": PLAIN, "input": "hi"})
    second = talk.answer({**HI, "store": True, "input": "next", "previous_response_id": first["id"]})
    third = talk.answer({**HI, "input": "unkept", "previous_response_id": second["id"]})
    fourth = talk.answer({**HI, "store": True, "input": "kept", "previous_response_id": third["id"]})
    assert flow.get(f"/v1/responses/{fourth['id']}").json["output_text"] == "Four."
    flow.script(chat("Five."))
    flow.create({"model": PLAIN, "input": "over http", "previous_response_id": fourth["id"]})
    asked = [content for role, content in _said(flow.sent[4]) if role == "user"]
    assert asked == ["hi", "next", "unkept", "kept", "over http"]


def test_a_failed_continuation_costs_its_parent(flow: Flow, talk: Socket) -> None:
    flow.script(chat("One."))
    first = talk.answer(HI)
    unknown = {"type": "function_call_output", "call_id": "call_nobody", "output": "1"}
    refused = talk.refused({**HI, "previous_response_id": first["id"], "input": [unknown]})
    assert refused == (400, "invalid_value", "input[0].call_id")
    assert talk.refused({**HI, "previous_response_id": first["id"]}) == NOT_FOUND


def test_so_does_one_for_which_there_is_no_place_to_wait(special: Callable[..., Flow]) -> None:
    flow, gate = special(store="memory", extra="[websocket]\nmax_running = 1\nmax_queued = 1"), Gate()
    with open_socket(flow.server.url) as talk:
        flow.script(chat("One."), held("busy", gate), chat("Two."))
        first = talk.answer(HI, "a")
        talk.ask(HI, "b")
        flow.wait_sent(2)
        talk.ask(HI, "c")
        assert talk.refused({**HI, "previous_response_id": first["id"]}, "a") == (429, "websocket_queue_full", None)
        gate.open()
        talk.rest("b")
        talk.rest("c")
        assert talk.refused({**HI, "previous_response_id": first["id"]}, "a") == NOT_FOUND


@pytest.mark.parametrize("broken", [error(500, "no"), stream([*chat_chunks("half")[:2], CUT])], ids=["refused", "cut"])
def test_so_does_one_that_its_upstream_fails(flow: Flow, talk: Socket, broken: Any) -> None:
    flow.script(chat("One."))
    first = talk.answer(HI)
    flow.script(broken)
    talk.ask({**HI, "previous_response_id": first["id"]})
    while talk.next_of()["type"] not in ("error", "response.failed"):
        pass
    assert talk.refused({**HI, "previous_response_id": first["id"]}) == NOT_FOUND


def test_the_same_conversation_over_sse_and_over_a_socket(flow: Flow, talk: Socket) -> None:
    """The calls, the text, the usage and what the upstream is sent are the same."""
    script = [chat(calls=[("call_1", "look", "{}")], usage=(11, 3)), chat("Four things.", usage=(20, 4))]
    ask: Json = {"model": PLAIN, "input": "how many?", "tools": [TOOL]}
    flow.script(*script)
    first = flow.stream({**ask, "stream": True})[1]
    second = flow.stream({**ask, "stream": True, "previous_response_id": first["id"], "input": [_result(first)]})[1]
    flow.script(*script)
    over = [talk.answer({**ask, "store": False})]
    over.append(
        talk.answer({**ask, "store": False, "previous_response_id": over[0]["id"], "input": [_result(over[0])]})
    )
    for one, other in zip((first, second), over, strict=True):
        assert [_essence(item) for item in one["output"]] == [_essence(item) for item in other["output"]]
        assert one["output_text"] == other["output_text"]
        assert one["usage"] == other["usage"]
    assert flow.sent[:2] == flow.sent[2:]


def _result(response: Json) -> Json:
    return {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "4"}


def _essence(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "id"}


# ── sent ahead ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ahead", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_what_is_sent_ahead_asks_nobody_and_is_continued(flow: Flow, talk: Socket, ahead: Json) -> None:
    """As Codex begins: its whole input with `generate: false`, then the same response continued with nothing new."""
    talk.ask({**HI, **ahead, "tools": []})
    events = talk.rest()
    assert [event["type"] for event in events] == ["response.created", "response.in_progress", "response.completed"]
    warm = events[-1]["response"]
    assert (warm["output"], warm["usage"]["total_tokens"]) == ([], 0)
    assert flow.sent == []
    flow.script(chat("Hello."))
    assert talk.answer({**HI, "input": [], "previous_response_id": warm["id"]})["output_text"] == "Hello."
    assert _said(flow.sent[0]) == [("user", "hi")]


def test_an_empty_request_can_be_sent_ahead_and_stored(flow: Flow, talk: Socket) -> None:
    warm = talk.answer({"model": PLAIN, "generate": False})
    flow.script(chat("Hello."), chat("Again."))
    first = talk.answer({"model": PLAIN, "input": "hi", "previous_response_id": warm["id"]})
    flow.create({"model": PLAIN, "input": "once more", "previous_response_id": first["id"]})
    assert _said(flow.sent[1]) == [("user", "hi"), ("assistant", "Hello."), ("user", "once more")]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ahead", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_over_http_as_well(flow: Flow, ahead: Json, streamed: bool) -> None:
    asked = {"model": PLAIN, "input": "hi", "tools": [], **ahead}
    warm = flow.stream(asked)[1] if streamed else flow.create(asked)
    assert (warm["status"], warm["output"], flow.sent) == ("completed", [], [])
    assert warm["usage"]["total_tokens"] == 0
    flow.script(chat("Hello."))
    flow.create({"model": PLAIN, "input": [], "previous_response_id": warm["id"]})
    assert _said(flow.sent[0]) == [("user", "hi")]


# ── lanes ──────────────────────────────────────────────────────────────────────────────────────────────


def test_lanes_run_at_the_same_time_and_say_which_they_are(flow: Flow, talk: Socket) -> None:
    gates = [Gate("a"), Gate("b")]
    flow.script(held("first lane", gates[0]))
    talk.ask(HI, "a")
    flow.wait_sent(1)
    flow.script(held("second lane", gates[1]), chat("the default"))
    talk.ask(HI, "b.2")
    flow.wait_sent(2)
    assert talk.answer(HI)["output_text"] == "the default"
    gates[1].open()
    assert talk.rest("b.2")[-1]["response"]["output_text"] == "second lane"
    gates[0].open()
    assert talk.rest("a")[-1]["response"]["output_text"] == "first lane"
    for lane in ("a", "b.2"):
        mine = [event for event in talk.seen if event.get("stream_id") == lane]
        assert [event["sequence_number"] for event in mine] == [*range(len(mine))]


def test_a_lane_begins_anew_unless_it_continues(flow: Flow, talk: Socket) -> None:
    flow.script(chat("One."), chat("Two."))
    talk.answer(HI, "a")
    talk.answer({**HI, "input": "anew"}, "a")
    assert _said(flow.sent[1]) == [("user", "anew")]


def test_a_fork_leaves_its_parent_alone_also_when_it_fails(flow: Flow, talk: Socket) -> None:
    flow.script(chat("Root."), chat("Left."), chat("Right."))
    root = talk.answer(HI, "main")
    unknown = {"type": "custom_tool_call_output", "call_id": "call_nobody", "output": "1"}
    assert talk.refused({**HI, "previous_response_id": root["id"], "input": [unknown]}, "fork")[0] == 400
    left = talk.answer({**HI, "input": "left", "previous_response_id": root["id"]}, "fork")
    talk.answer({**HI, "input": "right", "previous_response_id": root["id"]}, "main")
    assert _said(flow.sent[1])[-1] == ("user", "left")
    assert _said(flow.sent[2]) == [("user", "hi"), ("assistant", "Root."), ("user", "right")]
    flow.script(chat("On."))
    talk.answer({**HI, "input": "on", "previous_response_id": left["id"]}, "fork")


def test_a_fork_binds_its_parent_when_it_begins(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[websocket]\nmax_running = 1")
    with open_socket(flow.server.url) as talk:
        flow.script(chat("Root."))
        root = talk.answer(HI, "main")
        gate = Gate()
        flow.script(held("moved on", gate))
        talk.ask({**HI, "previous_response_id": root["id"]}, "main")
        flow.wait_sent(2)
        talk.ask({**HI, "previous_response_id": root["id"]}, "fork")
        gate.open()
        talk.rest("main")
        assert talk.refusal("fork")["error"]["code"] == "previous_response_not_found"


def test_so_many_run_and_the_rest_wait_their_turn(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[websocket]\nmax_running = 2\nmax_queued = 2")
    with open_socket(flow.server.url) as talk:
        gates = [Gate(), Gate()]
        flow.script(held("a", gates[0]), held("b", gates[1]), chat("c"), chat("d"))
        for lane in "abcd":
            talk.ask(HI, lane)
        flow.wait_sent(2)
        assert talk.refused(HI, "e") == (429, "websocket_queue_full", None)
        assert len(flow.sent) == 2
        for gate in gates:
            gate.open()
        assert [talk.rest(lane)[-1]["response"]["status"] for lane in "abcd"] == ["completed"] * 4


def test_as_many_as_openai_documents_unless_told_otherwise(flow: Flow, talk: Socket) -> None:
    """32 named lanes in a socket's life, and 16 responses at the same time, the default lane's among them."""
    for number in range(32):
        talk.answer({**HI, "generate": False}, f"lane-{number}")
    assert talk.refused(HI, "one-more") == (400, "websocket_stream_limit_reached", "stream_id")
    gate, known = Gate(), len(talk.seen)
    flow.script(*[held("a b", gate)] * 16)
    talk.ask(HI)
    for number in range(15):
        talk.ask(HI, f"lane-{number}")
    flow.wait_sent(16)
    talk.ask({**HI, "generate": False}, "lane-20")
    assert talk.refused(HI, "one-more")[0] == 400, "it was read, behind the one that waits"
    flow.create({"model": PLAIN, "input": "hi", "generate": False})  # begun later, and all the way
    assert talk.refused(HI, "one-more")[0] == 400, "told behind whatever had been told by then"
    assert "lane-20" not in [frame.get("stream_id") for frame in talk.seen[known:]]
    gate.open()
    for lane in ("", "lane-20", *(f"lane-{number}" for number in range(15))):
        assert talk.rest(lane)[-1]["response"]["status"] == "completed"


# ── refusals ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lane", ["", "a b", "ä", "x" * 257, 7])
def test_a_stream_id_that_is_none_is_refused_without_a_lane(flow: Flow, talk: Socket, lane: Any) -> None:
    talk.send({"type": "response.create", "stream_id": lane, **HI})
    frame = talk.refusal()
    assert "stream_id" not in frame
    assert (frame["status"], frame["error"]["code"], frame["error"]["param"]) == (400, "invalid_stream_id", "stream_id")


def test_so_many_lanes_and_no_more(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[websocket]\nmax_lanes = 2")
    with open_socket(flow.server.url) as talk:
        flow.script(*[chat("ok")] * 4)
        for lane in ("a", "b"):
            talk.answer(HI, lane)
        assert talk.refused(HI, "c") == (400, "websocket_stream_limit_reached", "stream_id")
        talk.answer(HI, "a")
        talk.answer(HI)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_type"),
        ("{}", "invalid_type"),
        ('{"type": "response.cancel"}', "unknown_event_type"),
        ('{"type": "response.create", "model": "plain/some-model", "input": 7}', "invalid_type"),
        ('{"type": "response.create", "input": "x", "background": true}', "bridge.request.unsupported_parameter"),
        ('{"type": "response.create", "model": "nobody/nothing", "input": "x"}', "unknown_provider"),
        (b"\xff", "invalid_json"),
    ],
)
def test_a_frame_that_cannot_be_served_is_told_so_and_the_socket_goes_on(
    flow: Flow, talk: Socket, frame: Any, code: str
) -> None:
    talk.send(frame)
    assert talk.refusal()["error"]["code"] == code
    flow.script(chat("ok"))
    assert talk.answer(HI)["status"] == "completed"


def test_a_bad_frame_waits_for_its_turn_in_its_lane(flow: Flow, talk: Socket) -> None:
    """Else its error would be taken for the end of the response that is running there."""
    gate = Gate()
    flow.script(held("in peace", gate))
    talk.ask(HI, "a")
    talk.send({"type": "response.create", "stream_id": "a", "input": 7})
    flow.wait_sent()
    talk.until("response.output_text.delta", "a")
    gate.open()
    assert talk.rest("a", begun=1)[-1]["type"] == "response.completed"
    assert talk.refusal("a")["stream_id"] == "a"


def test_what_the_upstream_refuses_has_its_status_and_when_to_ask_again(flow: Flow, talk: Socket) -> None:
    flow.script(error(429, "slow down", retry_after=7))
    talk.ask(HI, "a")
    frame = talk.refusal("a")
    assert (frame["status"], frame["error"]["code"]) == (429, "rate_limit_exceeded")
    assert frame["error"]["headers"]["retry-after"] == "7"


def test_what_a_socket_may_remember_is_bounded(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra="[websocket]\nmax_state = 5000")
    with open_socket(flow.server.url) as talk:
        flow.script(chat("short"), chat("x" * 6000), chat("short"), chat("on"))
        long = [talk.answer(HI), talk.answer(HI)][1]
        assert talk.refused({**HI, "previous_response_id": long["id"]}) == NOT_FOUND
        short = talk.answer(HI)
        assert talk.answer({**HI, "previous_response_id": short["id"]})["output_text"] == "on"
