from __future__ import annotations

from io import StringIO

from isthmus.cli.progress import Progress, describe
from isthmus.store.copying.copy import Step


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_has_rows_bytes_rate_and_what_is_left() -> None:
    told = describe(Step("pieces", 5_000, 20_000, 12_300_000), 2.0)
    assert told == "copying pieces: 5,000 of 20,000 rows, 12.3 MB, 2,500 rows/s, 6 s left"
    assert describe(Step("pieces", 10, 20_000, 0, checking=True), 1.0).endswith("10 rows/s, 33:19 min left")
    assert describe(Step("pieces", 0, 0, 0), 0.0) == "copying pieces: 0 of 0 rows, 0.0 MB, 0 rows/s"


def test_it_is_written_over_a_few_times_a_second_and_wiped_away() -> None:
    clock = [100.0]
    screen = Screen()
    with Progress(out=screen, now=lambda: clock[0]) as progress:
        for number in range(10):
            clock[0] += 0.1
            progress(Step("pieces", number, 10, 0))
    lines = screen.getvalue().split("\r")[1:]
    assert 2 <= len([line for line in lines if line.startswith("copying")]) <= 5
    assert lines[-2].strip() == lines[-1].strip() == ""


def test_nothing_is_written_where_nobody_looks() -> None:
    for out, silent in ((StringIO(), False), (Screen(), True)):
        with Progress(out=out, silent=silent) as progress:
            progress(Step("pieces", 1, 10, 0))
        assert out.getvalue() == ""
