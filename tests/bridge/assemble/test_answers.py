"""Deltas → events: what each kind of answer looks like on the wire, checked by the oracle each time."""

from __future__ import annotations

import pytest

from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Failed,
    Finished,
    HostedCall,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
)
from isthmus.bridge.turn import Done, Turn
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from oracled import PLAN, TOOLS, run, types
from wire.oracle import check_stream


def test_text() -> None:
    events, response = run(Text("a"), Text("b"), Finished("stop"))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert types(events) == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert response["output_text"] == "ab"


def test_reasoning_is_closed_before_the_text_opens() -> None:
    events, _ = run(Reasoning("t"), Text("a"), Finished("stop"))
    assert types(events) == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_reasoning_summaries_have_their_own_events() -> None:
    events, response = run(Reasoning("s", "summary"), Finished("stop"))
    assert types(events)[:5] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
    ]
    assert response["output"][0]["summary"] == [{"type": "summary_text", "text": "s"}]


def test_interleaved_parallel_calls_stay_apart() -> None:
    _, response = run(
        CallOpened(0, "a", "f"),
        CallArguments(0, '{"x":'),
        CallOpened(1, "b", "g"),
        CallArguments(1, "{}"),
        CallArguments(0, "1}"),
        Finished("tool_calls"),
    )
    assert [(item["name"], item["arguments"]) for item in response["output"]] == [("f", '{"x":1}'), ("g", "{}")]


def test_a_whole_call_is_closed_when_the_next_one_opens() -> None:
    events, _ = run(CallOpened(0, "a", "f"), CallArguments(0, "{}"), CallOpened(1, "b", "g"), Finished("tool_calls"))
    order = [(event["type"], event.get("output_index")) for event in events]
    assert order.index(("response.output_item.done", 0)) < order.index(("response.output_item.added", 1))


def test_a_call_outside_allowed_tools_never_reaches_the_client() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}
    plan = plan_for({"tools": TOOLS[:2], "tool_choice": choice})
    events, response = run(CallOpened(0, "a", "f"), CallArguments(0, "{}"), Finished("tool_calls"), plan=plan)
    assert [item["type"] for item in response["output"]] == ["message"]
    assert not any("function_call" in event["type"] for event in events)
    assert response["isthmus"]["diagnostics"][-1]["code"] == "bridge.tool.call_suppressed"


def test_tool_choice_none_lets_no_call_through() -> None:
    plan = plan_for({"tools": TOOLS[:2], "tool_choice": "none"})
    _, response = run(CallOpened(0, "a", "f"), CallArguments(0, "{}"), Finished("tool_calls"), plan=plan)
    assert [item["type"] for item in response["output"]] == ["message"]


def test_an_unnamed_call_is_inferred_when_there_is_one_tool() -> None:
    plan = plan_for({"tools": TOOLS[:1]})
    _, response = run(CallOpened(0, "a", ""), CallArguments(0, "{}"), Finished("tool_calls"), plan=plan)
    assert response["output"][0]["name"] == "f"


def test_an_unnamed_call_among_several_tools_fails_the_turn() -> None:
    _, response = run(CallOpened(0, "a", ""), CallArguments(0, "{}"), Finished("tool_calls"))
    assert response["status"] == "failed"
    assert "without naming it" in response["error"]["message"]


def test_call_ids_used_earlier_in_the_conversation_are_made_unique() -> None:
    history = [
        {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "1"},
    ]
    plan = plan_for({"input": history, "tools": TOOLS[:1]})
    _, response = run(CallOpened(0, "call_0", "f"), CallOpened(1, None, "f"), Finished("tool_calls"), plan=plan)
    ids = [item["call_id"] for item in response["output"]]
    assert len({"call_0", *ids}) == 3


def test_refusals_are_told_as_refusals() -> None:
    events, response = run(Refusal("no"), Finished("stop"))
    assert "refusal.delta" in types(events)
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": "no"}]


def test_annotations_belong_to_their_text() -> None:
    citation = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    events, response = run(Text("a"), Annotation(citation), Finished("stop"))
    assert "output_text.annotation.added" in types(events)
    assert response["output"][0]["content"][0]["annotations"] == [citation]


def test_an_annotation_that_comes_before_its_text_is_kept() -> None:
    citation = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    _, response = run(Annotation(citation), Text("a"), Finished("stop"))
    assert response["output"][0]["content"][0]["annotations"] == [citation]


def test_an_annotation_without_any_text_is_reported() -> None:
    _, response = run(
        CallOpened(0, "a", "f"), Annotation({"type": "x"}), CallArguments(0, "{}"), Finished("tool_calls")
    )
    assert response["isthmus"]["diagnostics"][-1]["code"] == "bridge.item.ignored"


def test_searches_that_the_provider_ran_have_a_receipt() -> None:
    item = {"type": "web_search_call", "action": {"type": "search", "query": "q", "sources": []}}
    events, _ = run(Text("a"), HostedCall(item), Finished("stop"))
    assert [t for t in types(events) if t.startswith("web_search_call")] == [
        "web_search_call.in_progress",
        "web_search_call.searching",
        "web_search_call.completed",
    ]


def test_an_empty_answer_is_an_empty_message() -> None:
    _, response = run(Finished("stop"))
    assert [item["type"] for item in response["output"]] == ["message"]
    assert response["output"][0]["content"][0]["text"] == ""


def test_usage_after_the_finish_reason_counts() -> None:
    _, response = run(Text("a"), Finished("stop"), Used(Usage(3, 4, 7, 2, 1)))
    assert response["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 7,
    }


def test_an_error_inside_the_answer_fails_the_response_with_its_own_words() -> None:
    events, response = run(Text("a"), Failed("boom", "rate_limit_exceeded"))
    assert events[-1]["type"] == "response.failed"
    assert response["error"] == {"code": "rate_limit_exceeded", "message": "boom"}
    assert response["output"][0]["status"] == "incomplete"


def _turn(plan: Plan = PLAN) -> Turn:
    return Turn(plan, response_id="resp_1", now=1)


@pytest.mark.parametrize("begun", [False, True])
def test_exactly_one_terminal_event_whatever_happens(begun: bool) -> None:
    for ending in ("end", "fail", "cancel"):
        turn = _turn()
        events = turn.accepted() if begun else []
        if begun:
            events += turn.feed([Text("a"), CallOpened(0, "x", "f"), CallArguments(0, '{"a":')])
        done = (
            turn.end(2)
            if ending == "end"
            else turn.fail(UpstreamFailed("x"), 2)
            if ending == "fail"
            else turn.cancel(2)
        )
        assert isinstance(done, Done)
        events += done.events
        check_stream(events)
        assert turn.ended
        with pytest.raises(RuntimeError, match="ended"):
            turn.feed([Text("late")])


def test_the_machine_refuses_illegal_moves() -> None:
    turn = _turn()
    with pytest.raises(RuntimeError, match="idle"):
        turn.feed([Text("a")])
    assert turn.accepted() != []
    assert turn.accepted() == [], "a second attempt is not told as a second response"


def test_heartbeats_take_their_place_in_the_numbering() -> None:
    turn = _turn()
    events = turn.accepted()
    events.append(turn.heartbeat())
    events += turn.feed([Text("a"), Finished("stop")])
    done = turn.end(2)
    assert isinstance(done, Done)
    check_stream(events + done.events)
