"""Items and events of one response: numbered without a gap, each id given once; and the Response object around them."""

from __future__ import annotations

from msgspec.structs import replace

from isthmus.bridge.assemble.output import Frame, Output, usage_object
from isthmus.bridge.deltas import Usage
from isthmus.protocol.items import ReasoningItem
from isthmus.testing.fold import plan_for
from wire.oracle import check_response


def item(id: str) -> ReasoningItem:
    return {"type": "reasoning", "id": id, "status": "completed", "summary": []}


def test_ids_are_made_from_the_response_and_the_place() -> None:
    output = Output("resp_7")
    assert [output.place("msg"), output.place("fc")] == [("msg_7_0", 0), ("fc_7_1", 1)]


def test_a_vendors_id_is_taken_unless_it_was_given_before() -> None:
    output = Output("resp_7")
    assert [output.place("ws", "ws_up")[0], output.place("ws", "ws_up")[0]] == ["ws_up", "ws_7_1"]


def test_what_is_unsaid_keeps_its_place_and_leaves_no_gap() -> None:
    output = Output("resp_7")
    id, index = output.place("rs")
    output.added(index, item(id))
    told = output.sequence
    output.done(index, item(id))
    output.unsay(told)
    output.added(output.place("rs")[1], item("other"))
    assert [event["sequence_number"] for event in output.take()] == [0, 1]
    assert output.items == [item(id)]


def test_a_response_that_has_not_begun_is_a_whole_object() -> None:
    response = Frame(plan_for(), "resp_1", 1).response("queued")
    check_response(dict(response))
    assert "isthmus" not in response


def test_an_alias_is_told_only_where_there_is_one() -> None:
    for alias in (None, "fast"):
        plan = plan_for()
        frame = Frame(replace(plan, target=replace(plan.target, alias=alias)), "resp_1", 1)
        finished = frame.finished(frame.response("in_progress"), ())
        assert finished["isthmus"].get("alias") == alias
        assert ("alias" in finished["isthmus"]) is (alias is not None)


def test_estimated_usage_says_so() -> None:
    assert "estimated" not in usage_object(Usage(1, 2, 3))
    assert usage_object(Usage(1, 2, 3, estimated=True))["estimated"] is True
    assert usage_object(Usage(1, 2, 3) + Usage(1, 1, 2, estimated=True))["total_tokens"] == 5
