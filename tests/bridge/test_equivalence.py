"""The law of the house: a whole reply and its stream, cut anywhere, give the same items, statuses and usage."""

from __future__ import annotations

import itertools
import json
from typing import Any, cast

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.at_once import end_here
from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.codex.decode import LegDecoder
from isthmus.bridge.doors.messages.fold import fold_message
from isthmus.bridge.doors.messages.read import receive_messages_request
from isthmus.bridge.doors.messages.render import MessagesRenderer, render_message
from isthmus.bridge.envelope import seal
from isthmus.bridge.sse import SseParser
from isthmus.bridge.turn import Done, Turn
from isthmus.bridge.types.clients import MESSAGES
from isthmus.bridge.types.plan import Host, Plan
from isthmus.protocol.json import read_json
from isthmus.protocol.response import FinishedResponse
from isthmus.testing.fold import plan_for, stream
from messages_stream import check_frames
from wire.oracle import check_stream

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "function", "name": "g", "parameters": {"type": "object"}},
    {"type": "custom", "name": "note"},
    {"type": "shell"},
    {"type": "apply_patch"},
    {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "echo"}]},
]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORMAT = {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}
ONLY_F = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
PLANS = {
    "plain": plan_for({"tools": TOOLS}),
    "allowed tools": plan_for(
        {
            "tools": TOOLS,
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
        }
    ),
    "loose contract": plan_for({"text": {"format": {**FORMAT, "strict": False}}}),
    "no tools": plan_for({}),
}

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
arguments = st.one_of(
    st.dictionaries(st.sampled_from(["a", "input", "commands", "operation"]), words, max_size=2).map(
        lambda value: json.dumps(value, ensure_ascii=False)
    ),
    st.sampled_from(['{"commands": ["ls", "pwd"]}', '{"input": "x\\ny"}', "{}", "", "raw text", '{"cut": "of']),
)
calls = st.lists(
    st.tuples(st.sampled_from(["f", "g", "note", "shell", "apply_patch", "mcp__x__echo", "unknown"]), arguments),
    max_size=3,
)
usages = st.none() | st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 99), "completion_tokens": st.integers(0, 99)},
    optional={"total_tokens": st.integers(0, 200), "prompt_tokens_details": st.just({"cached_tokens": 3})},
)
replies = st.fixed_dictionaries(
    {
        "content": st.none() | words,
        "reasoning_content": st.none() | words,
        "refusal": st.none() | st.just("I will not."),
        "calls": calls,
        "finish": st.sampled_from(["stop", "tool_calls", "length", "content_filter", "network_error", "odd", None]),
        "usage": usages,
    }
)


def message_of(reply: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply["content"]}
    for field in ("reasoning_content", "refusal"):
        if reply[field]:
            message[field] = reply[field]
    if reply["calls"]:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": text}}
            for n, (name, text) in enumerate(reply["calls"])
        ]
    return message


def whole(reply: dict[str, Any]) -> list[Delta]:
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message_of(reply), "finish_reason": reply["finish"]}]}
    if reply["usage"] is not None:
        body["usage"] = reply["usage"]
    return ChatDecoder(ReplyRules()).reply(json.dumps(body).encode())


def pieces(draw: Any, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    edges = [0, *cuts, len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


def streamed(draw: Any, reply: dict[str, Any]) -> list[list[Delta]]:
    """The same reply as a vendor would stream it: SSE bytes, cut anywhere."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for field in ("reasoning_content", "content", "refusal"):
        if reply[field]:
            deltas += [{field: piece} for piece in pieces(draw, reply[field])]
    opened = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": ""}}
        for n, (name, _) in enumerate(reply["calls"])
    ]
    rest = [
        [{"index": n, "function": {"arguments": piece}} for piece in pieces(draw, text)]
        for n, (_, text) in enumerate(reply["calls"])
    ]
    if draw(st.booleans()) and opened:  # interleaved
        deltas += [{"tool_calls": [call]} for call in opened]
        while any(rest):
            n = draw(st.sampled_from([i for i, queue in enumerate(rest) if queue]))
            deltas.append({"tool_calls": [rest[n].pop(0)]})
    else:
        for call, queue in zip(opened, rest, strict=True):
            deltas += [{"tool_calls": [call]}, *({"tool_calls": [fragment]} for fragment in queue)]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reply["finish"]}]})
    if reply["usage"] is not None:
        chunks.append({"choices": [], "usage": reply["usage"]})
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    edges = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=8))})
    parser, decoder = SseParser(), ChatDecoder(ReplyRules())
    batches: list[list[Delta]] = []
    for start, stop in itertools.pairwise(edges):
        batches.append(decoder.chunks(parser.feed(data[start:stop])))
    return [*batches, decoder.end()]


def essence(response: dict[str, Any]) -> dict[str, Any]:
    """What must be equal: not the order of items, nor ids that count their place."""
    items = []
    for item in response["output"]:
        kept = {name: value for name, value in item.items() if name != "id"}
        items.append(json.dumps(kept, sort_keys=True))
    told = sorted(
        json.dumps({**said, "path": said["path"].partition(".")[0]}, sort_keys=True)
        for said in response["isthmus"]["diagnostics"]
    )
    return {
        "items": sorted(items),
        "told": told,
        **{name: response[name] for name in ("status", "error", "incomplete_details", "usage", "output_text")},
    }


@given(st.data(), replies, st.sampled_from(sorted(PLANS)))
@settings(max_examples=600, deadline=None)
def test_a_whole_reply_equals_its_stream_folded(data: st.DataObject, reply: dict[str, Any], name: str) -> None:
    plan: Plan = PLANS[name]
    folded_events, folded = stream([whole(reply)], plan=plan)
    live_events, live = stream(streamed(data.draw, reply), plan=plan)
    check_stream(folded_events)
    check_stream(live_events)
    assert essence(folded) == essence(live)


@given(st.data(), replies, st.sampled_from(sorted(PLANS)))
@settings(deadline=None)
def test_deltas_are_told_the_same_alone_and_together(data: st.DataObject, reply: dict[str, Any], name: str) -> None:
    batches = streamed(data.draw, reply)
    alone = [[delta] for batch in batches for delta in batch]
    assert stream(alone, plan=PLANS[name]) == stream(batches, plan=PLANS[name])
    assert stream([list(itertools.chain(*batches))], plan=PLANS[name]) == stream(batches, plan=PLANS[name])


# Asked again

ASKS = plan_for({"text": {"format": FORMAT}, "stream": True}, host=Host(repair_budget=1))
answers = st.fixed_dictionaries({"content": words | st.just('{"a": 1}'), "reasoning_content": st.none() | words})


def conduct(attempts: list[list[list[Delta]]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    turn = Turn(ASKS, response_id="resp_1", now=1)
    events: list[Any] = turn.accepted()
    for batches in attempts:
        for batch in batches:
            events += turn.feed(batch)
        ended = end_here(turn, 2)
        if isinstance(ended, Done):
            return events + ended.events, dict(ended.response)
    raise AssertionError("the budget is one more answer")


@given(st.data(), answers, answers)
@settings(max_examples=150, deadline=None)
def test_an_answer_that_is_asked_for_again_is_the_same_whole_and_streamed(
    data: st.DataObject, first: dict[str, Any], second: dict[str, Any]
) -> None:
    both = [{"refusal": None, "calls": [], "finish": "stop", "usage": None, **answer} for answer in (first, second)]
    folded_events, folded = conduct([[whole(reply)] for reply in both])
    live_events, live = conduct([streamed(data.draw, reply) for reply in both])
    check_stream(folded_events)
    check_stream(live_events)
    assert essence(folded) == essence(live)


# Codex: the same turn in deltas, and as completed items only

spoken = st.lists(
    st.tuples(words.filter(bool), st.sampled_from([None, "commentary", "final_answer"])), min_size=1, max_size=3
)


@given(spoken, st.lists(words.filter(bool), max_size=2), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_codex_turn_is_the_same_in_deltas_and_as_completed_items(
    said: list[tuple[str, str | None]], thought: list[str], calls: bool
) -> None:
    def turn(live: bool) -> dict[str, Any]:
        decoder, deltas = LegDecoder({"f": "f"}), list[Delta]()
        for number, text in enumerate(thought):
            place = {"itemId": f"r{number}", "summaryIndex": 0}
            deltas += decoder.feed("item/reasoning/summaryTextDelta", {**place, "delta": text})
        for number, (text, phase) in enumerate(said):
            item = {"type": "agentMessage", "id": f"m{number}", "phase": phase}
            deltas += decoder.feed("item/started", {"item": {**item, "text": ""}})
            for char in text if live else "":
                deltas += decoder.feed("item/agentMessage/delta", {"itemId": f"m{number}", "delta": char})
            deltas += decoder.feed("item/completed", {"item": {**item, "text": text}})
        if calls:
            call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
            deltas += decoder.feed("rawResponseItem/completed", {"item": call})
        deltas += decoder.feed("turn/completed", {"turn": {"status": "completed"}})
        events, response = stream([[delta] for delta in deltas], plan=PLANS["plain"])
        check_stream(events)
        return essence(response)

    whole_turn = turn(False)
    assert turn(True) == whole_turn
    assert len(whole_turn["items"]) == len(said) + len(thought) + calls


# The door of Messages: the same law, and the way there and back


def told_as_message(events: list[Any]) -> dict[str, Any]:
    renderer = MessagesRenderer()
    frames = [frame for event in events for frame in renderer.render(event)]
    failed = frames[-1]["type"] == "error"
    check_frames(frames, failed=failed)
    return {"failed": frames[-1]} if failed else fold_message(frames)


@given(st.data(), replies, st.sampled_from(sorted(PLANS)))
@settings(max_examples=200, deadline=None)
def test_a_message_is_the_same_whole_and_streamed(data: st.DataObject, reply: dict[str, Any], name: str) -> None:
    plan: Plan = msgspec.structs.replace(PLANS[name], client=MESSAGES)
    folded, _ = stream([whole(reply)], plan=plan)
    live, response = stream(streamed(data.draw, reply), plan=plan)
    one, other = told_as_message(folded), told_as_message(live)
    if "failed" in one:
        assert one == other
        return
    assert render_message(replay_events(cast(FinishedResponse, response))) == other
    blocks = [sorted(json.dumps(block, sort_keys=True) for block in message["content"]) for message in (one, other)]
    assert blocks[0] == blocks[1]
    assert [one[name] for name in ("stop_reason", "usage")] == [other[name] for name in ("stop_reason", "usage")]


@given(st.data(), replies)
@settings(max_examples=200, deadline=None)
def test_what_a_message_says_comes_back_as_it_was_said(data: st.DataObject, reply: dict[str, Any]) -> None:
    """The blocks that a client is told, sent back by it, are the items that were told: words, thoughts, envelopes,
    calls with their ids; in their order."""
    plan: Plan = msgspec.structs.replace(PLANS["no tools"], client=MESSAGES, seals_reasoning=True)
    key = b"k" * 32
    turn = Turn(plan, response_id="resp_1", now=1, seal=lambda sealed, kind="reasoning": seal(sealed, key, kind=kind))
    events: list[Any] = turn.accepted()
    for batch in streamed(data.draw, reply):
        events += turn.feed(batch)
    done = end_here(turn, 2)
    assert isinstance(done, Done)
    if done.response["status"] == "failed":
        return
    message = told_as_message(events + done.events)
    asked = {"model": "m", "max_tokens": 1, "messages": [{"role": "assistant", "content": message["content"]}]}
    back = receive_messages_request(asked).request.items
    assert _essence_of(back) == _essence_of(done.response["output"])


def _essence_of(items: Any) -> list[Any]:
    found: list[Any] = []
    for item in items:
        match item["type"]:
            case "message":
                texts = [part.get("text") or part.get("refusal") for part in item["content"]]
                found += [("text", text) for text in texts if text]
            case "reasoning":
                words = "\n\n".join(part["text"] for part in (*item.get("content", ()), *item["summary"]))
                found.append(("thought", words, item.get("encrypted_content")))
            case "function_call":
                given = read_json(item["arguments"]) if item["arguments"].strip() else {}
                given = given if isinstance(given, dict) else {"_raw": item["arguments"]}
                found.append(("call", item["call_id"], item["name"], given))
    return found
