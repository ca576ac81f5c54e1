"""Keys that nobody guesses, and what is kept of them."""

from __future__ import annotations

import re

from isthmus.access.secret import KEY, SHOWN, digest_of, new_key, new_key_id


def test_a_key_is_long_random_and_plain() -> None:
    made = {new_key() for _ in range(200)}
    assert len(made) == 200
    assert all(re.fullmatch(r"ik_[A-Za-z0-9_-]{43}", key) for key in made)
    assert len({key[:SHOWN] for key in made}) == 200, "seven characters tell them apart"
    assert KEY == "ik_"


def test_an_id_says_nothing_of_its_key() -> None:
    assert re.fullmatch(r"key_[0-9a-f]{16}", new_key_id())
    assert new_key_id() != new_key_id()


def test_any_text_has_a_digest() -> None:
    found = {digest_of(key) for key in ("", "a", "ü", "\ud800", "a" * 100_000)}
    assert {len(each) for each in found} == {32}
    assert len(found) == 5
