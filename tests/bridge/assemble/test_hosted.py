"""Tools that the provider ran itself: its status, its id and its progress reach the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Failed, Finished, HostedCall, HostedOpened, HostedProgress, Text
from isthmus.bridge.dialects.responses.decode import ResponsesDecoder
from isthmus.testing.fold import stream
from wire.oracle import check_stream

Json = dict[str, Any]
SEARCH = {"type": "web_search_call", "id": "ws_up", "action": {"type": "search", "query": "q"}}
APPROVAL = {
    "type": "mcp_approval_request",
    "id": "mcpr_up",
    "server_label": "s",
    "name": "drop_table",
    "arguments": "{}",
}


def run(*deltas: Any) -> tuple[list[str], Json]:
    events, response = stream(deltas)
    check_stream(events)
    return [event["type"].removeprefix("response.") for event in events], response


@pytest.mark.parametrize("status", ["completed", "failed", "incomplete"])
def test_a_hosted_item_keeps_its_status(status: str) -> None:
    kinds, response = run(
        HostedCall({**SEARCH, "status": status}), Text("a"), Finished("stop" if status != "incomplete" else "length")
    )
    assert response["output"][0]["status"] == status
    assert ("web_search_call.completed" in kinds) is (status == "completed")


def test_an_approval_request_keeps_the_id_that_its_answer_must_name() -> None:
    _, response = run(HostedCall(APPROVAL), Finished("stop"))
    assert response["output"][0] == {**APPROVAL, "status": "completed"}


def test_an_id_that_is_taken_is_not_given_twice() -> None:
    _, response = run(HostedCall(SEARCH), HostedCall(SEARCH), HostedCall({**SEARCH, "id": None}), Finished("stop"))
    ids = [item["id"] for item in response["output"] if item["type"] == "web_search_call"]
    assert ids[0] == "ws_up"
    assert len(set(ids)) == 3


def test_progress_is_told_as_it_comes() -> None:
    kinds, response = run(
        Text("let me see"),
        HostedOpened(0, {**SEARCH, "status": "in_progress"}),
        HostedProgress(0, "response.web_search_call.searching", {}),
        HostedProgress(0, "response.web_search_call.completed", {}),
        HostedCall({**SEARCH, "status": "completed"}, 0),
        Text("so"),
        Finished("stop"),
    )
    steps = [kind for kind in kinds if kind.startswith("web_search_call")]
    assert steps == ["web_search_call.searching", "web_search_call.completed"]
    assert [item["type"] for item in response["output"]] == ["message", "web_search_call", "message"]


def test_progress_keeps_its_own_fields() -> None:
    image = {"type": "image_generation_call", "id": "ig_up", "status": "in_progress", "result": None}
    partial = {"partial_image_index": 0, "partial_image_b64": "aGk="}
    events, _ = stream(
        [
            HostedOpened(0, image),
            HostedProgress(0, "response.image_generation_call.partial_image", partial),
            HostedCall({**image, "status": "completed", "result": "aGk="}, 0),
            Finished("stop"),
        ]
    )
    check_stream(events)
    [step] = [event for event in events if "partial_image" in event["type"]]
    assert step.items() >= {"item_id": "ig_up", "output_index": 0, **partial}.items()


def test_the_end_of_a_hosted_call_does_not_end_what_is_being_said() -> None:
    _, response = run(
        *(HostedOpened(0, {**SEARCH, "status": "in_progress"}), Text("so ")),
        *(HostedCall({**SEARCH, "status": "completed"}, 0), Text("far"), Finished("stop")),
    )
    assert [item["type"] for item in response["output"]] == ["web_search_call", "message"]
    assert response["output_text"] == "so far"


def test_one_that_never_ends_has_failed() -> None:
    _, response = run(HostedOpened(0, {**SEARCH, "status": "in_progress"}), Failed("gone"))
    assert [(item["type"], item["status"]) for item in response["output"]] == [("web_search_call", "failed")]


FAILED: Json = {
    "type": "mcp_call",
    "id": "mcp_up",
    "status": "failed",
    "server_label": "s",
    "name": "n",
    "arguments": "{}",
    "output": None,
    "error": None,
}


@pytest.mark.parametrize("live", [False, True], ids=["whole", "streamed"])
def test_a_hosted_call_that_failed_upstream_is_not_completed_here(live: bool) -> None:
    final = {"status": "completed", "output": [FAILED, APPROVAL]}
    decoder = ResponsesDecoder(ReplyRules())
    if live:
        events: list[Json] = [
            {"type": "response.output_item.added", "output_index": 0, "item": {**FAILED, "status": "in_progress"}},
            {"type": "response.mcp_call.failed", "output_index": 0, "item_id": "mcp_up"},
            {"type": "response.output_item.done", "output_index": 0, "item": FAILED},
            {"type": "response.completed", "response": final},
        ]
        deltas = [delta for event in events for delta in decoder.chunk(json.dumps(event).encode())]
    else:
        deltas = decoder.reply(json.dumps(final).encode())
    kinds, response = run(*deltas)
    assert response["output"][:2] == [FAILED, {**APPROVAL, "status": "completed"}]
    assert ("mcp_call.failed" in kinds) is live
