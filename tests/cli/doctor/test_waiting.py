"""The line that tells what is being looked at."""

from __future__ import annotations

from io import StringIO

from isthmus.cli.doctor.waiting import waiting_line


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


def test_it_counts_what_is_done_and_leaves_an_empty_line() -> None:
    screen = Screen()
    with waiting_line(["store", "port"], out=screen) as ended:
        ended("port")
        ended("store")
    lines = [line.strip() for line in screen.getvalue().split("\r")]
    assert lines[1:3] == ["looking at store, port …", "looking at store … (1 of 2)"]
    assert lines[-2:] == ["", ""]


def test_nothing_is_written_where_nobody_looks() -> None:
    screen, pipe = Screen(), StringIO()
    with waiting_line(["store"], silent=True, out=screen) as ended, waiting_line(["store"], out=pipe) as also:
        ended("store")
        also("store")
    assert screen.getvalue() == pipe.getvalue() == ""
