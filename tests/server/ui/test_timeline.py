"""What took how long, as spans and as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as some

from isthmus.ports.facts import Mark
from isthmus.ports.traced import Timings, Trace, TracedCall, TracedError, TracedTool, TraceSummary
from isthmus.server.ui.timeline import WIDTH, draw_timeline, longest_silence, spans

SUMMARY = TraceSummary(id="r", at=0, ended_at=1)


def test_everything_that_took_time_is_a_span_in_its_order() -> None:
    failed = TracedCall("one", "m", 1, "first", 0.3, error=TracedError("server_error", "no"))
    answered = TracedCall("two", "m", 2, "anew", 1.0, first_byte=0.5)
    tool = TracedTool("mcp", "look", 0.4, at=1.8, server="world")
    timings = Timings(body=0.1, parse=0.1, plan=0.1, settle=0.2, run=2.7, total=3.0)
    trace = Trace(summary=SUMMARY, timings=timings, calls=(failed, answered), tools=(tool,))
    found = [(span.name, span.kind, round(span.begin, 3), round(span.end, 3)) for span in spans(trace)]
    assert found == [
        ("request arrives", "grey", 0.0, 0.1),
        ("read", "ours", 0.1, 0.2),
        ("planned", "ours", 0.2, 0.3),
        ("one", "bad", 0.3, 1.0),
        ("two thinks", "wait", 1.0, 1.5),
        ("two answers", "out", 1.5, 1.8),
        ("world.look", "tool", 1.8, 2.2),
        ("checked, saved", "ours", 2.8, 3.0),
    ]


times = some.floats(0, 1e5)


@given(
    times,
    times,
    times,
    times,
    some.lists(some.tuples(times, some.integers(0, 10**6)), max_size=30),
    some.text(max_size=9),
)
def test_any_times_make_a_picture(
    total: float, run: float, at: float, first: float, marks: list[tuple[float, int]], name: str
) -> None:
    name = "".join(letter for letter in name if letter.isprintable())
    call = TracedCall(name, "<m>", 1, "first", at, first_byte=first)
    told = tuple(Mark(seconds, batches, name) for seconds, batches in marks)
    trace = Trace(summary=SUMMARY, timings=Timings(total=total, run=run), calls=(call,), marks=told)
    picture = ElementTree.fromstring(draw_timeline(trace))
    for one in picture.iter("rect"):
        assert float(one.get("x", "")) <= WIDTH + 2


def test_the_longest_silence_is_found() -> None:
    marks = tuple(Mark(at, number, "output_text.delta") for number, at in enumerate((0.1, 0.2, 1.7, 1.8)))
    trace = Trace(summary=SUMMARY, timings=Timings(total=3.0, run=2.5), marks=marks)
    silence = longest_silence(trace)
    assert silence is not None
    assert [round(value, 3) for value in silence] == [1.5, 0.7]
    assert longest_silence(Trace(summary=SUMMARY, marks=marks[:2])) is None


def test_of_very_many_spans_the_first_are_drawn() -> None:
    calls = tuple(TracedCall("p", "m", 1, "tool", float(number)) for number in range(500))
    picture = ElementTree.fromstring(draw_timeline(Trace(summary=SUMMARY, timings=Timings(total=500.0), calls=calls)))
    assert len(list(picture.iter("rect"))) == 40
