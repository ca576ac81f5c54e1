"""Call ids in the shape a provider wants."""

from __future__ import annotations

import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.dialects.chat.order import create_call_id_codec

ALLOWED = set(string.ascii_letters + string.digits)


def test_keep_changes_nothing() -> None:
    assert create_call_id_codec("keep")("call_1") == "call_1"


def test_an_id_that_fits_is_kept_and_others_are_the_same_in_every_request() -> None:
    first, second = create_call_id_codec("alphanumeric9"), create_call_id_codec("alphanumeric9")
    assert first("abcDEF123") == "abcDEF123"
    assert first("call_1") == second("call_1")


@given(st.lists(st.text(max_size=20), unique=True, max_size=30))
@settings(max_examples=100, deadline=None)
def test_nine_alphanumerics_unique_in_the_request(ids: list[str]) -> None:
    encode = create_call_id_codec("alphanumeric9")
    made = [encode(call_id) for call_id in ids]
    assert len(set(made)) == len(ids)
    assert all(len(short) == 9 and set(short) <= ALLOWED for short in made)
    assert [encode(call_id) for call_id in ids] == made


def test_a_kept_id_that_is_already_taken_gets_another() -> None:
    encode = create_call_id_codec("alphanumeric9")
    short = encode("call_1")
    assert encode(short) != short


def test_plain_ids_of_64_characters_are_kept_and_others_are_made_the_same_each_time() -> None:
    """`Bash:0` and ids of vendors with bars and dots poison a conversation (claude-code-router#1808, #1334)."""
    first, second = create_call_id_codec("plain64"), create_call_id_codec("plain64")
    for kept in ("call_1", "toolu_01-a", "a" * 64):
        assert first(kept) == kept
    for odd in ("Bash:0", "call_abc|fc.1", "a" * 65, "", "ü"):
        assert re.fullmatch("toolu_[A-Za-z0-9]{24}", first(odd))
        assert first(odd) == second(odd)
