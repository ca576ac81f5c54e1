"""What has come of an answer: taken piece by piece, unpacked, and told as broken behind the last of it."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from isthmus.upstream.lean.answer import MAX_PIECE, Answer
from isthmus.upstream.trouble import Trouble, broken_off


class Held:
    """A connection that only counts."""

    held = 99
    paused = True
    resumed = dropped = 0

    def resume(self) -> None:
        self.paused, self.resumed = False, self.resumed + 1

    def drop(self) -> None:
        self.dropped += 1


def begun(headers: dict[bytes, bytes] | None = None, *pieces: bytes) -> tuple[Answer, Any, list[bytes]]:
    line: Any = Held()
    shared = list(pieces)
    answer = Answer(line, shared, bare=False)
    answer.begin(200, headers or {})
    return answer, line, shared


def test_pieces_that_came_apart_are_taken_together() -> None:
    answer, line, shared = begun(None, b"a", b"b")
    assert (answer.take(), answer.take(), shared) == (b"ab", b"", [])
    assert (line.held, line.resumed) == (0, 1)


def test_a_large_piece_is_taken_bit_by_bit_and_no_more_is_read_before() -> None:
    data = bytes(range(256)) * 200
    answer, line, shared = begun(None, data)
    taken = [answer.take()]
    shared.append(b"behind")
    assert line.resumed == 0
    while piece := answer.take():
        taken.append(piece)
    assert b"".join(taken) == data + b"behind"
    assert max(map(len, taken)) == MAX_PIECE
    assert line.resumed == 1


def test_at_its_end_it_lets_go_of_its_connection_with_what_came() -> None:
    answer, line, shared = begun(None, b"last")
    answer.end()
    shared.append(b"somebody else's")
    assert not answer.over
    assert answer.take() == b"last"
    assert answer.over
    answer.close()
    assert (answer.take(), line.dropped, line.held) == (b"", 0, 99)


def test_what_came_is_read_before_its_failure_is_told() -> None:
    answer, line, _ = begun(None, b"begun")
    answer.fail(broken_off("why"))
    assert line.dropped == 1
    assert answer.take() == b"begun"
    for _ in range(2):
        with pytest.raises(Trouble, match="why"):
            answer.take()


def test_nobody_waits_for_what_will_not_come() -> None:
    answer, line, _ = begun(None)
    answer.close()
    assert (answer.news(), answer.take(), answer.over, line.dropped) == (None, b"", True, 1)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [(b"gzip", gzip.compress(b"words")[:-1]), (b"deflate", zlib.compress(b"words")[:-1])],
    ids=["gzip", "deflate"],  # gzip writes down the time: as names these would differ from tester to tester
)
def test_what_is_packed_and_cut_off_is_told_as_broken(encoding: bytes, data: bytes) -> None:
    answer, _, _ = begun({b"content-encoding": encoding}, data)
    answer.end()
    assert answer.take() == b"words"
    with pytest.raises(Trouble, match="cannot be unpacked"):
        answer.take()
    with pytest.raises(Trouble, match="cannot be unpacked"):
        answer.take()


def test_several_packs_behind_one_another_are_one_text() -> None:
    answer, _, _ = begun({b"content-encoding": b"gzip"}, gzip.compress(b"a") + gzip.compress(b"b"))
    answer.end()
    assert answer.take() + answer.take() == b"ab"
    assert (answer.take(), answer.over) == (b"", True)


@pytest.mark.parametrize("status", [204, 304])
def test_where_there_is_no_body_nothing_is_unpacked(status: int) -> None:
    line: Any = Held()
    answer = Answer(line, [], bare=False)
    answer.begin(status, {b"content-encoding": b"gzip"})
    answer.end()
    assert (answer.take(), answer.over) == (b"", True)
