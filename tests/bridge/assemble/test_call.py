"""One call as it is told, checked by the oracle each time."""

from __future__ import annotations

from functools import partial

import pytest

from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Finished,
)
from isthmus.bridge.turn import Turn
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from oracled import TOOLS, types
from oracled import run as judged

PATCH_GRAMMAR = r"""
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: /(?!\*\*\* End)[^\n]+/ LF
%import common.LF
"""
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
}
PLAN = plan_for({"tools": [PATCH, *TOOLS]})
run = partial(judged, plan=PLAN)


def provider_name(type: str) -> str:
    return next(identity.provider_name for identity in PLAN.tools.identities if identity.requested_type == type)


def test_a_function_call_streams_its_arguments() -> None:
    events, response = run(
        CallOpened(0, "a", "f"), CallArguments(0, '{"x"'), CallArguments(0, ":1}"), Finished("tool_calls")
    )
    assert types(events) == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert response["output"][0] | {"id": ""} == {
        "type": "function_call",
        "id": "",
        "call_id": "a",
        "name": "f",
        "arguments": '{"x":1}',
        "status": "completed",
    }


@pytest.mark.parametrize("finish", ["tool_calls", "length"])
def test_arguments_nested_beyond_reason_do_not_break_the_turn(finish: str) -> None:
    deep = '{"a":' * 20_000
    calls = (CallOpened(0, "a", "f"), CallArguments(0, deep), CallOpened(1, "b", "f"), CallArguments(1, "{}"))
    _, response = run(*calls, Finished(finish))
    assert [item["arguments"] for item in response["output"]] == [deep, "{}"]


def test_custom_input_is_streamed_as_it_grows_not_in_one_lump() -> None:
    pieces = ['{"inp', 'ut": "hel', "lo \\u00e9 wor", 'ld"}']
    events, response = run(
        CallOpened(0, "a", "note"), *(CallArguments(0, piece) for piece in pieces), Finished("tool_calls")
    )
    deltas = [e["delta"] for e in events if e["type"] == "response.custom_tool_call_input.delta"]
    assert len(deltas) >= 3
    assert "".join(deltas) == "hello é world"
    assert response["output"][0]["input"] == "hello é world"
    assert response["output"][0]["type"] == "custom_tool_call"


def test_a_patch_without_its_envelope_is_held_repaired_and_reported() -> None:
    events, response = run(
        CallOpened(0, "a", "apply_patch"),
        CallArguments(0, '{"input": "*** Add File: a.txt\\n'),
        CallArguments(0, '+hi\\n"}'),
        Finished("tool_calls"),
        plan=plan_for({"tools": [PATCH]}),
    )
    assert response["output"][0]["input"] == "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch"
    assert sum(e["type"] == "response.custom_tool_call_input.delta" for e in events) == 1
    codes = [said["code"] for said in response["isthmus"]["diagnostics"]]
    assert "bridge.tool.input_repaired" in codes


TYPED = {
    "shell": ('{"commands": ["ls"]}', "shell_call"),
    "local_shell": ('{"command": ["ls"]}', "local_shell_call"),
    "apply_patch": ('{"operation": {"type": "delete_file", "path": "a"}}', "apply_patch_call"),
    "tool_search": ('{"query": "x"}', "tool_search_call"),
}


@pytest.mark.parametrize("type", TYPED)
def test_typed_calls_have_their_type_from_the_first_event_on(type: str) -> None:
    arguments, expected = TYPED[type]
    half = len(arguments) // 2
    events, response = run(
        CallOpened(0, "a", provider_name(type)),
        CallArguments(0, arguments[:half]),
        CallArguments(0, arguments[half:]),
        Finished("tool_calls"),
    )
    assert [e["item"]["type"] for e in events if "item" in e] == [expected, expected]
    assert response["output"][0]["status"] == "completed"


@pytest.mark.parametrize("type", TYPED)
def test_typed_calls_that_cannot_be_read_are_function_calls_from_the_first_event_on(type: str) -> None:
    events, response = run(
        CallOpened(0, "a", provider_name(type)), CallArguments(0, "[not json"), Finished("tool_calls")
    )
    assert [e["item"]["type"] for e in events if "item" in e] == ["function_call", "function_call"]
    assert response["isthmus"]["diagnostics"][-1]["code"] == "bridge.tool.call_fallback"


def test_namespaces_come_back_as_separate_fields() -> None:
    events, _ = run(CallOpened(0, "a", "mcp__x__echo"), CallArguments(0, "{}"), Finished("tool_calls"))
    for event in events:
        if "item" in event:
            assert (event["item"]["namespace"], event["item"]["name"]) == ("mcp__x", "echo")


def test_a_call_to_an_unknown_tool_is_passed_on_and_reported() -> None:
    _, response = run(CallOpened(0, "a", "nobody"), CallArguments(0, "{}"), Finished("tool_calls"))
    assert response["output"][0]["name"] == "nobody"
    assert response["isthmus"]["diagnostics"][-1]["code"] == "bridge.tool.unknown_call"


def test_a_cut_custom_call_is_never_closed_for_clients_would_run_half_of_it() -> None:
    turn = Turn(PLAN, response_id="resp_1", now=1)
    events = turn.accepted()
    events += turn.feed([CallOpened(0, "a", "note"), CallArguments(0, '{"input": "rm -rf ./bui')])
    done = turn.fail(UpstreamFailed("gone"), 2)
    events += done.events
    assert not any(event["type"] == "response.output_item.done" for event in events)
    assert done.response["output"][0]["status"] == "incomplete"
    assert [event["type"] for event in done.events] == ["response.failed"]
