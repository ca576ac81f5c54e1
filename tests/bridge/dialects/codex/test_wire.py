from __future__ import annotations

import pytest

from isthmus.bridge.dialects.codex.wire import (
    MODEL_ONLY_CONFIG,
    build_initialize_params,
    build_inject_items_params,
    build_new_conversation_params,
    build_send_user_message_params,
    build_send_user_turn_params,
    build_thread_start_params,
    build_turn_interrupt_params,
    build_turn_start_params,
    image_input,
    text_input,
)

TOOL = {"name": "lookup", "description": "d", "inputSchema": {"type": "object"}}


def test_build_new_conversation_params_includes_dynamic_tools_when_provided() -> None:
    params = build_new_conversation_params(model="m", dynamic_tools=[TOOL])
    assert params == {"model": "m", "dynamicTools": [TOOL]}
    assert "dynamicTools" not in build_new_conversation_params(model="m")


def test_build_send_user_message_params_does_not_include_tools() -> None:
    params = build_send_user_message_params("c1", [text_input("hi")])
    assert params == {"conversationId": "c1", "items": [{"type": "text", "data": {"text": "hi"}}]}


def test_build_send_user_turn_params_does_not_include_tools() -> None:
    params = build_send_user_turn_params("c1", [image_input("data:x")], cwd="/", model="m", effort="low")
    assert params == {
        "conversationId": "c1",
        "items": [{"type": "image", "data": {"image_url": "data:x"}}],
        "cwd": "/",
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "read-only"},
        "model": "m",
        "summary": "auto",
        "effort": "low",
    }
    assert not {"tools", "dynamicTools"} & set(params)


def test_tools_travel_at_thread_start_and_never_later() -> None:
    start = build_thread_start_params(model="m", dynamic_tools=[{"name": "t", "inputSchema": {}}])
    assert start["dynamicTools"] == [
        {"type": "function", "name": "t", "description": "", "inputSchema": {"type": "object", "properties": {}}}
    ]
    assert start["experimentalRawEvents"] is True
    turn = build_turn_start_params("t1", [text_input("hi")], effort="low", summary="auto", output_schema={"a": 1})
    assert turn == {
        "threadId": "t1",
        "input": [{"type": "text", "text": "hi"}],
        "effort": "low",
        "summary": "auto",
        "outputSchema": {"a": 1},
    }


def test_an_empty_turn_samples_the_history() -> None:
    assert build_turn_start_params("t1") == {"threadId": "t1", "input": []}


def test_a_thread_is_model_only_unless_asked_otherwise() -> None:
    assert build_thread_start_params(model="m")["config"] == MODEL_ONLY_CONFIG
    assert "config" not in build_thread_start_params(model="m", model_only=False)
    assert build_thread_start_params(config={"features": {"goals": True}})["config"]["features"] == {
        **MODEL_ONLY_CONFIG["features"],
        "goals": True,
    }


def test_the_handshake_always_asks_for_the_experimental_api() -> None:
    assert build_initialize_params()["capabilities"] == {"experimentalApi": True}


@pytest.mark.parametrize(("role", "sent"), [("system", "developer"), ("developer", "developer"), ("user", "user")])
def test_injected_system_messages_are_sent_as_developer(role: str, sent: str) -> None:
    item = {"type": "message", "role": role, "content": []}
    assert build_inject_items_params("t1", [item])["items"][0]["role"] == sent
    assert item["role"] == role


def test_interrupt_names_thread_and_turn() -> None:
    assert build_turn_interrupt_params("t1", "u1") == {"threadId": "t1", "turnId": "u1"}
