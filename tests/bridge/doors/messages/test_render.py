"""Responses told to clients of Messages: typed blocks, one at a time, streamed and whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from isthmus.bridge import deltas as d
from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.assemble.speech import Seal
from isthmus.bridge.at_once import end_here, feed_here
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, Reasoning, Text, VendorExtra
from isthmus.bridge.doors.messages.fold import fold_message
from isthmus.bridge.doors.messages.render import MessagesRenderer, render_message
from isthmus.bridge.envelope import seal
from isthmus.bridge.turn import Done, Turn
from isthmus.bridge.types.clients import MESSAGES
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from messages_stream import check_frames

Json = dict[str, Any]
KEY = b"k" * 32
ASKS: Json = {"include": ["reasoning.encrypted_content"]}


def sealer() -> Seal:
    return lambda sealed, kind="reasoning": seal(sealed, KEY, kind=kind)


def plan() -> Plan:
    return replace(plan_for(ASKS), seals_reasoning=True, client=MESSAGES)


def tell(*deltas: Delta, failure: UpstreamFailed | None = None) -> tuple[list[Any], Any]:
    turn = Turn(plan(), response_id="resp_1", now=1, seal=sealer())
    events: list[Any] = turn.accepted()
    for delta in deltas:
        events += feed_here(turn, [delta])
    done = turn.fail(failure, 2) if failure is not None else end_here(turn, 2)
    assert isinstance(done, Done)
    return events + done.events, done.response


def frames_of(events: list[Any], **how: Any) -> list[Json]:
    renderer = MessagesRenderer(**how)
    return [frame for event in events for frame in renderer.render(event)]


def both(*deltas: Delta, **how: Any) -> tuple[Json, list[Json]]:
    """The message of a whole reply, and the frames of the stream, which must fold into it."""
    events, response = tell(*deltas)
    frames = frames_of(events, **how)
    check_frames(frames)
    message = render_message(
        replay_events(response), **{name: value for name, value in how.items() if name != "input_tokens"}
    )
    assert {**fold_message(frames), "usage": message["usage"]} == message
    return message, frames


def test_a_text_is_told_in_the_order_of_the_protocol() -> None:
    message, frames = both(Text("Hel"), Text("lo"), Finished("stop"), input_tokens=7)
    assert [frame["type"] for frame in frames] == [
        *("message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta"),
        *("content_block_stop", "message_delta", "message_stop"),
    ]
    start = frames[0]["message"]
    assert (start["role"], start["content"], start["stop_reason"]) == ("assistant", [], None)
    assert start["usage"]["input_tokens"] == 7
    assert start["usage"]["output_tokens"] == 0
    assert start["id"] == "msg_1"
    assert message["content"] == [{"type": "text", "text": "Hello"}]
    assert message["isthmus"]["provider"] == "test"


def test_thinking_has_a_block_of_its_own_that_ends_with_one_signature() -> None:
    message, frames = both(Reasoning("h"), Reasoning("m"), Text("Hi"), Finished("stop"))
    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["thinking", "text"]
    assert message["content"][0]["thinking"] == "hm"
    signed = [frame for frame in frames if frame.get("delta", {}).get("type") == "signature_delta"]
    assert [frame["delta"]["signature"] for frame in signed] == [message["content"][0]["signature"]]
    assert message["content"][0]["signature"].startswith("isth2.")


def test_omitted_thinking_is_an_empty_block_with_its_signature() -> None:
    shown, _ = both(Reasoning("hm"), Text("Hi"), Finished("stop"))
    message, frames = both(Reasoning("hm"), Text("Hi"), Finished("stop"), shows_thinking=False)
    assert message["content"][0] == {**shown["content"][0], "thinking": ""}
    assert not [frame for frame in frames if frame.get("delta", {}).get("type") == "thinking_delta"]


def test_state_that_is_known_only_after_the_calls_gets_a_last_empty_block() -> None:
    calls = (CallOpened(0, "c0", "look"), CallArguments(0, "{}"), VendorExtra("extra_content", {"sig": "x"}, slot=0))
    message, _ = both(*calls, Finished("tool_calls"))
    assert [block["type"] for block in message["content"]] == ["tool_use", "thinking"]
    assert message["content"][1]["thinking"] == ""
    assert message["content"][1]["signature"]


def test_several_parts_of_one_thought_are_one_block() -> None:
    message, _ = both(
        Reasoning("one", "summary"),
        d.PartBegan("summary_text"),
        Reasoning("two", "summary"),
        Text("Hi"),
        Finished("stop"),
    )
    assert [block.get("thinking") for block in message["content"]] == ["one\n\ntwo", None]


def test_interleaved_calls_come_one_after_the_other() -> None:
    message, _ = both(
        CallOpened(0, "c0", "look"),
        CallOpened(1, "c1", "find"),
        CallArguments(1, '{"b"'),
        CallArguments(0, '{"a"'),
        CallArguments(1, ":2}"),
        CallArguments(0, ":1}"),
        Finished("tool_calls"),
    )
    assert [(block["id"], block["name"], block["input"]) for block in message["content"]] == [
        ("c0", "look", {"a": 1}),
        ("c1", "find", {"b": 2}),
    ]
    assert message["stop_reason"] == "tool_use"


def test_words_that_come_while_a_call_is_open_wait_for_it() -> None:
    message, _ = both(
        CallOpened(0, "c0", "look"),
        CallArguments(0, '{"a"'),
        Text("meanwhile"),
        CallArguments(0, ":1}"),
        Finished("stop"),
    )
    assert [block["type"] for block in message["content"]] == ["tool_use", "text"]
    assert message["content"][0]["input"] == {"a": 1}


def test_two_messages_and_two_parts_stay_apart() -> None:
    message, _ = both(
        *(d.ItemBegan("message"), Text("One."), d.PartBegan("output_text"), Text("Two."), d.ItemEnded()),
        *(d.ItemBegan("message"), Text("Three."), d.ItemEnded(), Finished("stop")),
    )
    assert [block["text"] for block in message["content"]] == ["One.", "Two.", "Three."]


def test_the_model_is_called_as_it_was_asked_for() -> None:
    message, frames = both(Text("a"), Finished("stop"), model="zhipu/glm-5")
    assert message["model"] == frames[0]["message"]["model"] == "zhipu/glm-5"


def test_an_answer_without_a_word_has_no_block() -> None:
    message, _ = both(Finished("stop"))
    assert (message["content"], message["stop_reason"]) == ([], "end_turn")


def test_a_refusal_is_text() -> None:
    message, _ = both(d.Refusal("I will not."), Finished("stop"))
    assert message["content"] == [{"type": "text", "text": "I will not."}]


def test_a_search_of_the_provider_is_told_with_what_it_found() -> None:
    action = {"type": "search", "query": "isthmus", "sources": [{"type": "url", "url": "https://a.example"}]}
    cited = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}
    message, _ = both(
        d.HostedCall({"type": "web_search_call", "status": "completed", "action": action}),
        Text("Found."),
        d.Annotation(cited),
        Finished("stop"),
    )
    asked, found, text = message["content"]
    assert (asked["type"], asked["name"], asked["input"]) == ("server_tool_use", "web_search", {"query": "isthmus"})
    assert found["tool_use_id"] == asked["id"]
    assert [(one["title"], one["url"]) for one in found["content"]] == [("https://a.example", "https://a.example")]
    assert text["citations"][0]["url"] == "https://a.example"
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1
    failed, _ = both(d.HostedCall({"type": "web_search_call", "status": "failed", "action": {}}), Finished("stop"))
    assert failed["content"][1]["content"]["type"] == "web_search_tool_result_error"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_is_overloaded", "overloaded_error"),
        ("rate_limit_exceeded", "rate_limit_error"),
        ("server_error", "api_error"),
    ],
)
def test_a_failure_leaves_open_what_it_broke_off_and_ends_with_one_error(code: str, kind: str) -> None:
    events, _ = tell(
        Text("Hel"), CallOpened(0, "c0", "a"), CallOpened(1, "c1", "b"), failure=UpstreamFailed("it broke", code=code)
    )
    frames = frames_of(events)
    check_frames(frames, failed=True)
    assert frames[-1] == {"type": "error", "error": {"type": kind, "message": "it broke"}}


def test_a_sign_of_life_is_a_ping() -> None:
    turn = Turn(plan(), response_id="resp_1", now=1)
    renderer = MessagesRenderer()
    for event in turn.accepted():
        renderer.render(event)
    assert renderer.render(turn.heartbeat()) == [{"type": "ping"}]


words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
steps: st.SearchStrategy[Delta] = st.one_of(
    words.map(Text),
    words.map(Reasoning),
    st.just(d.ItemBegan("message")),
    st.just(d.ItemBegan("reasoning")),
    st.just(d.PartBegan("output_text")),
    st.just(d.ItemEnded()),
    words.map(d.Refusal),
    st.just(VendorExtra("reasoning_details", [{"type": "x", "data": "y"}])),
)


@st.composite
def replies(draw: st.DrawFn) -> list[Delta]:
    """Any order of steps, with calls whose fragments are strewn among them."""
    told: list[Delta] = draw(st.lists(steps, max_size=8))
    if draw(st.booleans()):  # a provider shows its thinking, or summaries of it
        told = [Reasoning(step.text, "summary") if isinstance(step, Reasoning) else step for step in told]
    for slot in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(told)))
        told.insert(at, CallOpened(slot, f"c{slot}", "look"))
        for piece in draw(st.sampled_from([['{"a":', "1}"], ["{}"], [], ['{"a'], ['{"a":"', "b", '"}']])):
            at = draw(st.integers(at + 1, len(told)))
            told.insert(at, CallArguments(slot, piece))
    return [*told, Finished(draw(st.sampled_from(["stop", "tool_calls", "length", "content_filter"])))]


@given(replies(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_whole_message_is_its_stream_folded(reply: list[Delta], shows: bool) -> None:
    both(*reply, shows_thinking=shows)


@given(replies(), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_a_stream_that_breaks_off_anywhere_ends_in_order(reply: list[Delta], at: int) -> None:
    events, _ = tell(*reply[: min(at, len(reply) - 1)], failure=UpstreamFailed("cut"))
    check_frames(frames_of(events), failed=True)
