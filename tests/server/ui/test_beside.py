"""Both sides of a trace, piece by piece."""

from __future__ import annotations

import msgspec

from isthmus.ports.traced import Piece, Trace, TracedBody, TracedCall, TracedDecision, TraceSummary
from isthmus.server.ui.beside import LONGEST, beside


def made(request: TracedBody, *bodies: TracedBody, decisions: tuple[TracedDecision, ...] = ()) -> Trace:
    calls = tuple(TracedCall("p", "m", 1, "first", 0.0, body) for body in bodies)
    return Trace(summary=TraceSummary(id="r", at=0, ended_at=1), request=request, calls=calls, decisions=decisions)


DECISIONS = (
    TracedDecision("temperature", "supported", sends=("temperature",)),
    TracedDecision("max_output_tokens", "supported", sends=("max_tokens",)),
    TracedDecision("tools[0].strict", "degraded", "why"),
    TracedDecision("tools", "supported"),
    TracedDecision("seed", "ignored"),
)
CLIENT = TracedBody(
    pieces=(
        Piece("temperature", 3, "t"),
        Piece("max_output_tokens", 2, "x"),
        Piece("tools[0]", 50, "a"),
        Piece("tools[1]", 60, "b"),
        Piece("seed", 1, "s"),
        Piece("input[0]", 9, "i", "user"),
    )
)
UPSTREAM = TracedBody(
    pieces=(
        Piece("model", 3, "m"),
        Piece("messages[0]", 30, "y", "user"),
        Piece("temperature", 3, "t"),
        Piece("max_tokens", 2, "x2"),
        Piece("tools[0]", 70, "c"),
        Piece("stream", 4, "z"),
    )
)


def test_each_piece_has_its_mark_and_the_decisions_about_it() -> None:
    sides = beside(made(CLIENT, UPSTREAM, decisions=DECISIONS))
    client = {one.path: (one.mark, one.decisions) for one in sides.client}
    assert client["temperature"] == ("supported", (0,))
    assert client["tools[0]"] == ("degraded", (2, 3)), "the worst counts; what is about the list stands with its first"
    assert client["tools[1]"] == ("", ())
    assert client["seed"] == ("ignored", (4,))
    upstream = {one.path: (one.mark, one.decisions) for one in sides.calls[0]}
    assert upstream == {
        "model": ("added", ()),
        "messages[0]": ("sent", ()),
        "temperature": ("same", (0,)),
        "max_tokens": ("sent", (1,)),
        "tools[0]": ("sent", ()),
        "stream": ("added", ()),
    }


def test_values_are_shown_where_they_were_captured() -> None:
    content = {"temperature": 0.5, "tools": [{"name": "f"}], "input": "a text", "seed": "x" * (LONGEST + 5)}
    client = msgspec.structs.replace(CLIENT, content=msgspec.Raw(msgspec.json.encode(content)))
    shown = {one.path: one for one in beside(made(client)).client}
    assert shown["temperature"].value == "0.5"
    assert shown["tools[0]"].value == '{\n "name": "f"\n}'
    assert shown["tools[1]"].value is None, "beyond the list"
    assert shown["input[0]"].value == "a text", "an input that is one text is one message"
    assert (len(shown["seed"].value or ""), shown["seed"].cut) == (LONGEST, True)


def test_why_there_is_no_content_is_told() -> None:
    assert beside(made(TracedBody(cut="too large"), TracedBody(cut="withheld"))).notes == ("too large", "withheld")
