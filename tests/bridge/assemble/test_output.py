"""Items and events of one response: numbered without a gap, each id given once."""

from __future__ import annotations

from isthmus.bridge.assemble.output import Output
from isthmus.protocol.items import ReasoningItem


def item(id: str) -> ReasoningItem:
    return {"type": "reasoning", "id": id, "status": "completed", "summary": []}


def test_ids_are_made_from_the_response_and_the_place() -> None:
    output = Output("resp_7")
    assert [output.place("msg"), output.place("fc")] == [("msg_7_0", 0), ("fc_7_1", 1)]


def test_a_vendors_id_is_taken_unless_it_was_given_before() -> None:
    output = Output("resp_7")
    assert [output.place("ws", "ws_up")[0], output.place("ws", "ws_up")[0]] == ["ws_up", "ws_7_1"]


def test_what_is_told_silently_keeps_its_place_and_leaves_no_gap() -> None:
    output = Output("resp_7")
    id, index = output.place("rs")
    output.added(index, item(id))
    with output.silently():
        output.done(index, item(id))
    output.added(output.place("rs")[1], item("other"))
    assert [event["sequence_number"] for event in output.take()] == [0, 1]
    assert output.items == [item(id)]
