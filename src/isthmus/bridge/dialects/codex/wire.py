"""Parameters of every method we call on a Codex app-server, newer and older, and its config as data.

In: plain values. Out: JSON objects as the binary reads them (checked against 0.163 and 0.166). The one
thing worth knowing: tools travel only when a thread (or older: a conversation) begins; nothing later
carries any, and there is no temperature, no token limit and no tool choice to send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from isthmus.bridge.merge import deep_merge
from isthmus.protocol.json import JsonObject

Approval = Literal["untrusted", "on-request", "never"]
Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]

# For the whole process. Without the first three the binary dials its maker's hosts on its own account; without
# the last it keeps a thread that nobody listens to for half an hour.
PROCESS_CONFIG: Final[JsonObject] = {
    "analytics": {"enabled": False},
    "feedback": {"enabled": False},
    "features": {"plugins": False, "apps": False, "remote_plugin": False, "plugin_sharing": False},
    "thread_unload_delay_secs": 1,
}

# A thread that is only a model: the tools seen upstream are exactly the client's tools.
MODEL_ONLY_CONFIG: Final[JsonObject] = {
    "web_search": "disabled",
    "include_environment_context": False,
    "include_permissions_instructions": False,
    "include_apps_instructions": False,
    "include_collaboration_mode_instructions": False,
    "project_doc_max_bytes": 0,
    "skills": {"include_instructions": False},
    "tools": {"experimental_request_user_input": {"enabled": False}},
    "features": dict.fromkeys(
        (
            "shell_tool",
            "unified_exec",
            "view_image",
            "goals",
            "multi_agent",
            "multi_agent_v2",
            "apps",
            "plugins",
            "tool_suggest",
            "skill_search",
            "image_generation",
            "sleep_tool",
            "hooks",
            "memories",
        ),
        False,
    ),
}

_EMPTY_SCHEMA: Final[JsonObject] = {"type": "object", "properties": {}}


def build_initialize_params(*, name: str = "isthmus", version: str = "0", title: str | None = None) -> JsonObject:
    """`experimentalApi` is not optional for us: without it every thread with tools is refused."""
    client: JsonObject = {"name": name, "version": version}
    if title is not None:
        client["title"] = title
    return {"clientInfo": client, "capabilities": {"experimentalApi": True}}


def build_thread_start_params(
    *,
    model: str | None = None,
    model_provider: str | None = None,
    base_instructions: str | None = None,
    developer_instructions: str | None = None,
    dynamic_tools: Sequence[Mapping[str, Any]] = (),
    config: Mapping[str, Any] | None = None,
    model_only: bool = True,
    cwd: str | None = None,
    approval_policy: Approval = "never",
    sandbox: Sandbox = "read-only",
    ephemeral: bool = True,
) -> JsonObject:
    """`thread/start`: the only newer method that carries tools. Raw events give verbatim arguments and usage."""
    merged = deep_merge(MODEL_ONLY_CONFIG, config or {}) if model_only else dict(config or {})
    params: JsonObject = _given(
        model=model,
        modelProvider=model_provider,
        cwd=cwd,
        baseInstructions=base_instructions,
        developerInstructions=developer_instructions,
    )
    params |= {"approvalPolicy": approval_policy, "sandbox": sandbox, "ephemeral": ephemeral}
    params["experimentalRawEvents"] = True
    if merged:
        params["config"] = merged
    if dynamic_tools:
        params["dynamicTools"] = [complete_tool(tool) for tool in dynamic_tools]
    return params


def build_turn_start_params(
    thread_id: str,
    items: Sequence[Mapping[str, Any]] = (),
    *,
    model: str | None = None,
    effort: str | None = None,
    summary: str | None = None,
    output_schema: Mapping[str, Any] | None = None,
) -> JsonObject:
    """`turn/start`. No items is valid: the model is sampled on the history as it stands."""
    params: JsonObject = {"threadId": thread_id, "input": [dict(item) for item in items]}
    return params | _given(model=model, effort=effort, summary=summary, outputSchema=output_schema)


def build_inject_items_params(thread_id: str, items: Sequence[Mapping[str, Any]]) -> JsonObject:
    """`thread/inject_items`. Codex drops `system` messages without a word, so they go as `developer`."""
    return {"threadId": thread_id, "items": [_visible(item) for item in items]}


def build_turn_interrupt_params(thread_id: str, turn_id: str) -> JsonObject:
    return {"threadId": thread_id, "turnId": turn_id}


def build_unsubscribe_params(thread_id: str) -> JsonObject:
    return {"threadId": thread_id}


def text_input(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def image_input(url: str) -> JsonObject:
    """Codex takes images as data URLs only."""
    return {"type": "image", "url": url}


def build_new_conversation_params(
    *,
    model: str | None = None,
    model_provider: str | None = None,
    cwd: str | None = None,
    approval_policy: str | None = None,
    sandbox: str | None = None,
    config: Mapping[str, Any] | None = None,
    base_instructions: str | None = None,
    developer_instructions: str | None = None,
    dynamic_tools: Sequence[Mapping[str, Any]] | None = None,
) -> JsonObject:
    """`newConversation`: the only older method that carries tools."""
    params = _given(
        model=model,
        modelProvider=model_provider,
        cwd=cwd,
        approvalPolicy=approval_policy,
        sandbox=sandbox,
        config=config,
        baseInstructions=base_instructions,
        developerInstructions=developer_instructions,
    )
    if dynamic_tools is not None:
        params["dynamicTools"] = [dict(tool) for tool in dynamic_tools]
    return params


def build_send_user_turn_params(
    conversation_id: str,
    items: Sequence[Mapping[str, Any]],
    *,
    cwd: str,
    model: str,
    approval_policy: str = "never",
    sandbox_policy: Mapping[str, Any] | None = None,
    effort: str | None = None,
    summary: str = "auto",
    output_schema: Mapping[str, Any] | None = None,
) -> JsonObject:
    """`sendUserTurn`: everything about a turn except tools."""
    params: JsonObject = {
        "conversationId": conversation_id,
        "items": [_older_item(item) for item in items],
        "cwd": cwd,
        "approvalPolicy": approval_policy,
        "sandboxPolicy": dict(sandbox_policy or {"type": "read-only"}),
        "model": model,
        "summary": summary,
    }
    return params | _given(effort=effort, outputSchema=output_schema)


def build_send_user_message_params(conversation_id: str, items: Sequence[Mapping[str, Any]]) -> JsonObject:
    """`sendUserMessage`: items and nothing else."""
    return {"conversationId": conversation_id, "items": [_older_item(item) for item in items]}


def complete_tool(tool: Mapping[str, Any]) -> JsonObject:
    """The binary refuses a tool without `description` or with a schema that is no object."""
    schema = tool.get("inputSchema")
    return {
        "type": "function",
        "name": tool["name"],
        "description": tool.get("description") or "",
        "inputSchema": schema if isinstance(schema, Mapping) and schema else _EMPTY_SCHEMA,
    }


def _given(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _visible(item: Mapping[str, Any]) -> JsonObject:
    if item.get("role") == "system":
        return {**item, "role": "developer"}
    return dict(item)


def _older_item(item: Mapping[str, Any]) -> JsonObject:
    match item.get("type"):
        case "text":
            return {"type": "text", "data": {"text": item.get("text", "")}}
        case "image":
            return {"type": "image", "data": {"image_url": item.get("url", "")}}
        case _:
            return dict(item)
