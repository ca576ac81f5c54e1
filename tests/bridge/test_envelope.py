"""Our envelope: what we sealed opens, anything else does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.envelope import PREFIX, Sealed, is_envelope, seal, unseal

KEY, OTHER = b"k" * 32, b"o" * 32
json_values = (
    st.none() | st.integers(-(2**53), 2**53) | st.text(max_size=10) | st.lists(st.text(max_size=5), max_size=3)
)


@given(st.text(max_size=200), st.dictionaries(st.text(max_size=5), json_values, max_size=3))
@settings(max_examples=100, deadline=None)
def test_what_was_sealed_opens_unchanged(text: str, extras: dict[str, object]) -> None:
    sealed = Sealed("deepseek", text, extras, {"call_1": extras})
    assert unseal(seal(sealed, KEY), KEY) == sealed


def test_another_key_does_not_open_it() -> None:
    assert unseal(seal(Sealed("p", "t"), KEY), OTHER) is None


def test_it_opens_for_its_owner_and_as_what_it_is_and_nowhere_else() -> None:
    envelope = seal(Sealed("p", "t"), KEY, owner="ann", kind="compaction")
    assert unseal(envelope, KEY, owner="ann", kind="compaction") == Sealed("p", "t")
    assert unseal(envelope, KEY, owner="bob", kind="compaction") is None
    assert unseal(envelope, KEY, owner="ann", kind="reasoning") is None
    assert unseal(envelope, KEY) is None


def test_the_unbound_form_of_the_first_release_cannot_be_made_from_a_bound_one() -> None:
    envelope = seal(Sealed("p", "t"), KEY, owner="ann")
    assert unseal("isth1." + envelope.removeprefix(PREFIX), KEY, owner="bob") is None


@given(st.integers(0, 10_000), st.characters(codec="ascii"))
@settings(max_examples=200, deadline=None)
def test_a_changed_envelope_does_not_open(position: int, character: str) -> None:
    envelope = seal(Sealed("p", "thoughts " * 20), KEY)
    index = position % len(envelope)
    forged = envelope[:index] + character + envelope[index + 1 :]
    if forged != envelope:
        opened = unseal(forged, KEY)
        # base64 leaves spare bits in its last character: those forgeries carry the same bytes
        assert opened is None or opened == Sealed("p", "thoughts " * 20)


@pytest.mark.parametrize(
    "foreign", ["", "gAAAAABo", PREFIX, PREFIX + "a.b", PREFIX + "é.ü", "isth1.x.y", "isth3.x.y", "x" * 10_000]
)
def test_foreign_content_opens_to_nothing(foreign: str) -> None:
    assert unseal(foreign, KEY) is None


def test_an_envelope_is_known_by_its_beginning() -> None:
    assert is_envelope(seal(Sealed("p"), b"k" * 32))
    assert is_envelope("isth1.anything")
    assert not any(map(is_envelope, ("", "EqQBCkgI", "isth3.x", " isth2.x")))
