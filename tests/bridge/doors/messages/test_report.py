"""How an answer ended and what it took, for clients of Messages."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ParameterRule
from isthmus.bridge.deltas import SOME_STOP, CallArguments, CallOpened, Finished, Text, Usage, Used
from isthmus.bridge.doors.messages.report import in_order, render_usage, stop_of
from isthmus.bridge.types.plan import Plan
from isthmus.testing.fold import fold, plan_for

CALL = (CallOpened(0, "c", "look"), CallArguments(0, "{}"))


def stopping(*words: str) -> Plan:
    """A plan of a request with these stop sequences."""
    return plan_for({"stop": list(words)}, parameters={"stop": ParameterRule()})


@pytest.mark.parametrize(
    ("deltas", "stop"),
    [
        ((Text("a"), Finished("stop")), ("end_turn", None)),
        ((*CALL, Finished("tool_calls")), ("tool_use", None)),
        ((Text("a"), *CALL, Finished("stop")), ("tool_use", None)),
        ((Text("a"), Finished("stop", "END")), ("stop_sequence", "END")),
        ((Text("a"), Finished("stop_sequence", "END")), ("stop_sequence", "END")),
        ((Text("a"), Finished("stop_sequence")), ("end_turn", None)),
        ((Text("a"), Finished("stop", "<|im_end|>")), ("end_turn", None)),  # a word of the server's own
        ((Text("a"), Finished("stop_sequence", SOME_STOP)), ("end_turn", None)),  # which of the two?
        ((*CALL, Finished("tool_calls", "END")), ("tool_use", None)),
        ((Text("a"), Finished("length", "END")), ("max_tokens", None)),
        ((Text("a"), Finished("stop", "END"), Finished("stop")), ("stop_sequence", "END")),  # the end told twice
        ((Text("a"), Finished("length")), ("max_tokens", None)),
        ((Text("a"), Finished("model_context_window_exceeded")), ("max_tokens", None)),
        ((Text("a"), Finished("pause_turn")), ("max_tokens", None)),
        ((Text("a"), Finished("content_filter")), ("refusal", None)),
        ((Text("a"), Finished("refusal")), ("refusal", None)),
    ],
)
def test_every_end_has_its_reason(deltas: Any, stop: tuple[str, str | None]) -> None:
    response: Any = fold(*deltas, plan=stopping("END", "STOP"))
    told = stop_of(response)
    assert (told["stop_reason"], told["stop_sequence"]) == stop
    assert (told["stop_details"] is not None) == (stop[0] == "refusal")


def test_one_that_is_not_named_is_known_where_there_is_only_one() -> None:
    met = (Text("a"), Finished("stop_sequence", SOME_STOP))
    assert stop_of(fold(*met, plan=stopping("END")))["stop_sequence"] == "END"  # type: ignore[arg-type]
    assert stop_of(fold(*met, plan=stopping()))["stop_reason"] == "end_turn"  # type: ignore[arg-type]


def test_what_a_cache_had_to_do_with_is_counted_apart() -> None:
    used = Usage(input_tokens=100, output_tokens=9, total_tokens=109, cached_tokens=70, reasoning_tokens=4)
    response: Any = fold(Text("a"), Used(used), Finished("stop"))
    usage = render_usage(response, 5)
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (
        30,
        70,
        0,
    )
    assert usage["output_tokens"] == 9
    assert usage["output_tokens_details"] == {"thinking_tokens": 4}
    written: Any = fold(Text("a"), Used(Usage(100, 9, 109, 70, 4, 20)), Finished("stop"))
    counted = render_usage(written, 5)
    assert sum(counted[name] for name in counted if name.endswith("input_tokens")) == 100
    assert counted["cache_creation"]["ephemeral_5m_input_tokens"] == 20


def test_without_figures_there_is_an_estimate_and_every_integer() -> None:
    response: Any = fold(Text("a"), Finished("stop"))
    usage = render_usage(response, 5)
    assert (usage["input_tokens"], usage["output_tokens"]) == (5, 0)
    assert isinstance(usage["cache_read_input_tokens"], int)
    assert render_usage(response, 5, searches=2)["server_tool_use"]["web_search_requests"] == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("r c c m", "r m c c"),
        ("c m r", "m c r"),
        ("r m c", "r m c"),
        ("c m c", "c m c"),
        ("m", "m"),
        ("c", "c"),
        ("c r", "c r"),
        ("", ""),
    ],
)
def test_words_stand_before_the_calls_of_their_turn(given: str, told: str) -> None:
    kinds = {"r": "reasoning", "c": "function_call", "m": "message"}
    response: Any = {"output": [{"type": kinds[letter]} for letter in given.split()]}
    assert [item["type"] for item in in_order(response)["output"]] == [kinds[letter] for letter in told.split()]
