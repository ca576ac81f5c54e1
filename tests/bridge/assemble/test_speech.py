"""Messages and thoughts as they are told, part by part."""

from __future__ import annotations

from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Message, Thought


def test_a_message_knows_its_answer_text_and_not_its_refusals() -> None:
    message = Message(Output("resp_1"))
    message.begin_text().append("a")
    message.begin_refusal().append("no")
    message.begin_text().append("b")
    assert message.text == "ab"


def test_parts_of_each_kind_are_counted_for_themselves() -> None:
    output = Output("resp_1")
    thought = Thought(output)
    for begin in (thought.begin_summary, thought.begin_text, thought.begin_summary):
        begin().append("x")
    thought.close("completed", lambda text: text.replace("\n\n", "|"))
    [item] = output.items
    assert item["type"] == "reasoning"
    assert (len(item["summary"]), len(item["content"]), item["encrypted_content"]) == (2, 1, "x|x|x")
    added = "response.reasoning_summary_part.added"
    places = [event["summary_index"] for event in output.take() if event["type"] == added]
    assert places == [0, 1]
