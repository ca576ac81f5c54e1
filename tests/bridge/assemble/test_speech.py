"""Messages and thoughts as they are told, part by part."""

from __future__ import annotations

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Speech
from isthmus.bridge.deltas import PartKind


def test_a_message_knows_its_answer_text_and_not_its_refusals() -> None:
    message = Speech("message", Output("resp_1"))
    message.begin("output_text").append("a")
    message.begin("refusal").append("no")
    message.begin("output_text").append("b")
    assert message.text == "ab"


def test_parts_of_each_kind_are_counted_for_themselves() -> None:
    output = Output("resp_1")
    thought = Speech("reasoning", output, seal=lambda text: text.replace("\n\n", "|"))
    kinds: list[PartKind] = ["summary_text", "reasoning_text", "summary_text"]
    for kind in kinds:
        thought.begin(kind).append("x")
    thought.close("completed")
    [item] = output.items
    assert item["type"] == "reasoning"
    assert (len(item["summary"]), len(item["content"]), item["encrypted_content"]) == (2, 1, "x|x|x")
    added = "response.reasoning_summary_part.added"
    places = [event["summary_index"] for event in output.take() if event["type"] == added]
    assert places == [0, 1]
