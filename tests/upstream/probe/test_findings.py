"""What was found out: cautious until shown otherwise."""

from __future__ import annotations

from isthmus.upstream.probe.findings import Findings, Note


def test_nothing_is_believed_before_it_was_seen() -> None:
    found = Findings()
    assert not any(
        (found.streaming, found.tools, found.parallel, found.developer, found.system_anywhere, found.responses)
    )
    assert (found.formats, found.inputs, found.parameters, found.context) == (("text",), (), (), None)


def test_every_question_has_its_verdict_in_the_order_asked() -> None:
    found = Findings()
    found.note("streams", True)
    found.note("calls tools", False, "refused")
    found.note("shows its reasoning", None)
    assert found.notes == [
        Note("streams", "yes"),
        Note("calls tools", "no", "refused"),
        Note("shows its reasoning", "unknown"),
    ]


def test_two_probes_share_nothing() -> None:
    Findings().note("streams", True)
    assert Findings().notes == []
