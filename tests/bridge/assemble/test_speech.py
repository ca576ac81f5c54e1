"""Messages and thoughts as they are told, part by part."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

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


@given(st.lists(st.text(st.characters()), max_size=8), st.booleans())
def test_law_its_words_are_those_that_came_however_they_came(texts: list[str], together: bool) -> None:
    part = Speech("message", Output("resp_1")).begin("output_text")
    if together:
        part.extend(texts)
    else:
        for text in texts:
            part.append(text)
    assert part.text == "".join(texts)


def test_what_was_told_long_ago_takes_little_more_than_its_letters() -> None:
    """Streams are open for minutes, and many at a time."""
    output = Output("resp_1")
    part = Speech("message", output).begin("output_text")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(10_000):
            part.append(f"{number:05}")
            output.take()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2 * len(part.text)
