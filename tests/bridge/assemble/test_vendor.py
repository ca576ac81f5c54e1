"""Vendor state travels inside our envelope, with the item that it belongs to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.assemble.speech import join_fragments
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, Reasoning, Text, VendorExtra
from isthmus.bridge.envelope import seal, unseal
from isthmus.bridge.turn import Turn
from isthmus.testing.fold import plan_for

TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
PLAN = msgspec.structs.replace(plan_for({"tools": TOOLS}), seals_reasoning=True)
KEY = b"k" * 32


def _sealing(*deltas: Delta) -> dict[str, Any]:
    turn = Turn(PLAN, response_id="resp_1", now=1, seal=lambda sealed: seal(sealed, KEY))
    turn.accepted()
    turn.feed(deltas)
    done: Any = turn.end(2)
    assert done.events[-1]["response"] is done.response
    response: dict[str, Any] = done.response
    return response


def test_reasoning_travels_sealed_for_clients_that_store_nothing_here() -> None:
    details = [{"type": "reasoning.text", "text": "t"}]
    response = _sealing(Reasoning("t"), VendorExtra("reasoning_details", details), Text("a"), Finished("stop"))
    sealed = unseal(response["output"][0]["encrypted_content"], KEY)
    assert sealed is not None
    assert (sealed.provider, sealed.text, sealed.extras) == ("test", "t", {"reasoning_details": details})


def test_vendor_state_of_calls_travels_in_a_reasoning_item_of_its_own() -> None:
    signature = {"google": {"thought_signature": "s"}}
    response = _sealing(
        CallOpened(0, "a", "f"),
        CallArguments(0, "{}"),
        VendorExtra("extra_content", signature, 0),
        Finished("tool_calls"),
    )
    assert [item["type"] for item in response["output"]] == ["function_call", "reasoning"]
    sealed = unseal(response["output"][1]["encrypted_content"], KEY)
    assert sealed is not None
    assert sealed.calls == {"a": signature}


def test_state_that_comes_in_thousands_of_fragments_is_joined_once() -> None:
    piece = [{"type": "reasoning.text", "index": 0, "text": "word "}]
    deltas = [VendorExtra("reasoning_details", piece) for _ in range(5000)]
    response = _sealing(Reasoning("t"), *deltas, Text("a"), Finished("stop"))
    sealed = unseal(response["output"][0]["encrypted_content"], KEY)
    assert sealed is not None
    assert sealed.extras == {"reasoning_details": [{**piece[0], "text": "word " * 5000}]}
    assert piece == [{"type": "reasoning.text", "index": 0, "text": "word "}], "what the decoder told stays as it was"


Entry = dict[str, Any]


def text(words: str, index: int | None = 0, **rest: Any) -> Entry:
    return {"type": "reasoning.text", "index": index, "text": words, **rest}


CASES: dict[str, tuple[list[list[Any]], list[Any]]] = {
    "one index grows": ([[text("a", id="r1")], [text("b", id="r1")], [text("c")]], [text("abc", id="r1")]),
    "a signature comes last": (
        [[text("a", signature=None)], [text("", signature="s")]],
        [text("a", signature="s")],
    ),
    "another index is another entry": ([[text("a")], [text("b", 1)], [text("c", 1)]], [text("a"), text("bc", 1)]),
    "another id is another entry": ([[text("a", id="x")], [text("b", id="y")]], [text("a", id="x"), text("b", id="y")]),
    "another type is another entry": (
        [[text("a")], [{"type": "reasoning.encrypted", "index": 0, "data": "z"}]],
        [text("a"), {"type": "reasoning.encrypted", "index": 0, "data": "z"}],
    ),
    "entries of one delta stay apart": ([[text("a"), text("b")]], [text("a"), text("b")]),
    "without an index nothing is joined": ([[text("a", None)], [text("b", None)]], [text("a", None), text("b", None)]),
    "odd entries are kept": ([["x"], [text("a")], [None]], ["x", text("a"), None]),
}


@pytest.mark.parametrize(("deltas", "whole"), CASES.values(), ids=list(CASES))
def test_fragments_join(deltas: list[list[Any]], whole: list[Any]) -> None:
    assert join_fragments(deltas) == whole
