from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from isthmus.bridge.dialects.codex.wire import (
    MODEL_ONLY_CONFIG,
    ThreadSpec,
    TurnSpec,
    answer_server_request,
    build_initialize_params,
    build_inject_items_params,
    build_new_conversation_params,
    build_send_user_message_params,
    build_send_user_turn_params,
    build_thread_start_params,
    build_turn_start_params,
    image_input,
    plain_catalog,
    text_input,
)

TOOL = {"type": "function", "name": "lookup", "description": "d", "inputSchema": {"type": "object"}}
SPEC = ThreadSpec("m", cwd="/", model_only=False)


def test_build_new_conversation_params_includes_dynamic_tools_when_provided() -> None:
    born = {"model": "m", "cwd": "/", "approvalPolicy": "never", "sandbox": "read-only"}
    assert build_new_conversation_params(SPEC) == born
    assert build_new_conversation_params(replace(SPEC, tools=(TOOL,))) == {**born, "dynamicTools": [TOOL]}


def test_build_send_user_message_params_does_not_include_tools() -> None:
    params = build_send_user_message_params("c1", [text_input("hi")])
    assert params == {"conversationId": "c1", "items": [{"type": "text", "data": {"text": "hi"}}]}


def test_build_send_user_turn_params_does_not_include_tools() -> None:
    turn = TurnSpec((image_input("data:x"),), effort="low")
    assert build_send_user_turn_params("c1", replace(SPEC, tools=(TOOL,)), turn) == {
        "conversationId": "c1",
        "items": [{"type": "image", "data": {"image_url": "data:x"}}],
        "cwd": "/",
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "read-only"},
        "model": "m",
        "summary": "auto",
        "effort": "low",
    }


def test_tools_travel_at_thread_start_and_never_later() -> None:
    start = build_thread_start_params(replace(SPEC, tools=({"name": "t", "inputSchema": {}},)))
    assert start["dynamicTools"] == [
        {"type": "function", "name": "t", "description": "", "inputSchema": {"type": "object", "properties": {}}}
    ]
    assert (start["ephemeral"], start["experimentalRawEvents"]) == (True, True)
    turn = TurnSpec((text_input("hi"),), effort="low", summary="auto", output_schema={"a": 1})
    assert build_turn_start_params("t1", turn) == {
        "threadId": "t1",
        "input": [{"type": "text", "text": "hi"}],
        "effort": "low",
        "summary": "auto",
        "outputSchema": {"a": 1},
    }


def test_an_empty_turn_samples_the_history() -> None:
    assert build_turn_start_params("t1", TurnSpec()) == {"threadId": "t1", "input": []}


@pytest.mark.parametrize("build", [build_thread_start_params, build_new_conversation_params])
def test_a_thread_is_model_only_unless_asked_otherwise(build: Any) -> None:
    assert build(ThreadSpec("m"))["config"] == MODEL_ONLY_CONFIG
    assert "config" not in build(SPEC)
    changed = build(ThreadSpec("m", config={"features": {"goals": True}}))["config"]
    assert changed["features"] == {**MODEL_ONLY_CONFIG["features"], "goals": True}


def test_the_handshake_always_asks_for_the_experimental_api() -> None:
    assert build_initialize_params()["capabilities"] == {"experimentalApi": True}


@pytest.mark.parametrize(("role", "sent"), [("system", "developer"), ("developer", "developer"), ("user", "user")])
def test_injected_system_messages_are_sent_as_developer(role: str, sent: str) -> None:
    item = {"type": "message", "role": role, "content": []}
    assert build_inject_items_params("t1", [item])["items"][0]["role"] == sent
    assert item["role"] == role


@pytest.mark.parametrize(
    ("method", "policy", "result"),
    [
        ("item/commandExecution/requestApproval", "decline", {"decision": "decline"}),
        ("item/commandExecution/requestApproval", "accept", {"decision": "accept"}),
        ("item/fileChange/requestApproval", "decline", {"decision": "decline"}),
        ("item/fileChange/requestApproval", "accept", {"decision": "accept"}),
        ("item/permissions/requestApproval", "decline", {"permissions": {}}),
        ("item/permissions/requestApproval", "accept", {"permissions": {"network": {"enabled": True}}}),
        ("item/tool/requestUserInput", "accept", {"answers": {}}),
        ("mcpServer/elicitation/request", "accept", {"action": "decline", "content": None}),
    ],
)
def test_questions_are_answered_by_policy(
    method: str, policy: Literal["accept", "decline"], result: dict[str, Any]
) -> None:
    params = {"permissions": {"network": {"enabled": True}}}
    assert answer_server_request(method, params, policy) == result


@pytest.mark.parametrize("method", ["attestation/generate", "item/tool/call", "made/up"])
def test_unknown_questions_are_left_to_be_refused(method: str) -> None:
    assert answer_server_request(method, {}) is None


def test_a_plain_catalog_keeps_facts_and_drops_codexs_own_tools() -> None:
    model = {"slug": "m", "tool_mode": "code_mode_only", "use_responses_lite": True, "context_window": 9}
    plain = plain_catalog({"models": [model], "version": 1})
    assert plain["version"] == 1
    assert plain["models"][0]["slug"] == "m"
    assert plain["models"][0]["context_window"] == 9
    assert plain["models"][0]["tool_mode"] is None
    assert plain["models"][0]["use_responses_lite"] is False
    assert plain["models"][0]["experimental_supported_tools"] == []
    assert model["tool_mode"] == "code_mode_only"
