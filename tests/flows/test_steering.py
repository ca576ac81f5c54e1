"""More words for a response that is being made: it ends where it is, and its successor goes on with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.server.steering import MAX_STEERS
from isthmus.testing import Gate, chat, chat_chunks, error, stream
from socketing import Socket, open_socket

Json = dict[str, Any]
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
HI = {"model": PLAIN, "input": "hi", "store": False, "instructions": "Be brief.", "temperature": 0.5, "tools": [LOOK]}


@pytest.fixture
def talk(flow: Flow) -> Iterator[Socket]:
    with open_socket(flow.server.url) as socket:
        yield socket


def steer(talk: Socket, target: str, input: Any = "In English!", **more: Any) -> None:
    talk.send({"type": "response.steer", "previous_response_id": target, "input": input, **more})


def begun(flow: Flow, talk: Socket, kind: str, lane: str = "", **more: Any) -> str:
    """Ask, and read until an event of this type: the response's id."""
    talk.ask({**HI, **more}, lane or None)
    id: str = talk.next_of(lane)["response"]["id"]
    if kind != "response.created":
        talk.until(kind, lane)
    return id


def accepted(talk: Socket, target: str, lane: str = "") -> Json:
    event = talk.until("response.steer.accepted", lane)
    assert event["steer"]["previous_response_id"] == target
    assert event["steer"]["id"].startswith("steer_")
    return event


def failed(talk: Socket, code: str, lane: str = "") -> Json:
    event = talk.until("response.steer.failed", lane)
    assert (event["error"]["type"], event["error"]["code"]) == ("invalid_request_error", code)
    assert event["error"]["message"]
    return event


def said(body: Json) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in body["messages"]]


@pytest.mark.parametrize("store", [False, True], ids=["unstored", "stored"])
@pytest.mark.parametrize("lane", ["", "a"])
def test_a_response_that_thinks_ends_with_its_thought(flow: Flow, talk: Socket, lane: str, store: bool) -> None:
    gate, end = Gate(), Gate()
    chunks = chat_chunks("Bonjour.", reasoning="They speak French.")
    flow.script(stream([*chunks[:2], gate, *chunks[2:5], end], done=False), chat("Hello."))
    id = begun(flow, talk, "response.reasoning_text.delta", lane, store=store)
    steer(talk, id)
    event = accepted(talk, id, lane)
    assert event.get("stream_id", "") == lane
    gate.open()
    events = talk.rest(lane, begun=1)
    over = events[-1]["response"]
    assert (over["status"], over["incomplete_details"]) == ("incomplete", {"reason": "steered"})
    assert [(item["type"], item["status"]) for item in over["output"]] == [("reasoning", "completed")]
    flow.upstream.requests[-2 if len(flow.sent) > 1 else -1].closed.wait()
    following = talk.rest(lane)
    assert following[0]["type"] == "response.created"
    assert following[-1]["response"]["previous_response_id"] == id
    assert following[-1]["response"]["output_text"] == "Hello."
    first, second = flow.sent
    assert said(second)[-1] == ("user", "In English!")
    assert said(second)[0] == ("system", "Be brief.")
    assert (second["temperature"], second["tools"]) == (first["temperature"], first["tools"])
    mine = talk.seen[: len(talk.seen) - len(following)]
    assert [each["sequence_number"] for each in mine] == [*range(len(mine))]
    end.open()


def test_one_that_has_said_nothing_yet_ends_at_once(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    flow.script(stream([chat_chunks("x")[0], gate], done=False), chat("Hello."))
    id = begun(flow, talk, "response.in_progress")
    steer(talk, id, [{"role": "user", "content": [{"type": "input_text", "text": "In English!"}]}])
    accepted(talk, id)
    over = talk.rest(begun=1)[-1]["response"]
    assert (over["incomplete_details"], over["output"]) == ({"reason": "steered"}, [])
    flow.upstream.requests[-2 if len(flow.sent) > 1 else -1].closed.wait()
    assert talk.rest()[-1]["response"]["output_text"] == "Hello."
    assert [role for role, _ in said(flow.sent[1])] == ["system", "user", "user"]
    gate.open()


def test_a_plain_answer_is_one_item_and_completes_before_its_successor(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Bonjour le monde.")
    flow.script(stream([role, first, gate, *rest]), chat("Hello."), chat("ok"))
    id = begun(flow, talk, "response.output_text.delta")
    for words in ("In English!", "And shorter."):
        steer(talk, id, words)
        accepted(talk, id)
    talk.ask({**HI, "input": "asked meanwhile"})
    gate.open()
    assert talk.rest(begun=1)[-1]["response"]["status"] == "completed"
    assert talk.rest()[-1]["response"]["previous_response_id"] == id
    history = [("user", "hi"), ("assistant", "Bonjour le monde."), ("user", "In English!"), ("user", "And shorter.")]
    assert said(flow.sent[1])[1:] == history
    assert talk.rest()[-1]["response"]["output_text"] == "ok"


def test_a_message_is_completed_and_the_call_behind_it_is_not_made(flow: Flow, talk: Socket) -> None:
    gate, end = Gate(), Gate()
    chunks = chat_chunks("Let me see.", calls=[("call_1", "look", "{}")])
    flow.script(stream([*chunks[:2], gate, *chunks[2:], end], done=False), chat("Hello."))
    id = begun(flow, talk, "response.output_text.delta")
    asked = flow.wait_sent()
    steer(talk, id)
    accepted(talk, id)
    gate.open()
    over = talk.rest(begun=1)[-1]["response"]
    assert (over["status"], over["incomplete_details"]) == ("incomplete", {"reason": "steered"})
    assert [(item["type"], item["status"]) for item in over["output"]] == [("message", "completed")]
    asked.closed.wait()
    assert talk.rest()[-1]["response"]["output_text"] == "Hello."
    assert said(flow.sent[1])[-2:] == [("assistant", "Let me see."), ("user", "In English!")]
    end.open()


def test_a_response_that_calls_waits_for_the_outputs_of_the_client(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    chunks = chat_chunks("Let me see.", calls=[("call_1", "look", "{}")])
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]), chat("Four."))
    id = begun(flow, talk, "response.output_text.delta")
    gate.open()
    talk.until("response.output_item.done")
    talk.rest(begun=1)
    steer(talk, id)
    assert failed(talk, "response_already_completed")["steer"]["input"] == "In English!"
    output = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
    talk.answer({**HI, "previous_response_id": id, "input": [output]})

    gate = Gate()
    calls = chat_chunks(calls=[("call_2", "look", '{"a": 1}')], pieces=2)
    flow.script(stream([*calls[:2], gate, *calls[2:]]), chat("Four."))
    id = begun(flow, talk, "response.output_item.added")
    steer(talk, id)
    accepted(talk, id)
    gate.open()
    events = talk.rest(begun=1)
    assert events[-1]["response"]["status"] == "completed"
    pending = talk.next_of()
    assert (pending["type"], pending["reason"]) == ("response.steer.pending", "waiting_for_required_input")
    assert pending["required_input"] == [{"type": "function_call_output", "call_id": "call_2", "name": "look"}]
    assert pending["sequence_number"] == events[-1]["sequence_number"] + 1
    steer(talk, id, "And shorter.")
    accepted(talk, id)
    assert talk.next_of()["type"] == "response.steer.pending"
    assert talk.refused({**HI, "previous_response_id": "resp_nobody"})[1] == "previous_response_not_found"
    output = {"type": "function_call_output", "call_id": "call_2", "output": "4"}
    talk.answer({**HI, "previous_response_id": id, "input": [output]})
    # A chat model has results right behind their call; the words go between them and the next answer.
    assert said(flow.sent[-1])[-3:] == [("tool", "4"), ("user", "In English!"), ("user", "And shorter.")]


OUTPUT = {"type": "function_call_output", "call_id": "call_2", "output": "4"}


def pending(flow: Flow, talk: Socket, *then: Any, store: bool = False) -> tuple[str, Json]:
    """A response that has called, with words that wait for the output; what the model does after that."""
    gate = Gate()
    calls = chat_chunks(calls=[("call_2", "look", '{"a": 1}')], pieces=2)
    flow.script(stream([*calls[:2], gate, *calls[2:]]), *then)
    id = begun(flow, talk, "response.output_item.added", store=store)
    steer(talk, id)
    taken = accepted(talk, id)
    gate.open()
    talk.rest(begun=1)
    assert talk.next_of()["type"] == "response.steer.pending"
    return id, taken["steer"]


def test_words_that_waited_stand_before_the_outputs_of_the_client(flow: Flow, talk: Socket) -> None:
    id, _ = pending(flow, talk, chat("Four."), store=True)
    response = talk.answer({**HI, "store": True, "previous_response_id": id, "input": [OUTPUT]})
    kept = flow.get(f"/v1/responses/{response['id']}/input_items?order=asc").json["data"]
    assert [item["type"] for item in kept][-2:] == ["message", "function_call_output"]
    assert kept[-2]["content"] == [{"type": "input_text", "text": "In English!"}]


def test_nobody_is_told_to_wait_for_outputs_that_are_there(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    calls = chat_chunks(calls=[("call_2", "look", '{"a": 1}')], pieces=2)
    flow.script(stream([*calls[:2], gate, *calls[2:]]), chat("Four."))
    id = begun(flow, talk, "response.output_item.added")
    steer(talk, id)
    accepted(talk, id)
    talk.ask({**HI, "previous_response_id": id, "input": [OUTPUT]})
    steer(talk, "resp_nobody")  # answered at once: the frame before it waits by now
    failed(talk, "response_not_found")
    gate.open()
    talk.rest(begun=1)
    assert talk.rest()[-1]["response"]["output_text"] == "Four."
    assert said(flow.sent[1])[-2:] == [("tool", "4"), ("user", "In English!")]


def test_words_for_one_response_are_not_said_in_another_and_come_back(flow: Flow, talk: Socket) -> None:
    _, taken = pending(flow, talk, chat("Something else."), chat("And more."))
    end = talk.seen[-1]["sequence_number"]
    talk.ask({**HI, "input": "quite another thing"})
    back = failed(talk, "successor_creation_failed")
    assert (back["steer"], back["sequence_number"]) == ({**taken, "input": "In English!"}, end + 1)
    talk.rest()
    assert [text for role, text in said(flow.sent[1]) if role == "user"] == ["quite another thing"]
    talk.answer({**HI, "input": "more"})
    assert talk.seen[-1]["type"] == "response.completed"


@pytest.mark.parametrize("why", ["ours", "the provider's"])
def test_words_come_back_from_a_request_that_is_refused(flow: Flow, talk: Socket, why: str) -> None:
    """They would have been said in it; nobody is told of them otherwise."""
    id, taken = pending(flow, talk, *([error(400, "no more")] if why != "ours" else []), chat("ok"))
    end = talk.seen[-1]["sequence_number"]
    wrong = {"temperature": "hot"} if why == "ours" else {}
    talk.ask({**HI, "previous_response_id": id, "input": [OUTPUT], **wrong})
    back = failed(talk, "successor_creation_failed")
    assert (back["steer"], back["sequence_number"]) == ({**taken, "input": "In English!"}, end + 1)
    assert talk.refusal()["status"] == 400
    assert talk.answer(HI)["output_text"] == "ok"


def test_words_for_a_client_that_takes_its_time_keep_the_order(flow: Flow, talk: Socket) -> None:
    flow.script(stream(chat_chunks("a word and a blank " * 40_000, pieces=2_000)), chat("Hello."))
    # Words that come before its first item would end the response at once.
    id = begun(flow, talk, "response.output_text.delta")
    for _ in range(3):
        steer(talk, id)
    events = [talk.next_of()]
    while events[-1]["type"] != "response.completed":
        events.append(talk.next_of())
    first = events[0]["sequence_number"]
    assert [event["sequence_number"] for event in events] == [*range(first, first + len(events))]
    told = [event["type"] for event in talk.seen if event["type"].startswith("response.steer")]
    assert told == ["response.steer.accepted"] * 3
    assert talk.rest()[-1]["response"]["output_text"] == "Hello."


@pytest.mark.parametrize("input", [None, [], 7, [{"role": "assistant", "content": "x"}], [{"type": "item_reference"}]])
def test_words_that_are_none_are_given_back(flow: Flow, talk: Socket, input: Any) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello.")
    flow.script(stream([role, first, gate, *rest]))
    id = begun(flow, talk, "response.output_text.delta")
    steer(talk, id, input)
    assert failed(talk, "invalid_input")["steer"] == {"previous_response_id": id, "input": input}
    gate.open()
    talk.rest(begun=1)


def test_a_response_of_another_socket_is_not_found(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello.")
    flow.script(stream([role, first, gate, *rest]))
    id = begun(flow, talk, "response.output_text.delta", "a")
    with open_socket(flow.server.url) as other:
        steer(other, id)
        assert failed(other, "response_not_found")["sequence_number"] == 0
    gate.open()
    talk.rest("a", begun=1)


def test_so_many_words_and_no_more(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello.")
    flow.script(stream([role, first, gate, *rest]), chat("ok"))
    id = begun(flow, talk, "response.output_text.delta")
    for _ in range(MAX_STEERS):
        steer(talk, id)
        accepted(talk, id)
    steer(talk, id)
    failed(talk, "too_many_pending_steers")
    gate.open()
    talk.rest(begun=1)
    talk.rest()
    assert len([1 for role, _ in said(flow.sent[1]) if role == "user"]) == 1 + MAX_STEERS


def test_what_cannot_be_steered_says_so(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello.")
    flow.script(stream([role, first, gate, *rest]))
    managed = [{"type": "compaction", "compact_threshold": 200_000}]
    id = begun(flow, talk, "response.output_text.delta", context_management=managed)
    steer(talk, id)
    failed(talk, "steering_not_supported")
    gate.open()
    assert talk.rest(begun=1)[-1]["response"]["status"] == "completed"


def test_a_successor_that_cannot_be_made_gives_the_words_back(flow: Flow, talk: Socket) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello.")
    flow.script(stream([role, first, gate, *rest]), error(400, "no more"), chat("ok"))
    id = begun(flow, talk, "response.output_text.delta")
    steer(talk, id)
    taken = accepted(talk, id)
    gate.open()
    end = talk.rest(begun=1)[-1]
    back = failed(talk, "successor_creation_failed")
    assert back["steer"] == {**taken["steer"], "input": "In English!"}
    assert back["sequence_number"] == end["sequence_number"] + 1
    assert talk.answer(HI)["output_text"] == "ok"
