"""Objects without their nulls."""

from __future__ import annotations

from isthmus.protocol.json import without_nulls


def test_fields_that_are_null_go_and_nothing_else() -> None:
    given = {"a": None, "b": 0, "c": "", "d": {"e": None}}
    assert without_nulls(given) == {"b": 0, "c": "", "d": {"e": None}}
    assert "a" in given


def test_an_object_without_nulls_is_not_copied() -> None:
    given = {"b": 0}
    assert without_nulls(given) is given
