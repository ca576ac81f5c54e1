"""Layers of values: the last word counts, and everything knows who said it."""

from __future__ import annotations

import pytest

from isthmus.config.origins import Layers, Origin, nearest_origin

FILE, FLAG = Origin("file", "isthmus.toml"), Origin("flag")


def test_tables_are_merged_and_values_replaced() -> None:
    layers = Layers()
    layers.add(("server",), {"port": 1, "host": "a"}, FILE)
    layers.add(("server", "port"), 2, FLAG)
    layers.add(("models", "aliases"), {"x": "p/m"}, FILE)
    assert layers.values == {"server": {"port": 2, "host": "a"}, "models": {"aliases": {"x": "p/m"}}}
    assert layers.origins[("server", "port")] == FLAG
    assert layers.origins[("server", "host")] == layers.origins[("server",)] == FILE


def test_a_table_takes_the_place_of_a_value_and_a_value_that_of_a_table() -> None:
    layers = Layers()
    layers.add(("server",), 3, FILE)
    layers.add(("server", "port"), 1, FLAG)
    assert layers.values == {"server": {"port": 1}}
    layers.add(("server",), 4, FLAG)
    assert layers.values == {"server": 4}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("a", "b"), FLAG),
        (("a", "c"), FILE),
        (("a", "b[2]"), FLAG),
        (("a", "b[2]", "key"), FLAG),
        (("z",), None),
        ((), None),
    ],
)
def test_what_was_not_given_itself_comes_from_what_is_above_it(path: tuple[str, ...], expected: Origin | None) -> None:
    assert nearest_origin({("a",): FILE, ("a", "b"): FLAG}, path) == expected


def test_an_origin_is_told_with_its_detail() -> None:
    assert (FILE.text, FLAG.text) == ("file: isthmus.toml", "flag")
