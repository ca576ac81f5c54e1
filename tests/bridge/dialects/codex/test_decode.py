from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    ItemBegan,
    ItemEnded,
    PartBegan,
    Reasoning,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.dialects.codex.decode import LegDecoder

NAMES = {"get_weather": "get_weather", "client_shell": "shell"}
USAGE = {"inputTokens": 10, "cachedInputTokens": 3, "outputTokens": 5, "reasoningOutputTokens": 2, "totalTokens": 15}
Message = tuple[str, dict[str, Any]]


def _text(text: str, item: str = "m1") -> Message:
    return "item/agentMessage/delta", {"itemId": item, "delta": text}


def _message(text: str, item: str = "m1") -> Message:
    return "item/completed", {"item": {"type": "agentMessage", "id": item, "text": text}}


def _raw(call_id: str, arguments: str = "{}", name: str = "get_weather") -> Message:
    item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    return "rawResponseItem/completed", {"item": item}


def _settled(call_id: str) -> Message:
    return "rawResponseItem/completed", {"item": {"type": "function_call_output", "call_id": call_id, "output": "x"}}


def _call(call_id: str, arguments: Any = None, tool: str = "get_weather") -> Message:
    return "item/tool/call", {"callId": call_id, "tool": tool, "arguments": arguments or {}, "namespace": None}


RESPONSE: Message = ("rawResponse/completed", {"responseId": "r", "usage": USAGE})
DONE: Message = ("turn/completed", {"turn": {"status": "completed", "error": None}})


def _bounded(*messages: Message, decoder: LegDecoder | None = None) -> tuple[LegDecoder, list[Delta]]:
    decoder = decoder or LegDecoder(NAMES)
    return decoder, [delta for method, params in messages for delta in decoder.feed(method, params)]


def _feed(*messages: Message, decoder: LegDecoder | None = None) -> tuple[LegDecoder, list[Delta]]:
    """What is said, without the bounds of items."""
    decoder, deltas = _bounded(*messages, decoder=decoder)
    return decoder, [delta for delta in deltas if not isinstance(delta, ItemBegan | ItemEnded)]


def _used(times: int = 1) -> Used:
    return Used(Usage(10 * times, 5 * times, 15 * times, cached_tokens=3 * times, reasoning_tokens=2 * times))


def test_text_streams_and_the_turn_ends() -> None:
    decoder, deltas = _feed(_text("he"), _text("llo"), _message("hello"), RESPONSE, DONE)
    assert deltas == [Text("he"), Text("llo"), _used(), Finished("stop")]
    assert decoder.state == "ended"


@pytest.mark.parametrize("streamed", ["", "hel"], ids=["nothing-streamed", "half-streamed"])
def test_text_that_was_not_streamed_is_not_lost(streamed: str) -> None:
    _, deltas = _feed(*([_text(streamed)] if streamed else []), _message("hello"), RESPONSE, DONE)
    assert "".join(delta.text for delta in deltas if isinstance(delta, Text)) == "hello"


def test_two_messages_are_kept_apart() -> None:
    _, deltas = _bounded(_text("One.", "m1"), _message("One.", "m1"), _text("Two.", "m2"), _message("Two.", "m2"))
    assert deltas == [
        *(ItemBegan("message", None, "m1"), Text("One."), ItemEnded()),
        *(ItemBegan("message", None, "m2"), Text("Two."), ItemEnded()),
    ]


def _started(item: str, phase: str | None) -> Message:
    return "item/started", {"item": {"type": "agentMessage", "id": item, "text": "", "phase": phase}}


@pytest.mark.parametrize(
    ("phase", "shown"),
    [("commentary", "commentary"), ("final_answer", "final_answer"), ("partial_answer", None), (None, None)],
)
def test_a_message_keeps_its_phase(phase: str | None, shown: Any) -> None:
    _, deltas = _bounded(_started("m1", phase), _text("One."))
    assert deltas == [ItemBegan("message", shown, "m1"), Text("One.")]


def test_a_phase_that_is_known_only_at_the_end_is_said_there() -> None:
    whole = {"type": "agentMessage", "id": "m1", "text": "One.", "phase": "final_answer"}
    _, deltas = _bounded(_text("One."), ("item/completed", {"item": whole}))
    assert deltas == [ItemBegan("message", None, "m1"), Text("One."), ItemEnded(phase="final_answer")]


SEALED = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "blob"}


@pytest.mark.parametrize("spoke", [False, True], ids=["in-silence", "aloud"])
def test_encrypted_reasoning_comes_with_the_thought_that_it_belongs_to(spoke: bool) -> None:
    aloud: list[Message] = [("item/reasoning/textDelta", {"itemId": "r", "delta": "hm"})] if spoke else []
    _, deltas = _bounded(*aloud, ("rawResponseItem/completed", {"item": SEALED}), _text("One."))
    assert [delta for delta in deltas if not isinstance(delta, Reasoning)] == [
        ItemBegan("reasoning", None, "r"),
        VendorExtra("encrypted_content", [SEALED]),
        ItemEnded(),
        ItemBegan("message", None, "m1"),
        Text("One."),
    ]


def test_reasoning_has_its_kind() -> None:
    _, deltas = _feed(
        ("item/reasoning/summaryPartAdded", {"itemId": "r", "summaryIndex": 0}),
        ("item/reasoning/summaryTextDelta", {"itemId": "r", "delta": "a", "summaryIndex": 0}),
        ("item/reasoning/summaryPartAdded", {"itemId": "r", "summaryIndex": 1}),
        ("item/reasoning/textDelta", {"itemId": "r", "delta": "raw", "contentIndex": 0}),
    )
    assert deltas == [Reasoning("a", "summary"), PartBegan("summary_text"), Reasoning("raw", "text")]


def test_arguments_are_verbatim() -> None:
    decoder, deltas = _feed(_raw("c1", '{"city" :  "Paris"}'), RESPONSE, _call("c1", {"city": "Paris"}))
    assert deltas == [
        CallOpened(0, "c1", "get_weather"),
        CallArguments(0, '{"city" :  "Paris"}', whole=True),
        _used(),
        Finished("tool_calls"),
    ]
    assert (decoder.state, decoder.calls) == ("paused", ["c1"])


def test_the_leg_pauses_only_when_the_response_is_complete_and_codex_waits() -> None:
    decoder, _ = _feed(_raw("c1"), _call("c1"))
    assert decoder.state == "open"
    decoder, _ = _feed(RESPONSE, decoder=decoder)
    assert decoder.state == "paused"
    decoder, _ = _feed(_raw("c1"), RESPONSE)
    assert decoder.state == "open"


@pytest.mark.parametrize(
    "order", list(permutations([RESPONSE, _call("c1"), _call("c2")])), ids=lambda order: "-".join(m[0] for m in order)
)
def test_any_order_of_completion_and_requests_gives_the_same_calls(order: tuple[Message, ...]) -> None:
    decoder, deltas = _feed(_raw("c1", '{"a": 1}'), _raw("c2", '{"b": 2}'), *order)
    assert decoder.state == "paused"
    assert decoder.calls == ["c1", "c2"]
    assert [delta.text for delta in deltas if isinstance(delta, CallArguments)] == ['{"a": 1}', '{"b": 2}']
    assert sum(isinstance(delta, Finished) for delta in deltas) == 1


def test_one_request_is_enough_where_codex_asks_for_calls_one_by_one() -> None:
    decoder, _ = _feed(_raw("c1"), _raw("c2"), RESPONSE, _call("c2"))
    assert (decoder.state, decoder.calls) == ("paused", ["c1", "c2"])


def test_calls_that_codex_answers_itself_are_not_the_clients() -> None:
    decoder, deltas = _feed(
        _raw("bad", '{"city": '), _raw("own", "{}", name="nope"), RESPONSE, _settled("bad"), _settled("own")
    )
    assert decoder.state == "open"
    assert not any(isinstance(delta, CallOpened) for delta in deltas)
    decoder, deltas = _feed(_text("sorry"), RESPONSE, DONE, decoder=decoder)
    assert deltas == [Text("sorry"), _used(2), Finished("stop")]


def test_a_call_from_code_mode_has_no_raw_item_and_still_pauses() -> None:
    raw: Message = ("rawResponseItem/completed", {"item": {"type": "custom_tool_call", "name": "exec"}})
    decoder, deltas = _feed(raw, RESPONSE, _call("exec-1", {"city": "Rome"}))
    assert deltas[1:] == [
        CallOpened(0, "exec-1", "get_weather"),
        CallArguments(0, '{"city":"Rome"}', whole=True),
        Finished("tool_calls"),
    ]
    next_leg, deltas = _feed(_call("exec-2", {"city": "Oslo"}))
    assert next_leg.calls == ["exec-2"]
    assert decoder.state == next_leg.state == "paused"


def test_a_call_is_given_back_under_the_clients_name() -> None:
    _, deltas = _feed(_raw("c1", name="client_shell"), RESPONSE, _call("c1", tool="client_shell"))
    assert deltas[0] == CallOpened(0, "c1", "shell")


def test_a_retry_that_codex_announces_is_not_final() -> None:
    retry: Message = ("error", {"error": {"message": "m", "codexErrorInfo": "other"}, "willRetry": True})
    decoder, deltas = _feed(retry, _text("hi"), _message("hi"), RESPONSE, DONE)
    assert deltas == [Text("hi"), _used(), Finished("stop")]
    assert decoder.state == "ended"


def test_a_retry_after_words_were_passed_on_fails_instead_of_repeating_them() -> None:
    retry: Message = ("error", {"error": {"message": "broke off", "codexErrorInfo": "other"}, "willRetry": True})
    decoder, deltas = _feed(_text("half an ans"), retry, _text("half an answer"))
    assert deltas == [Text("half an ans"), Failed("broke off", "server_error")]
    assert decoder.state == "abandoned"


def test_a_failed_turn_says_why_exactly_once() -> None:
    error = {"message": "slow down", "codexErrorInfo": "rateLimitExceeded"}
    decoder, deltas = _feed(
        ("error", {"error": error, "willRetry": False}),
        ("turn/completed", {"turn": {"status": "failed", "error": error}}),
    )
    assert deltas == [Failed("slow down", "rate_limit_exceeded")]
    assert decoder.feed(*DONE) == []


def test_an_answer_cut_short_keeps_its_words_and_says_length() -> None:
    error = {"message": "Incomplete response returned, reason: max_output_tokens", "codexErrorInfo": "other"}
    _, deltas = _feed(_text("half"), ("turn/completed", {"turn": {"status": "failed", "error": error}}))
    assert deltas == [Text("half"), Finished("length")]


def test_an_interrupted_turn_is_a_failure() -> None:
    decoder, deltas = _feed(("turn/completed", {"turn": {"status": "interrupted"}}))
    assert isinstance(deltas[0], Failed)
    assert decoder.state == "failed"


def test_what_does_not_concern_us_is_passed_over() -> None:
    user: Message = ("rawResponseItem/completed", {"item": {"type": "message", "role": "user", "content": []}})
    _, deltas = _feed(
        user, ("warning", {"message": "m"}), ("thread/status/changed", {}), ("item/started", {"item": {}})
    )
    assert deltas == []


def test_dynamic_tool_call_request_opens_a_call_and_ends_the_leg() -> None:
    """The event of the seed: it marks no end of a response, so the call itself is one."""
    call: Message = ("dynamic_tool_call_request", {"callId": "call_1", "tool": "get_weather", "arguments": {"id": 1}})
    decoder, deltas = _feed(_text("hi"), call)
    assert deltas == [
        Text("hi"),
        CallOpened(0, "call_1", "get_weather"),
        CallArguments(0, '{"id":1}', whole=True),
        Finished("tool_calls"),
    ]
    assert (decoder.state, decoder.calls) == ("paused", ["call_1"])
