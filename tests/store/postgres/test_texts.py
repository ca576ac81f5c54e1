"""Text that PostgreSQL can hold, and find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.store.postgres.texts import name, text

ANY = st.text(st.characters(exclude_categories=()), max_size=400)


@given(ANY)
def test_any_text_can_be_held_and_stays_what_it_is(words: str) -> None:
    held = text(words)
    assert "\0" not in held
    held.encode()
    assert text(held) == held


@given(ANY)
def test_a_name_of_ordinary_length_is_its_text(words: str) -> None:
    if len(text(words).encode()) <= 1000:
        assert name(words) == text(words)


def test_long_names_are_cut_and_stay_different() -> None:
    one, two = "a" * 5000 + "1", "a" * 5000 + "2"
    assert len(name(one).encode()) <= 1000
    assert name(one) != name(two)
    assert name(one) == name(one)
    assert len(name("ü" * 3000).encode()) <= 1000
