"""Keys as bytes, and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.keys import Budget, Grant, Rates, StoredKey
from isthmus.store.kept_keys import read_key, write_key
from keyed import stored_key

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers(0, 2**40)
MONEY = st.floats(0, 1e9)
GRANTS = st.builds(
    Grant,
    models=st.lists(WORDS, max_size=3).map(tuple),
    endpoints=st.frozensets(WORDS, max_size=4),
    tools=st.none() | st.lists(WORDS, max_size=3).map(tuple),
    admin=st.booleans(),
    rates=st.builds(Rates, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    budget=st.builds(Budget, MONEY, MONEY),
)
KEYS = st.builds(
    StoredKey,
    *(WORDS, WORDS, st.binary(max_size=32), WORDS, MONEY, WORDS, GRANTS, st.dictionaries(WORDS, WORDS, max_size=3)),
    *(MONEY, MONEY, st.binary(max_size=32), MONEY),
)


@given(KEYS)
def test_every_key_comes_back(key: StoredKey) -> None:
    assert read_key(write_key(key)) == key


def test_the_same_key_is_the_same_bytes() -> None:
    names = [f"e{number}" for number in range(30)]
    one, two = (stored_key(grant=Grant(endpoints=frozenset(each))) for each in (names, names[::-1]))
    assert write_key(one) == write_key(two)


def test_what_is_no_key_is_none() -> None:
    assert [read_key(each) for each in (b"", b"{}", b"[1]", b"\xff")] == [None] * 4


def test_what_a_later_version_adds_is_left_out() -> None:
    assert read_key(write_key(stored_key())[:-1] + b',"later":[1]}') == stored_key()
