"""Events in the log: the same facts for people and for programs."""

from __future__ import annotations

import json
import logging
import sys
import time

import pytest

from isthmus.log import JsonFormatter, TextFormatter, Told, tell

log = logging.getLogger("isthmus.test")


def said(caplog: pytest.LogCaptureFixture, **facts: object) -> logging.LogRecord:
    caplog.set_level("DEBUG")
    tell(log, "warning", "thing.happened", **facts)  # type: ignore[arg-type]
    return caplog.records[-1]


def test_people_read_one_line(caplog: pytest.LogCaptureFixture) -> None:
    record = said(caplog, id="resp_1", ms=12.5, reason="it is full", none=None, empty="")
    line = TextFormatter().format(record)
    assert line.endswith("W thing.happened id=resp_1 ms=12.5 reason='it is full' empty=''")


def test_programs_read_real_keys(caplog: pytest.LogCaptureFixture) -> None:
    line = json.loads(JsonFormatter().format(said(caplog, id="resp_1", ms=12.5, tries=2, reason=ValueError("x"))))
    assert {name: line[name] for name in ("level", "logger", "event", "id", "ms", "tries", "reason")} == {
        "level": "warning", "logger": "isthmus.test", "event": "thing.happened", "id": "resp_1", "ms": 12.5, "tries": 2,
        "reason": "x",
    }  # fmt: skip


def test_a_fact_cannot_pose_as_another_line(caplog: pytest.LogCaptureFixture) -> None:
    line = TextFormatter().format(said(caplog, path="/v1\n12:00:00 I request.done status=200"))
    assert "\n" not in line


def test_an_exception_shows_its_way_here(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("the cause")
    except ValueError as error:
        tell(log, "error", "thing.broke", trace=error)
    assert "the cause" in json.loads(JsonFormatter().format(caplog.records[-1]))["exception"]


def test_nothing_is_made_for_a_level_that_nobody_hears(caplog: pytest.LogCaptureFixture) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("it was written")

    caplog.set_level("WARNING")
    tell(log, "debug", "thing.happened", costly=Costly())


def test_a_line_has_the_time_of_its_own_second() -> None:
    formatter = TextFormatter()
    for second in (1_700_000_000, 1_700_000_000.9, 1_700_000_001):
        record = logging.LogRecord("isthmus", logging.INFO, "", 0, Told("it.happened", {}), None, None)
        record.created = second
        assert formatter.format(record) == time.strftime("%H:%M:%S I it.happened", time.localtime(second))


def test_a_line_is_made_without_a_look_at_each_of_its_characters() -> None:
    record = logging.LogRecord("isthmus", logging.INFO, "", 0, Told("it.happened", {"reason": "x" * 5_000}), None, None)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        TextFormatter().format(record)
    finally:
        sys.setprofile(None)
    assert len(calls) < 200
