"""What a copy needs of a store, asked of every kind of end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.store.copying.ends import End, Mark
from isthmus.store.copying.stores import open_end
from postgres import database_of


@pytest.fixture(params=["sqlite", "postgres"])
def end(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[End]:
    url = f"sqlite:{tmp_path}/x.db" if request.param == "sqlite" else database_of(tmp_path)
    with closing(open_end(url, make=True)) as opened:
        yield opened


def test_rows_come_in_the_order_of_their_keys(end: End) -> None:
    words = next(table for table in end.tables() if table.name == "words")
    rows = [("b", "a", b"", 1.0), ("a", "ü", b"\0", 2.0), ("a", "z", b"", 3.0)]
    end.replace(words, [], rows)
    end.look()
    assert list(end.read(words)) == [("a", "z", b"", 3.0), ("a", "ü", b"\0", 2.0), ("b", "a", b"", 1.0)]
    end.replace(words, [("a", "z")], [("a", "z", b"new", 3.0)])
    assert end.count(words) == 3, "it is as of the moment of the look"
    assert next(iter(end.read(words))) == ("a", "z", b"", 3.0)
    end.look()
    assert next(iter(end.read(words))) == ("a", "z", b"new", 3.0)


def test_a_step_is_done_whole_or_not_at_all(end: End) -> None:
    words = next(table for table in end.tables() if table.name == "words")
    end.replace(words, [], [("a", "a", b"", 1.0)])
    with pytest.raises(ConfigError, match=r"stand in the way.*`--force`"):
        end.replace(words, [("a", "a")], [("b", "b", b"", 1.0), ("b", "b", b"", 1.0)])
    end.look()
    assert list(end.read(words)) == [("a", "a", b"", 1.0)]


def test_a_mark_says_whose_copy_it_is(end: End) -> None:
    assert end.mark() is None
    for mark in (Mark("sqlite:a.db", 1.5), Mark("sqlite:a.db", 1.5, {"words": "0:"})):
        end.note(mark)
        assert end.mark() == mark


def test_everything_goes_when_it_is_cleared(end: End) -> None:
    words = next(table for table in end.tables() if table.name == "words")
    end.replace(words, [], [("a", "a", b"", 1.0)])
    end.clear()
    end.look()
    assert end.count(words) == 0


def test_the_key_of_the_envelopes_is_handed_over(end: End) -> None:
    assert end.envelope_key() is None
    for key in (b"k" * 32, b"l" * 32):
        end.set_envelope_key(key)
        assert end.envelope_key() == key
