"""The log is lines for people: what clients send cannot add one, nor reach the terminal's controls."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from isthmus.cli.serve_command import set_up_logging


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    root = logging.getLogger("isthmus")
    before = (root.handlers[:], root.level, root.propagate)
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    set_up_logging("info", "text")
    yield out
    root.handlers[:], root.level, root.propagate = before


def test_a_path_with_line_ends_and_colours_stays_one_harmless_line(written: io.StringIO) -> None:
    logging.getLogger("isthmus.server").info("request.done path=%s", "/x\n00:00:00 I all is well\r\x1b[2J\u2028é")
    assert written.getvalue().count("\n") == 1
    assert written.getvalue().endswith("path=/x\\n00:00:00 I all is well\\r\\x1b[2J\\u2028é\n")


def test_a_traceback_keeps_its_lines(written: io.StringIO) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("isthmus.server").exception("request.failed")
    assert written.getvalue().splitlines()[1].startswith("Traceback")
    assert written.getvalue().splitlines()[-1] == "ValueError: broken"
