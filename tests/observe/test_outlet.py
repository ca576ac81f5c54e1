"""A log that cannot be written holds nobody up, and says afterwards what is missing."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isthmus.log import TextFormatter, tell
from isthmus.observe.outlet import Outlet, lost_lines
from serving import running_gateway_process
from talking import Talk

log = logging.getLogger("isthmus.outlet_test")


class Broken(io.StringIO):
    """A stream that fails when it is told to."""

    why: Exception | None = None

    def write(self, text: str) -> int:
        if self.why is not None:
            raise self.why
        return super().write(text)


@pytest.fixture
def connect() -> Iterator[Callable[[Outlet], Outlet]]:
    made: list[Outlet] = []

    def to(outlet: Outlet) -> Outlet:
        outlet.setFormatter(TextFormatter())
        log.addHandler(outlet)
        made.append(outlet)
        return outlet

    log.setLevel("INFO")
    yield to
    for outlet in made:
        log.removeHandler(outlet)


@pytest.mark.parametrize("why", [OSError(28, "No space left on device"), BrokenPipeError(), ValueError("closed file")])
def test_lines_that_are_lost_are_told_once_writing_works_again(
    connect: Callable[[Outlet], Outlet], capsys: pytest.CaptureFixture[str], why: Exception
) -> None:
    stream = Broken()
    outlet = connect(Outlet(stream))
    stream.why = why
    for number in range(3):
        tell(log, "info", "thing.happened", number=number)
    stream.why = None
    tell(log, "info", "thing.happened", number=3)
    tell(log, "info", "thing.happened", number=4)
    lines = [line.split(" ", 2)[2] for line in stream.getvalue().splitlines()]
    assert lines == ["log.lost lines=3", "thing.happened number=3", "thing.happened number=4"]
    assert outlet.lost == 3
    assert capsys.readouterr().err == ""


def test_without_a_stream_nothing_happens(connect: Callable[[Outlet], Outlet]) -> None:
    outlet = connect(Outlet(None))
    tell(log, "info", "thing.happened")
    assert outlet.lost == 1


def test_what_cannot_be_put_into_words_is_lost_too() -> None:
    class Wordless:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    outlet = Outlet(io.StringIO())
    outlet.handle(logging.LogRecord("isthmus.x", logging.INFO, "", 0, Wordless(), None, None))
    assert outlet.lost == 1


@pytest.mark.skipif(sys.platform == "win32", reason="it cannot tell whether a pipe is full")
def test_a_pipe_that_nobody_reads_holds_nobody_up(connect: Callable[[Outlet], Outlet]) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream, os.fdopen(reading, "rb") as reader:
        outlet = connect(Outlet(stream, most_waiting=100_000))
        done = threading.Event()

        def speak() -> None:
            for number in range(20_000):  # a pipe holds some 64 KiB of it
                tell(log, "info", "thing.happened", number=number)
            done.set()

        threading.Thread(target=speak, daemon=True).start()
        assert done.wait(60), "whoever logs waits for whoever reads"
        assert outlet.lost > 0
        seen: list[bytes] = []
        while not seen or b"number=20000" not in seen[-1]:
            seen.append(reader.readline())
            if len(seen) == 1:
                threading.Thread(target=_speak_again, args=(outlet,), daemon=True).start()
        numbers = [int(line.rsplit(b"=", 1)[1]) for line in seen if b"thing.happened" in line]
        told = sum(int(line.rsplit(b"=", 1)[1]) for line in seen if b"log.lost" in line)
        assert numbers == sorted(numbers)
        assert told == outlet.lost == 20_001 - len(numbers)
        outlet.flush()


def _speak_again(outlet: Outlet) -> None:
    outlet.flush()  # once somebody reads, what waits is written
    tell(log, "info", "thing.happened", number=20_000)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_a_line_that_broke_off_is_ended_before_the_next(tmp_path: Path, connect: Callable[[Outlet], Outlet]) -> None:
    import resource

    file = tmp_path / "log"
    with file.open("a") as stream:
        connect(Outlet(stream))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
        try:
            tell(log, "info", "thing.happened", number=0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        tell(log, "info", "thing.happened", number=1)
    torn, told, whole = file.read_text().splitlines()
    assert len(torn) == 20
    assert (told.split(" ", 2)[2], whole.split(" ", 2)[2]) == ("log.lost lines=1", "thing.happened number=1")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is Linux's")
def test_a_gateway_whose_log_is_full_serves_on_and_tells_how_much_is_missing(tmp_path: Path) -> None:
    """From the request to the bytes of the log, in a process of its own."""
    import resource

    with running_gateway_process('[store]\nurl = "memory:"\n', tmp_path) as gateway:
        talk = Talk(gateway.url)
        _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
        before = gateway.log.stat().st_size
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (1, hard))
        for number in range(1, 6):
            assert talk.get("/v1/models").status == 200
            while talk.get("/ready").json["log_lines_lost"] < number:  # the line comes after the answer
                pass
        lost = talk.get("/ready").json["log_lines_lost"]  # on a busy machine it may have had more to say
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert gateway.log.stat().st_size == before
        assert talk.get("/v1/models").status == 200
        assert gateway.stop() == 0
        told = gateway.log.read_text()
    assert "Traceback" not in told
    assert f"log.lost lines={lost}" in told
    assert told.count("path=/v1/models") == 1


def test_all_of_our_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    outlets = [Outlet(None), Outlet(None)]
    outlets[0].lost, outlets[1].lost = 2, 3
    monkeypatch.setattr(logging.getLogger("isthmus"), "handlers", [*outlets, logging.NullHandler()])
    assert lost_lines() == 5
