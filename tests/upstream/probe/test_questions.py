"""One question at a time: what an answer shows, and what it leaves open."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.upstream.probe.answers import Answer
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.questions import Dialogue, Steps, ask_formats, ask_inputs, ask_insight, ask_roles
from isthmus.upstream.probe.voices import CHAT

REFUSED = Answer(400, {"error": {"message": "no"}}, text="no")
NOTHING = Answer(0, text="did not answer in time", late=True)


def said(text: str, *, finish: str = "stop", **more: Any) -> Answer:
    return Answer(200, {"choices": [{"message": {"content": text, **more}, "finish_reason": finish}]})


def feed(steps: Steps[None], *answers: Answer) -> None:
    """Give these answers, the last of them to all that is asked after."""
    next(steps)
    given = list(answers)
    with pytest.raises(StopIteration):
        while True:
            steps.send(given.pop(0) if len(given) > 1 else given[0])


@pytest.fixture
def talk() -> Dialogue:
    found = Findings(model="m", limit_field="max_tokens")
    return Dialogue(found, found, CHAT)


@pytest.mark.parametrize(
    ("answer", "formats", "unclear"),
    [
        (said("hello"), ("text",), set()),
        (REFUSED, ("text",), set()),
        (said('{"colour": ', finish="length"), ("text",), {"formats.json_schema", "formats.json_object"}),
        (NOTHING, ("text",), {"formats.json_schema", "formats.json_object"}),
        (said('{"colour": "ultraviolet"}'), ("text", "json_object", "json_schema"), set()),
    ],
    ids=["words", "refused", "cut", "no answer", "kept"],
)
def test_formats(talk: Dialogue, answer: Answer, formats: tuple[str, ...], unclear: set[str]) -> None:
    feed(ask_formats(talk), answer)
    assert (talk.can.formats, talk.can.unclear) == (formats, unclear)


@pytest.mark.parametrize(
    ("shows", "answer", "off", "unclear"),
    [
        (("reasoning",), said("Green"), True, False),
        (("reasoning",), said("Green", reasoning="hm"), False, False),
        ((), said("Green"), False, True),
        ((), said("Green", reasoning="hm"), False, False),
        (("reasoning",), NOTHING, False, True),
        (("reasoning",), REFUSED, False, False),
    ],
    ids=["heeded", "not heeded", "never thinks", "thinks all the same", "no answer", "refused"],
)
def test_no_effort(talk: Dialogue, shows: tuple[str, ...], answer: Answer, off: bool, unclear: bool) -> None:
    feed(ask_insight(talk, shows), said("x"), answer)
    assert (talk.can.effort_none, "effort_none" in talk.can.unclear) == (off, unclear)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (said("white"), "yes"),
        (REFUSED, "no"),
        (Answer(500, text="image input is not supported"), "no"),
        (Answer(503, text="loading"), "unknown"),
    ],
    ids=["read", "refused", "refused with a 500", "trouble"],
)
def test_images(talk: Dialogue, answer: Answer, verdict: str) -> None:
    feed(ask_inputs(talk), answer)
    assert talk.found.notes[-1].verdict == verdict
    assert talk.can.inputs == (("image",) if verdict == "yes" else ())


def test_a_small_model_that_does_not_follow_says_nothing_of_its_server(talk: Dialogue) -> None:
    feed(ask_roles(talk), said("hello"))
    assert {"developer", "system_anywhere"} <= talk.can.unclear
    assert talk.can.repeats
