"""The log is lines for people: what clients send cannot add one, nor reach the terminal's controls."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from isthmus.cli.serve_command import set_up_logging
from isthmus.log import JsonFormatter, Told, tell
from isthmus.scrub import Scrubber, Secret
from leaking import assert_silent

SECRET = "sk-live/0Zq7Kd81+mXw4Tn92"


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


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_secret_is_written_whoever_says_it(monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    root = logging.getLogger("isthmus")
    before = (root.handlers[:], root.level, root.propagate)
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    set_up_logging("info", format, Scrubber([Secret(SECRET, "api_key")]).text)
    try:
        tell(logging.getLogger("isthmus.x"), "warning", "thing.happened", url=f"https://x/?k={quote(SECRET, safe='')}")
        try:
            raise ValueError(f"cannot connect to https://joe:{SECRET}@x/")
        except ValueError as error:
            tell(logging.getLogger("isthmus.x"), "error", "thing.failed", trace=error)
    finally:
        root.handlers[:], root.level, root.propagate = before
    assert_silent([SECRET], log=out.getvalue())
    assert out.getvalue().count("<redacted>") >= 2


def test_half_a_character_is_written_too() -> None:
    told = Told("thing.happened", {"name": "\ud800"})
    record = logging.LogRecord("isthmus.x", logging.INFO, "", 0, told, None, None)
    assert json.loads(JsonFormatter().format(record))["name"] == "\ud800"
