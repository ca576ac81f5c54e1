"""The conductor: what is sent, when the model is asked again, and how a turn fails."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from isthmus.bridge.at_once import end_here, feed_here, reconstruct_response_object
from isthmus.bridge.capabilities import ResponseFormatSupport, ToolSupport
from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Failed,
    Finished,
    Reasoning,
    Refusal,
    Text,
    TurnPaused,
    Usage,
    Used,
)
from isthmus.bridge.jobs import CheckAnswer, give_up, run_job
from isthmus.bridge.tools.examine import ExamineInput
from isthmus.bridge.turn import MAX_PAUSES, Check, Done, Send, Turn
from isthmus.bridge.types.plan import Host, Plan
from isthmus.errors import BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT, OutputInvalid, OutputUnchecked, UpstreamFailed
from isthmus.testing.fold import plan_for
from wire.oracle import check_response, check_stream

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
JSON_OBJECT = ResponseFormatSupport(supported=frozenset({"text", "json_object"}))
NATIVE = ResponseFormatSupport(supported=frozenset({"text", "json_object", "json_schema"}))
WHO = {"provider": "test", "model": "test-model", "response_id": "resp_1"}
CALL = [CallOpened(0, "c", "f"), CallArguments(0, "{}"), Finished("tool_calls")]
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def plan(*, strict: bool = True, budget: int = 1, formats: ResponseFormatSupport = JSON_OBJECT) -> Plan:
    body = {
        "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": strict}},
        "tools": [TOOL],
        "stream": True,
    }
    return plan_for(body, host=Host(repair_budget=budget), response_formats=formats)


def turn_of(plan: Plan) -> Turn:
    turn = Turn(plan, response_id="resp_1", now=1)
    turn.begin(1)
    return turn


def answer(turn: Turn, *deltas: Any) -> tuple[list[dict[str, Any]], Done | Send]:
    events = turn.accepted() + feed_here(turn, deltas)
    return events, end_here(turn, 2)


def codes(response: dict[str, Any]) -> list[str]:
    return [said["code"] for said in response["isthmus"]["diagnostics"]]


def test_a_valid_answer_passes_and_is_held_until_it_is_known_to_be() -> None:
    turn = turn_of(plan())
    events, done = answer(turn, Text('{"a"'), Text(": 1}"), Finished("stop"))
    assert isinstance(done, Done)
    assert not any("output_text" in event["type"] for event in events)
    check_stream(events + done.events)
    assert done.response["output_text"] == '{"a": 1}'


TOKENS = [{"token": token, "bytes": [], "logprob": -0.5, "top_logprobs": []} for token in ('{"a"', ": 1}")]


def test_log_probabilities_of_held_text_are_kept() -> None:
    said = [Text(token["token"], [token]) for token in TOKENS]
    _, done = answer(turn_of(plan()), *said, Finished("stop"))
    assert isinstance(done, Done)
    assert done.response["output"][0]["content"][0]["logprobs"] == TOKENS


def test_log_probabilities_of_text_that_was_cleaned_or_asked_for_again_are_not() -> None:
    turn = turn_of(plan())
    _, again = answer(turn, Text("no", TOKENS[:1]), Finished("stop"))
    assert isinstance(again, Send)
    _, done = answer(turn, Text('Sure! {"a": 1}', TOKENS), Finished("stop"))
    assert isinstance(done, Done)
    assert done.response["output"][0]["content"][0]["logprobs"] == []


def test_fences_and_prose_are_removed_and_reported() -> None:
    _, done = answer(turn_of(plan()), Text('Sure!\n```json\n{"a": 1}\n```\nDone.'), Finished("stop"))
    assert isinstance(done, Done)
    assert json.loads(done.response["output_text"]) == {"a": 1}
    assert "bridge.response.output_cleaned" in codes(done.response)


def test_a_broken_contract_is_asked_for_again_and_only_the_good_answer_is_told() -> None:
    turn = turn_of(plan())
    events, again = answer(turn, Text('{"a": "x"}'), Used(Usage(1, 2, 3)), Finished("stop"))
    assert isinstance(again, Send)
    said = again.body["messages"][-2:]
    assert said[0] == {"role": "assistant", "content": '{"a": "x"}'}
    assert said[1]["role"] == "user"
    assert "a" in said[1]["content"]
    events += turn.accepted() + feed_here(turn, [Text('{"a": 5}'), Used(Usage(10, 20, 30)), Finished("stop")])
    done = end_here(turn, 3)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    assert done.response["output_text"] == '{"a": 5}'
    assert done.response["usage"]["total_tokens"] == 33
    assert "bridge.response.invalid_output_format" in codes(done.response)


def test_the_budget_ends_and_the_failure_names_provider_model_and_response() -> None:
    turn = turn_of(plan(budget=0))
    events, done = answer(turn, Text("not json"), Finished("stop"))
    assert isinstance(done, Done)
    check_stream(events + done.events)
    assert done.response["status"] == "failed"
    assert done.response["error"]["code"] == BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT
    assert done.failure is not None
    assert done.failure.metadata.items() >= WHO.items()
    assert (done.response["output_text"], done.response["output"]) == ("", []), "no SDK reads it by its type"


def test_a_native_format_streams_live_and_is_checked_all_the_same() -> None:
    turn = turn_of(plan(formats=NATIVE))
    events, done = answer(turn, Text('{"a": "x"}'), Finished("stop"))
    assert any(event["type"] == "response.output_text.delta" for event in events)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    assert done.response["status"] == "failed"


FENCED = 'Sure!\n```json\n{"a": 1}\n```\nDone.'


def test_a_native_format_amid_prose_is_reported_where_it_was_streamed() -> None:
    _, done = answer(turn_of(plan(formats=NATIVE)), Text(FENCED), Finished("stop"))
    assert isinstance(done, Done)
    assert (done.response["status"], done.response["output_text"]) == ("completed", FENCED)
    assert codes(done.response) == ["bridge.response.output_unclean"]


def test_a_native_format_amid_prose_is_cleaned_where_nobody_has_seen_it() -> None:
    whole = msgspec.structs.replace(plan(formats=NATIVE), stream=False)
    _, done = answer(turn_of(whole), Text(FENCED), Finished("stop"))
    assert isinstance(done, Done)
    assert (done.response["status"], done.response["output_text"]) == ("completed", '{"a": 1}')
    assert codes(done.response) == ["bridge.response.output_cleaned"]


def test_a_loose_format_amid_prose_stays_as_it_is_and_is_reported() -> None:
    _, done = answer(turn_of(plan(strict=False)), Text(FENCED), Finished("stop"))
    assert isinstance(done, Done)
    assert done.response["output_text"] == FENCED
    assert "bridge.response.output_unclean" in codes(done.response)


def test_a_response_that_could_not_be_kept_is_told_as_failed_and_nothing_told_before_changes() -> None:
    _, done = answer(turn_of(plan_for()), Text("hi"), Finished("stop"))
    assert isinstance(done, Done)
    before = copy.deepcopy(done)
    lost = done.unkept("server_error", "the disk is full")
    assert done == before
    assert lost.events[:-1] == done.events[:-1]
    assert lost.events[-1]["type"] == "response.failed"
    assert lost.events[-1]["sequence_number"] == done.events[-1]["sequence_number"]
    check_response(lost.response)


def test_a_loose_format_only_reports_the_mismatch() -> None:
    _, done = answer(turn_of(plan(strict=False)), Text("not json"), Finished("stop"))
    assert isinstance(done, Done)
    assert done.response["status"] == "completed"
    assert "bridge.response.invalid_output_format" in codes(done.response)


LEFT_ALONE = {
    "tool calls": CALL,
    "text beside tool calls": [
        Text("let me look"),
        CallOpened(0, "c", "f"),
        CallArguments(0, "{}"),
        Finished("tool_calls"),
    ],
    "refusal": [Refusal("no"), Finished("stop")],
    "incomplete": [Text('{"a":'), Finished("length")],
    "filtered": [Text('{"a":'), Finished("content_filter")],
}


@pytest.mark.parametrize("deltas", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_turns_that_are_no_final_answer_are_left_alone(deltas: list[Any]) -> None:
    turn = turn_of(plan())
    events, done = answer(turn, *deltas)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    assert done.response["status"] in ("completed", "incomplete")
    assert done.response["error"] is None


@pytest.mark.parametrize("deltas", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_reconstruct_response_object_is_the_same_machine_folded(deltas: list[Any]) -> None:
    made = plan()
    turn = turn_of(made)
    _, done = answer(turn, *deltas)
    assert isinstance(done, Done)
    response = reconstruct_response_object(made, deltas, response_id="resp_1", created_at=1, completed_at=2)
    check_response(response)
    assert response == done.response


@pytest.mark.parametrize("budget", [0, 1])
def test_reconstruct_response_object_raises_for_a_broken_binding_contract(budget: int) -> None:
    with pytest.raises(OutputInvalid) as caught:
        reconstruct_response_object(
            plan(budget=budget), [Text("x"), Finished("stop")], response_id="resp_1", created_at=1, completed_at=2
        )
    assert caught.value.code == BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT
    assert caught.value.metadata.items() >= WHO.items()


ASSEMBLY = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "completed_at": 2,
    "status": "completed",
    "model": "test-model",
    "output_text": "hi",
    "usage": {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 3,
    },
    "error": None,
    "incomplete_details": None,
}


@pytest.mark.parametrize("field", [*ASSEMBLY, "output"])
def test_each_field_of_the_assembly_table_has_its_source(field: str) -> None:
    response = reconstruct_response_object(
        plan_for(),
        [Text("hi"), Used(Usage(1, 2, 3)), Finished("stop")],
        response_id="resp_1",
        created_at=1,
        completed_at=2,
    )
    if field == "output":
        assert [item["type"] for item in response["output"]] == ["message"]
    else:
        assert response[field] == ASSEMBLY[field]


def test_an_answer_is_checked_by_whoever_is_told_to() -> None:
    turn = turn_of(plan())
    turn.accepted()
    turn.feed([Text('{"a": 5}'), Finished("stop")])
    check = turn.end(2)
    assert isinstance(check, Check)
    assert check.job == CheckAnswer(json.dumps(SCHEMA, sort_keys=True, separators=(",", ":")), 4_194_304, '{"a": 5}')
    turn.checked(run_job(check.job))
    done = turn.end(2)
    assert isinstance(done, Done)
    assert done.response["status"] == "completed"


def test_an_answer_that_could_not_be_checked_fails_a_binding_contract_with_the_reason() -> None:
    turn = turn_of(plan())
    events = turn.accepted() + turn.feed([Text('{"a": 5}'), Finished("stop")])
    check = turn.end(2)
    assert isinstance(check, Check)
    turn.checked(give_up(check.job, "it took longer than `checks.deadline`"))
    done = turn.end(2)
    assert isinstance(done, Done)
    assert isinstance(done.failure, OutputUnchecked)
    assert dict(done.failure.metadata) == WHO
    assert "`checks.deadline`" in done.response["error"]["message"]
    assert done.response["error"]["code"] == "bridge.response.output_unchecked"
    check_stream(events + done.events)


def test_an_answer_that_could_not_be_checked_passes_a_loose_format_with_a_diagnostic() -> None:
    turn = turn_of(plan(strict=False))
    turn.accepted()
    turn.feed([Text('{"a": 5}'), Finished("stop")])
    check = turn.end(2)
    assert isinstance(check, Check)
    turn.checked(give_up(check.job, "it took longer than `checks.deadline`"))
    done = turn.end(2)
    assert isinstance(done, Done)
    assert done.failure is None
    assert done.response["output_text"] == '{"a": 5}'
    assert "bridge.response.output_unchecked" in codes(done.response)


DIGITS = {"type": "custom", "name": "dial", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}}
DIALLED = [
    CallOpened(0, "c0", "dial"),
    CallArguments(0, '{"input": "12"}'),
    CallOpened(1, "c1", "dial"),
    CallArguments(1, '{"input": "x"}'),
    Text("Both dialled."),
    Finished("stop"),
]


def dialling() -> Turn:
    facts = {"tools": ToolSupport(native=frozenset({"function"}), degraded={"custom": "function"})}
    return turn_of(plan_for({"tools": [DIGITS], "stream": True}, **facts))


def test_a_custom_call_waits_for_its_verdict_and_nothing_behind_it_is_told_before() -> None:
    turn = dialling()
    events = turn.accepted() + turn.feed(DIALLED)
    first = turn.halt
    assert isinstance(first, Check)
    assert first.job == ExamineInput(DIGITS, "12")
    assert not [event for event in events if event["type"] == "response.output_item.done"]
    assert len([event for event in events if event["type"] == "response.output_item.added"]) == 1
    assert turn.feed(()) == []
    turn.checked(run_job(first.job))
    events += turn.feed(())
    second = turn.halt
    assert isinstance(second, Check)
    assert second.job == ExamineInput(DIGITS, "x")
    turn.checked(run_job(second.job))
    events += turn.feed(())
    assert turn.halt is None
    done = turn.end(2)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    assert [item["type"] for item in done.response["output"]] == ["custom_tool_call", "custom_tool_call", "message"]
    assert codes(done.response).count("bridge.tool.grammar_mismatch") == 1


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_the_pause_changes_no_event_whatever_the_batches(size: int) -> None:
    def told(batches: list[Any]) -> list[dict[str, Any]]:
        turn = dialling()
        events = turn.accepted()
        for batch in batches:
            events += feed_here(turn, batch)
        done = end_here(turn, 2)
        assert isinstance(done, Done)
        return events + done.events

    assert told([DIALLED[at : at + size] for at in range(0, len(DIALLED), size)]) == told([DIALLED])


@pytest.mark.parametrize("ending", ["fail", "cancel"])
def test_a_turn_that_breaks_off_during_an_examination_loses_nothing_that_had_come(ending: str) -> None:
    turn = dialling()
    events = turn.accepted() + turn.feed(DIALLED)
    assert isinstance(turn.halt, Check)
    done = turn.fail(UpstreamFailed("gone"), 2) if ending == "fail" else turn.cancel(2)
    check_stream(events + done.events)
    assert [item.get("input") for item in done.response["output"]] == ["12", "x", None]
    assert codes(done.response).count("bridge.tool.grammar_unchecked") == 2
    assert done.response["output_text"] == "Both dialled."


def test_the_last_call_is_examined_before_the_end() -> None:
    turn = dialling()
    turn.accepted()
    turn.feed([CallOpened(0, "c0", "dial"), CallArguments(0, '{"input": "x"}'), Finished("tool_calls")])
    assert turn.halt is None
    check = turn.end(2)
    assert isinstance(check, Check)
    turn.checked(give_up(check.job, "it took longer than `checks.deadline`"))
    done = turn.end(2)
    assert isinstance(done, Done)
    said = done.response["isthmus"]["diagnostics"][-1]
    assert said["code"] == "bridge.tool.grammar_unchecked"
    assert "`checks.deadline`" in said["message"]


def test_a_paused_turn_goes_on_behind_what_it_said_and_not_for_ever() -> None:
    turn = turn_of(plan_for({}, dialect="messages"))
    for pause in range(1, MAX_PAUSES + 1):
        block = {"type": "text", "text": str(pause)}
        _, send = answer(turn, Text(str(pause)), Used(Usage(1, 1, 2)), TurnPaused([block]), Finished("pause_turn"))
        assert isinstance(send, Send)
        last = send.body["messages"][-1]
        assert (last["role"], [one["text"] for one in last["content"]]) == ("assistant", list("12345"[:pause]))
    _, done = answer(turn, Text("6"), Used(Usage(1, 1, 2)), TurnPaused([]), Finished("pause_turn"))
    assert isinstance(done, Done)
    assert done.response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert done.response["output_text"] == "123456"
    assert done.response["usage"]["total_tokens"] == 12


def test_a_pause_that_failed_is_a_failure() -> None:
    turn = turn_of(plan_for({}, dialect="messages"))
    _, done = answer(turn, TurnPaused([]), Failed("no"), Finished("pause_turn"))
    assert isinstance(done, Done)
    assert done.response["status"] == "failed"


# ── sent ahead, and steered ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ahead", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_what_is_only_sent_ahead_is_completed_without_a_word(ahead: dict[str, Any]) -> None:
    done = Turn(plan_for({"input": "hi", **ahead}), response_id="resp_1", now=1).begin(2)
    assert isinstance(done, Done)
    check_stream(done.events)
    assert (done.response["output"], done.response["usage"]["total_tokens"]) == ([], 0)  # type: ignore[index]


def steered(*deltas: Any) -> dict[str, Any]:
    """The end of a plain turn that is steered behind its first delta."""
    turn = turn_of(plan_for({"input": "hi", "tools": [TOOL], "stream": True}))
    first, *rest = deltas
    events = turn.accepted() + feed_here(turn, [first])
    assert turn.steer()
    events += feed_here(turn, rest)
    done = end_here(turn, 2)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    return done.response  # type: ignore[return-value]


@pytest.mark.parametrize("following", [[Text("Bonjour."), Finished("stop")], CALL], ids=["text", "call"])
def test_a_steered_answer_ends_with_the_item_that_is_open(following: list[Any]) -> None:
    response = steered(Reasoning("Hm."), *following)
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "steered"})
    assert [(item["type"], item["status"]) for item in response["output"]] == [("reasoning", "completed")]


def test_one_that_speaks_completes_its_message() -> None:
    response = steered(Text("Bon"), Text("jour."), Finished("stop"))
    assert (response["status"], response["output_text"]) == ("completed", "Bonjour.")


def test_one_that_spoke_and_would_call_ends_before_its_call() -> None:
    response = steered(Text("Let me see."), *CALL)
    assert [item["type"] for item in response["output"]] == ["message"]


def test_one_that_calls_makes_all_its_calls() -> None:
    second = [CallOpened(1, "d", "f"), CallArguments(1, "{}")]
    response = steered(CALL[0], CALL[1], *second, Finished("tool_calls"))
    assert (response["status"], len(response["output"])) == ("completed", 2)


def test_one_that_has_said_nothing_can_be_stopped_at_once() -> None:
    turn = turn_of(plan_for({"input": "hi"}))
    events = turn.accepted()
    assert not turn.steer()
    done = turn.steer_out(2)
    check_stream(events + done.events)
    assert (done.response["output"], done.response["incomplete_details"]) == ([], {"reason": "steered"})
