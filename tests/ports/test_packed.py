"""A trace as it is stored is the trace."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.packed import NO_SUMMARY, pack, pack_all, unpack, unpack_summary
from isthmus.ports.traced import Trace
from traced import traced


def test_what_was_packed_comes_back() -> None:
    trace = traced("1", previous="resp_0", cost=0.25)
    packed = pack(trace)
    assert unpack(packed.summary, packed.detail) == trace
    assert unpack_summary(packed.head) == trace.summary
    assert [each.summary.id for each in pack_all([trace, traced("2")])] == ["req_1", "req_2"]


def test_the_summary_stands_in_one_place_only() -> None:
    packed = pack(traced("1"))
    assert b"req_1" in packed.head
    assert b"req_1" not in packed.detail
    assert msgspec.json.decode(packed.detail, type=Trace).summary == NO_SUMMARY


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_words_it_holds(words: str) -> None:
    trace = msgspec.structs.replace(traced("1", asked_model=words), diagnostics=({"message": words},))
    packed = pack(trace)
    assert unpack(unpack_summary(packed.head), packed.detail) == trace
