"""A trace as it is stored is the trace."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.packed import (
    KIND,
    NO_SUMMARY,
    Filed,
    file_by,
    fill,
    kind_of,
    pack,
    pack_all,
    plain,
    unpack,
    unpack_summary,
)
from isthmus.ports.traced import Trace
from traced import patterned, traced


def test_what_was_packed_comes_back() -> None:
    trace = traced("1", previous="resp_0", cost=0.25)
    packed = pack(trace)
    assert unpack(unpack_summary(packed.head), packed.detail) == trace
    assert [each.filed.id for each in pack_all([trace, traced("2")])] == ["req_1", "req_2"]


def test_it_is_filed_by_what_its_summary_says() -> None:
    summary = traced("1", previous="resp_0", cost=0.25, degraded=1).summary
    filed = file_by(summary)
    names = [name for name in Filed.__struct_fields__ if name != "kind"]
    assert [getattr(filed, name) for name in names] == [getattr(summary, name) for name in names]
    assert filed.kind == kind_of(summary)
    assert dict(zip(KIND, filed.kind, strict=True)) == {
        **{name: getattr(summary, name) for name in KIND if name != "changed"},
        "changed": True,
    }


def test_the_summary_stands_in_one_place_only() -> None:
    packed = pack(traced("1"))
    assert b"req_1" in packed.head
    assert b"req_1" not in packed.detail
    assert msgspec.json.decode(packed.detail, type=Trace).summary == NO_SUMMARY


def test_what_has_a_pattern_is_the_same_without_it() -> None:
    trace = pack(traced("1"))
    shared = patterned(trace)
    assert (plain(shared), plain(trace)) == (trace, trace)
    assert fill((b"a", b"b", b"c"), b"1\n2\n") == b"a1b2c"
    assert fill((b"a",), b"") == b"a"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_words_it_holds(words: str) -> None:
    trace = msgspec.structs.replace(traced("1", asked_model=words), diagnostics=({"message": words},))
    packed = pack(trace)
    assert unpack(unpack_summary(packed.head), packed.detail) == trace
