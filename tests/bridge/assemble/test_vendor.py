"""Vendor state travels inside our envelope, with the item that it belongs to."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.assemble.assembler import Assembler
from isthmus.bridge.assemble.frame import Frame
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, Reasoning, Text, VendorExtra
from isthmus.bridge.envelope import seal, unseal
from isthmus.testing.fold import plan_for

PLAN = plan_for({"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]})
KEY = b"k" * 32


def _sealing(*deltas: Delta) -> dict[str, Any]:
    assembler = Assembler(
        Frame("resp_1", 1, "m", PLAN.echo, "gemini"), PLAN.tools, seal=lambda sealed: seal(sealed, KEY)
    )
    events = assembler.start() + assembler.feed(deltas)
    ending = assembler.end(2)
    check_events = events + ending.events
    assert check_events[-1]["response"] is ending.response
    return ending.response


def test_reasoning_travels_sealed_for_clients_that_store_nothing_here() -> None:
    details = [{"type": "reasoning.text", "text": "t"}]
    response = _sealing(Reasoning("t"), VendorExtra("reasoning_details", details), Text("a"), Finished("stop"))
    sealed = unseal(response["output"][0]["encrypted_content"], KEY)
    assert sealed is not None
    assert (sealed.provider, sealed.text, sealed.extras) == ("gemini", "t", {"reasoning_details": details})


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
