"""What one request may ask us to do: refused by name before anything is built, and cheap to find out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubling import LINEAR, growth
from isthmus.bridge.doors.chat.read import receive_chat_request
from isthmus.bridge.limits import (
    DEFAULT_LIMITS,
    OWN_LIMITS,
    RequestLimits,
    check_body,
    check_input,
    few_values,
    is_heavy,
)
from isthmus.bridge.parse import decode_json, parse_request
from isthmus.errors import RequestRefused
from isthmus.protocol.json import _count_outside, count_values

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
MESSAGE = {"role": "user", "content": "hi"}


def pairs(count: int) -> list[Any]:
    called = [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in range(count)]
    return [*called, *({"type": "function_call_output", "call_id": f"c{n}", "output": "y"} for n in range(count))]


def tools(count: int) -> list[Any]:
    return [{"type": "function", "name": f"f{n}"} for n in range(count)]


ATTACKS = {
    "300k image parts": ({"input": [{"role": "user", "content": [IMAGE] * 300_000}]}, "max_values"),
    "30k image parts": ({"input": [{"role": "user", "content": [IMAGE] * 30_000}]}, "max_parts"),
    "13M empty lists": ({"input": "x", "metadata": [[]] * 13_000_000}, "max_values"),
    "100k tools": ({"input": "x", "tools": tools(100_000)}, "max_values"),
    "20k tools": ({"input": "x", "tools": tools(20_000)}, "max_tools"),
    "a namespace of 20k tools": (
        {"input": "x", "tools": [{"type": "namespace", "name": "n", "tools": tools(20_000)}]},
        "max_tools",
    ),
    "an item of 20k tools": ({"input": [{"type": "additional_tools", "tools": tools(20_000)}]}, "max_tools"),
    "20k allowed tools": (
        {"input": "x", "tool_choice": {"type": "allowed_tools", "tools": tools(20_000)}},
        "max_tools",
    ),
    "300k items": ({"input": [MESSAGE] * 300_000}, "max_values"),
    "30k items": ({"input": [MESSAGE] * 30_000}, "max_items"),
    "30k call pairs": ({"input": pairs(30_000)}, "max_values"),
    "5,001 call pairs": ({"input": pairs(5_001)}, "max_items"),
    "10k unknown fields": ({"input": "x", **{f"q{n}": 1 for n in range(10_000)}}, "max_fields"),
}


@pytest.mark.parametrize(("body", "setting"), ATTACKS.values(), ids=ATTACKS)
def test_a_request_that_would_hold_the_loop_is_refused_by_name_before_it_is_planned(
    body: dict[str, Any], setting: str
) -> None:
    raw = msgspec.json.encode({"model": "m", **body})
    with pytest.raises(RequestRefused, match=rf"the limit `limits\.{setting}` of this gateway") as refused:
        parse_request(raw)
    most = getattr(DEFAULT_LIMITS, setting)
    assert refused.value.code == "request_too_large"
    assert refused.value.metadata == {"limit": most, "setting": f"limits.{setting}"}
    assert f"{most:,}" in refused.value.message


@pytest.mark.measured
@pytest.mark.parametrize("name", ["13M empty lists", "300k items", "30k call pairs", "100k tools"])
def test_to_refuse_it_costs_about_as_much_as_to_read_it(name: str) -> None:
    body = ATTACKS[name][0]
    if name == "13M empty lists":  # a tenth tells the same
        body = body | {"metadata": body["metadata"][:1_300_000]}
    raw = msgspec.json.encode({"model": "m", **body})

    def refuse() -> None:
        with pytest.raises(RequestRefused):
            parse_request(raw)

    # Both take as long as it takes to go over the text; three times: whatever else runs on the machine.
    assert _least(refuse) < 3 * _least(lambda: msgspec.json.decode(raw))


def _least(work: Callable[[], object]) -> float:
    """CPU seconds; other processes can only make it longer."""
    least = float("inf")
    for _ in range(5):
        began = time.thread_time()
        work()
        least = min(least, time.thread_time() - began)
    return least


ELSEWHERE = ("max_input", "max_wide_text", "max_inputs", "max_input_tokens")
"""The first two are tried below, the others with embeddings (`tests/bridge/embeddings/test_read.py`)."""


@pytest.mark.parametrize("setting", [name for name in RequestLimits.__struct_fields__ if name not in ELSEWHERE])
def test_what_is_just_allowed_is_let_in_and_one_more_is_not(setting: str) -> None:
    most = 12
    fitting: dict[str, Any] = {
        "max_values": {"input": "x", "metadata": {str(n): "1" for n in range(most - 4)}},
        "max_depth": {"input": "x", "odd": _nested(most - 1)},
        "max_fields": {"input": "x", **{f"q{n}": 1 for n in range(most - 2)}},
        "max_items": {"input": [MESSAGE] * most},
        "max_parts": {"input": [{"role": "user", "content": [IMAGE] * 6}] * 2},
        "max_tools": {"input": "x", "tools": tools(most)},
    }
    body = {"model": "m", **fitting[setting]}
    limits = msgspec.structs.replace(OWN_LIMITS, **{setting: most})
    parse_request(body, limits)
    with pytest.raises(RequestRefused, match=setting):
        parse_request(body, msgspec.structs.replace(limits, **{setting: most - 1}))


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_long_text_full_of_commas_and_brackets_is_no_multitude() -> None:
    text = 'a, "b" [c] {d}\\ ' * 40_000
    assert text.count(",") + text.count("[") + text.count("{") < DEFAULT_LIMITS.max_values
    request = parse_request(msgspec.json.encode({"model": "m", "input": text * 4}))
    assert request.body["input"] == text * 4
    assert request.values == 3
    assert request.heavy


@given(st.recursive(st.none() | st.text('a,[{"\\'), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_count_is_never_below_what_a_text_holds(value: Any) -> None:
    raw = msgspec.json.encode(value)
    held = _count(value)
    assert count_values(raw, 10**9) >= held
    assert held <= count_values(raw, held - 1) <= 2 * held, "and where it matters, each counts at most twice"


_INNER = st.recursive(st.none() | st.text('a,[{"\\'), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
_FIELDS = st.sampled_from(["input", "tools", "tool_choice", "messages", "odd", "q"])


@given(st.dictionaries(_FIELDS, _INNER), st.lists(st.integers(0, 12), min_size=6, max_size=6))
def test_a_text_of_few_values_meets_no_limit(body: dict[str, Any], most: list[int]) -> None:
    limits = RequestLimits(*most)
    few = few_values(msgspec.json.encode(body), limits)
    assert not few or check_body(body, limits) <= few


def test_few_are_counted_in_the_text_and_many_one_by_one() -> None:
    assert few_values(b'{"model":"m","input":"a, [b"}', DEFAULT_LIMITS) == 5
    assert parse_request(b'{"model":"m","input":"x"}').values == 3
    assert few_values(b'{"input":"' + b"," * 100 + b'"}', DEFAULT_LIMITS) == 0, "deeper than that it might be"
    assert few_values(b'{"input":"' + b"x" * 4_090 + b'"}', DEFAULT_LIMITS) == 0, "counted as values, which is quicker"
    assert few_values({"input": "x"}, DEFAULT_LIMITS) == few_values("{}", DEFAULT_LIMITS) == 0


@given(st.text('a,[{"\\', max_size=30), st.integers(1, 8))
def test_windows_change_nothing(text: str, window: int) -> None:
    raw = msgspec.json.encode([text, {text: [text, 1]}])
    whole = count_values(raw, 1)
    with mock.patch("isthmus.protocol.json._WINDOW", window):
        assert count_values(raw, len(raw)) >= 6
        assert _count_outside(raw, len(raw)) == whole - 1 == 5


def _count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count, inner))


@pytest.mark.parametrize("character", ["😀", "\\ud83d\\ude00"])
@pytest.mark.parametrize("place", [0, 700, 1000])
def test_a_text_that_takes_four_bytes_for_each_character_has_a_length(character: str, place: int) -> None:
    limits = RequestLimits(max_wide_text=1001)
    text = "x" * place + character + "x" * (1000 - place)
    raw = b'{"model":"m","input":"%b"}' % text.encode()
    assert len(parse_request(raw, limits).body["input"]) == 1001
    with pytest.raises(RequestRefused, match=r"more than 1,000 characters.*`limits\.max_wide_text`") as refused:
        parse_request(raw, RequestLimits(max_wide_text=1000))
    assert refused.value.metadata == {"limit": 1000, "setting": "limits.max_wide_text"}


@pytest.mark.parametrize("text", ["x" * 5000, "é" * 5000, "漢" * 5000, *(["😀" * 900],)])
def test_any_other_text_may_be_longer_and_several_are_not_counted_together(text: str | list[str]) -> None:
    texts = text if isinstance(text, list) else [text]
    parts = [{"type": "input_text", "text": each} for each in texts * 3]
    raw = msgspec.json.encode({"model": "m", "input": [{"role": "user", "content": parts}]})
    assert parse_request(raw, RequestLimits(max_wide_text=1000)).items[0]["content"] == parts


def test_stored_items_count_as_each_would_alone_and_one_more_than_allowed_is_refused() -> None:
    items = [msgspec.json.encode({"role": "user", "content": [f"{n}, [{{"] * (n % 3)}) for n in range(200)]
    values = sum(count_values(item, 10**9) for item in items)
    limits = RequestLimits(max_values=values, max_items=201, max_input=sum(map(len, items)))
    assert check_input(items, 1, limits) == values
    assert check_input([], 1, limits) == 0
    for setting in ("max_items", "max_input"):
        fewer = msgspec.structs.replace(limits, **{setting: getattr(limits, setting) - 1})
        with pytest.raises(RequestRefused, match=setting):
            check_input(items, 1, fewer)
    with pytest.raises(RequestRefused, match="max_values"):
        check_input(items, 1, msgspec.structs.replace(limits, max_values=200))


def test_counting_is_linear() -> None:
    assert growth(lambda count: count_values(b'{"a":"\\"[,"},' * count, 1000), 100_000) < LINEAR


def test_a_chat_request_is_held_to_the_same_in_its_own_words() -> None:
    body = {"model": "m", "messages": [MESSAGE] * 30_000}
    with pytest.raises(RequestRefused, match=r"`messages` has more than 10,000 items.*`limits\.max_items`") as refused:
        receive_chat_request(msgspec.json.encode(body))
    assert refused.value.param == "messages"


def test_the_owner_of_a_process_is_held_to_the_depth_alone() -> None:
    assert len(parse_request({"model": "m", "input": [MESSAGE] * 30_000}, OWN_LIMITS).items) == 30_000
    with pytest.raises(RequestRefused, match="levels deep"):
        parse_request({"model": "m", "input": "x", "odd": _nested(200)}, OWN_LIMITS)


def test_small_texts_are_not_counted_and_text_may_be_a_string() -> None:
    assert decode_json('{"a": [1, 2]}', RequestLimits(max_values=1)) == {"a": [1, 2]}
    assert not is_heavy(1000, 1000)
    assert is_heavy(2_000_000)
    assert is_heavy(0, 30_000)
