"""One upstream answer: its bounds, what is held of it, and what dies with it."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from isthmus.bridge.at_once import end_here
from isthmus.bridge.capabilities import ParameterRule, ReplyRules, ResponseFormatSupport
from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Finished,
    ItemBegan,
    ItemEnded,
    Markup,
    PartBegan,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.envelope import seal, unseal
from isthmus.bridge.turn import Done, Send, Turn
from isthmus.bridge.types.plan import Host, Plan
from isthmus.testing.fold import plan_for, stream
from wire.oracle import check_response, check_stream

Json = dict[str, Any]
KEY = b"k" * 32
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def cite(url: str) -> Json:
    return {"type": "url_citation", "url": url, "title": "t", "start_index": 0, "end_index": 1}


def run(*deltas: Delta, plan: Plan | None = None) -> tuple[list[Json], Json]:
    events, response = stream(deltas, plan=plan)
    check_stream(events)
    check_response(response)
    return events, response


def shape(response: Json) -> list[Any]:
    """Each item as its type and the texts of its parts."""
    return [
        (item["type"], [part.get("text", part.get("refusal")) for part in item.get("content", [])])
        for item in response["output"]
    ]


def test_two_messages_stay_two_with_their_own_phase_and_citations() -> None:
    _, response = run(
        *(ItemBegan("message", "commentary"), Text("Looking."), Annotation(cite("a")), ItemEnded()),
        *(ItemBegan("message", "final_answer"), Text("Done."), Annotation(cite("b")), ItemEnded()),
        Finished("stop"),
    )
    first, second = response["output"]
    assert shape(response) == [("message", ["Looking."]), ("message", ["Done."])]
    assert (first["phase"], second["phase"]) == ("commentary", "final_answer")
    assert first["content"][0]["annotations"] == [cite("a")]
    assert second["content"][0]["annotations"] == [cite("b")]


def test_a_message_is_done_as_soon_as_the_vendor_says_so() -> None:
    turn = Turn(plan_for(), response_id="resp_1", now=1)
    turn.accepted()
    events = turn.feed([ItemBegan("message"), Text("a"), ItemEnded()])
    assert events[-1]["type"] == "response.output_item.done"


def test_a_phase_that_comes_last_is_in_the_finished_item() -> None:
    _, response = run(Text("a"), ItemEnded(phase="final_answer"), Finished("stop"))
    assert response["output"][0]["phase"] == "final_answer"


def test_parts_of_a_message_stay_parts() -> None:
    _, response = run(
        ItemBegan("message"),
        *(Text("a"), Annotation(cite("a"))),
        *(PartBegan("output_text"), Text("b"), Annotation(cite("b"))),
        PartBegan("output_text"),
        Refusal("no"),
        Finished("stop"),
    )
    assert shape(response) == [("message", ["a", "b", "", "no"])]
    parts = response["output"][0]["content"]
    assert [part.get("annotations") for part in parts] == [[cite("a")], [cite("b")], [], None]


def test_parts_of_a_summary_stay_parts() -> None:
    _, response = run(Reasoning("a", "summary"), PartBegan("summary_text"), Reasoning("b", "summary"), Finished("stop"))
    assert [part["text"] for part in response["output"][0]["summary"]] == ["a", "b"]


def test_an_item_that_was_cut_off_ends_as_the_reply_does() -> None:
    _, response = run(ItemBegan("message"), Text("a"), ItemEnded("incomplete"), Finished("length"))
    assert response["output"][0]["status"] == "incomplete"


def test_what_a_decoder_left_out_is_reported() -> None:
    _, response = run(Text("a"), Markup("a picture", "bridge.response.part_ignored"), Finished("stop"))
    assert [said["code"] for said in response["isthmus"]["diagnostics"]] == ["bridge.response.part_ignored"]


def _sealed(*deltas: Delta) -> list[Any]:
    plan = msgspec.structs.replace(plan_for({"tools": [TOOL]}), seals_reasoning=True)
    turn = Turn(plan, response_id="resp_1", now=1, seal=lambda sealed: seal(sealed, KEY))
    turn.accepted()
    turn.feed(deltas)
    done = turn.end(2)
    assert isinstance(done, Done)
    response: Any = done.response
    check_response(response)
    found = []
    for item in response["output"]:
        opened = unseal(item["encrypted_content"], KEY) if "encrypted_content" in item else None
        found.append((item["type"], opened and (opened.text, opened.extras)))
    return found


def test_interleaved_thoughts_each_carry_their_own_vendor_state() -> None:
    def block(text: str, signature: str) -> tuple[Delta, ...]:
        return (ItemBegan("reasoning"), Reasoning(text), VendorExtra("signature", signature), ItemEnded())

    found = _sealed(
        *block("one", "s1"),
        *(CallOpened(0, "a", "f"), CallArguments(0, "{}")),
        *block("", "s2"),
        *block("three", "s3"),
        Text("done"),
        Finished("stop"),
    )
    assert found == [
        ("reasoning", ("one", {"signature": "s1"})),
        ("function_call", None),
        ("reasoning", ("", {"signature": "s2"})),
        ("reasoning", ("three", {"signature": "s3"})),
        ("message", None),
    ]


# Held text

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
STRICT = {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}}
JSON_OBJECT = ResponseFormatSupport(supported=frozenset({"text", "json_object"}))


def held_plan(**body: Any) -> Plan:
    return plan_for({"text": STRICT, "stream": True, **body}, response_formats=JSON_OBJECT, host=Host(repair_budget=1))


def test_citations_of_a_failed_attempt_never_attach_to_the_repaired_answer() -> None:
    turn = Turn(held_plan(), response_id="resp_1", now=1)
    events = turn.accepted() + turn.feed([Annotation(cite("old")), Text("no json"), Finished("stop")])
    assert isinstance(end_here(turn, 2), Send)
    events += turn.feed([Text('{"a": 1}'), Annotation(cite("new")), Finished("stop")])
    done = end_here(turn, 3)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    assert done.response["output"][0]["content"][0]["annotations"] == [cite("new")]


def test_nothing_of_a_failed_attempt_is_left() -> None:
    turn = Turn(held_plan(), response_id="resp_1", now=1)
    turn.accepted()
    turn.feed([ItemBegan("message", "commentary"), Text("no json"), VendorExtra("k", "old"), Finished("stop")])
    assert isinstance(end_here(turn, 2), Send)
    turn.feed([Text('{"a": 1}'), Finished("stop")])
    done = end_here(turn, 3)
    assert isinstance(done, Done)
    assert shape(done.response) == [("message", ['{"a": 1}'])]
    assert "phase" not in done.response["output"][0]


def test_several_messages_under_a_contract_are_cleaned_but_for_the_commentary() -> None:
    _, response = run(
        *(ItemBegan("message", "commentary"), Text("Looking."), ItemEnded()),
        *(ItemBegan("message", "final_answer"), Text('Sure: {"a": 1}'), ItemEnded()),
        Finished("stop"),
        plan=held_plan(),
    )
    assert shape(response) == [("message", ["Looking."]), ("message", ['{"a": 1}'])]
    assert [item["phase"] for item in response["output"]] == ["commentary", "final_answer"]


def test_messages_that_keep_a_contract_are_told_as_they_are() -> None:
    said = [ItemBegan("message"), Text('{"a":'), Text(" 1}"), ItemEnded()]
    _, response = run(*said, Finished("stop"), plan=held_plan())
    assert shape(response) == [("message", ['{"a": 1}'])]


def test_what_is_held_is_told_at_once_when_no_contract_can_change_it_any_more() -> None:
    turn = Turn(held_plan(tools=[TOOL]), response_id="resp_1", now=1)
    turn.accepted()
    assert turn.feed([Text("let me look")]) == []
    kinds = [event["type"] for event in turn.feed([CallOpened(0, "a", "f")])]
    assert kinds.index("response.output_text.delta") < len(kinds) - 1
    turn = Turn(held_plan(), response_id="resp_1", now=1)
    turn.accepted()
    turn.feed([Text("I ")])
    kinds = [event["type"] for event in turn.feed([Refusal("will not")])]
    assert "response.output_text.delta" in kinds
    assert kinds[-1] == "response.refusal.delta"


# What was told is never changed

TOKEN = {"token": "a", "bytes": [], "logprob": -0.5, "top_logprobs": []}
LIVELY: list[Delta] = [
    Reasoning("t"),
    Text("a", [TOKEN]),
    Text("a", [TOKEN]),
    Annotation(cite("a")),
    PartBegan("output_text"),
    Text("b", [TOKEN]),
    CallOpened(0, "a", "f"),
    CallArguments(0, "{}"),
    Finished("stop"),
]


@pytest.mark.parametrize("size", [1, 2, 3, len(LIVELY)])
def test_events_do_not_depend_on_how_deltas_are_batched(size: int) -> None:
    one_by_one, _ = stream([[delta] for delta in LIVELY], plan=plan_for({"tools": [TOOL]}))
    batches = [LIVELY[start : start + size] for start in range(0, len(LIVELY), size)]
    assert stream(batches, plan=plan_for({"tools": [TOOL]}))[0] == one_by_one


def test_an_event_that_was_told_never_changes() -> None:
    turn = Turn(plan_for({"tools": [TOOL]}), response_id="resp_1", now=1)
    events = turn.accepted()
    told = copy.deepcopy(events)
    for delta in LIVELY:
        more = turn.feed([delta])
        events += more
        told += copy.deepcopy(more)
    done = end_here(turn, 2)
    assert isinstance(done, Done)
    assert events == told


def limited(limit: int | None = 8, *, tells_length: bool = False) -> Plan:
    """A plan for a server that does, or does not, tell that an answer met its limit."""
    body = {} if limit is None else {"max_output_tokens": limit}
    facts = {"max_output_tokens": ParameterRule(to="max_tokens")}
    return plan_for(body, parameters=facts, reply=ReplyRules(tells_length=tells_length))


@pytest.mark.parametrize(
    ("plan", "used", "status"),
    [
        (limited(8), 8, "incomplete"),
        (limited(8), 9, "incomplete"),
        (limited(8), 7, "completed"),
        (limited(None), 99, "completed"),
        (limited(8, tells_length=True), 8, "completed"),
    ],
    ids=["the whole limit", "beyond it", "less", "no limit", "a server that tells"],
)
def test_an_answer_that_used_its_whole_limit_is_cut_where_the_server_does_not_tell(
    plan: Plan, used: int, status: str
) -> None:
    told = [ItemBegan("message"), Text("1, 2,"), ItemEnded(), Used(Usage(5, used, 5 + used)), Finished("stop")]
    _, response = run(*told, plan=plan)
    assert response["status"] == response["output"][-1]["status"] == status
    cut = status == "incomplete"
    assert response["incomplete_details"] == ({"reason": "max_output_tokens"} if cut else None)
    codes = [said["code"] for said in response["isthmus"]["diagnostics"]]
    assert codes == (["bridge.response.length_untold"] if cut else [])


def test_a_filter_outranks_a_limit_that_was_met() -> None:
    _, response = run(Text("1"), Used(Usage(5, 8, 13)), Finished("content_filter"), plan=limited(8))
    assert response["incomplete_details"] == {"reason": "content_filter"}
    assert response["isthmus"]["diagnostics"] == []


def test_of_two_items_only_the_last_was_cut() -> None:
    begun = [ItemBegan("reasoning"), Reasoning("hm"), ItemEnded(), ItemBegan("message"), Text("1"), ItemEnded()]
    _, response = run(*begun, Used(Usage(5, 8, 13)), Finished("stop"), plan=limited(8))
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]
