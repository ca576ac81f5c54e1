"""What we say to a Codex app-server: parameters of the methods we call, answers to what it asks us apart from tool
calls, and its config and model catalog as data (checked against 0.163 and 0.166).

The one thing worth knowing: tools travel only when a thread begins; nothing later carries any, and there is no
temperature, no token limit and no tool choice to send. The words of 0.92 (conversations, user turns) are kept as data:
a thread is begun with the first of them, the others show that what came later carried no tools either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from isthmus.protocol.json import JsonObject, deep_merge

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
ApprovalPolicy = Literal["decline", "accept"]


@dataclass(frozen=True, slots=True)
class ThreadSpec:
    """What a thread is born with. Tools cannot be added later."""

    model: str
    tools: tuple[JsonObject, ...] = ()
    tool_names: Mapping[str, str] = field(default_factory=dict)  # Codex name → client name, for each of `tools`
    base_instructions: str | None = None
    developer_instructions: str | None = None
    model_provider: str | None = None
    model_only: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    cwd: str | None = None
    approval_policy: Literal["untrusted", "on-request", "never"] = "never"
    """When Codex may ask before it acts with tools of its own; the process's policy answers."""
    sandbox: Sandbox = "read-only"


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """What one turn adds; no items: sample on the history as it stands."""

    items: tuple[JsonObject, ...] = ()
    effort: str | None = None
    summary: str | None = None
    output_schema: JsonObject | None = None


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
            *("shell_tool", "unified_exec", "view_image", "image_generation", "goals", "sleep_tool", "hooks"),
            *("multi_agent", "multi_agent_v2", "apps", "plugins", "tool_suggest", "skill_search", "memories"),
        ),
        False,
    ),
}

# Most models of Codex's own catalog hide client tools inside one JavaScript tool, where calls have neither their own
# ids nor verbatim arguments. A model without code mode, lite requests and built-in tools calls them directly.
_PLAIN_MODEL: Final[JsonObject] = {
    "tool_mode": None,
    "use_responses_lite": False,
    "apply_patch_tool_type": None,
    "supports_search_tool": False,
    "multi_agent_version": None,
    "experimental_supported_tools": [],
    "default_verbosity": None,
}
_DECISIONS: Final = ({"decision": "decline"}, {"decision": "accept"})
_ANSWERS: Final[Mapping[str, Sequence[JsonObject]]] = {
    "item/commandExecution/requestApproval": _DECISIONS,
    "item/fileChange/requestApproval": _DECISIONS,
    "item/tool/requestUserInput": ({"answers": {}},) * 2,
    "mcpServer/elicitation/request": ({"action": "decline", "content": None},) * 2,
}
"""What we say to a request of the server where the policy is to decline, and where it is to accept."""


def plain_catalog(catalog: Mapping[str, Any]) -> JsonObject:
    """The catalog that `codex debug models` prints, to be read at start (`model_catalog_json`): every model keeps its
    facts (context, efforts, modalities); only Codex's own tools and terseness go."""
    return {**catalog, "models": [{**model, **_PLAIN_MODEL} for model in catalog.get("models") or []]}


def answer_server_request(
    method: str, params: Mapping[str, Any], policy: ApprovalPolicy = "decline"
) -> JsonObject | None:
    """Approvals follow the operator's policy; nobody sits here to answer questions or forms. `None`: to be refused, as
    a JSON-RPC error, which Codex takes as a "no"."""
    if method == "item/permissions/requestApproval":
        asked = params.get("permissions")
        return {"permissions": dict(asked) if policy == "accept" and isinstance(asked, Mapping) else {}}
    answers = _ANSWERS.get(method)
    return None if answers is None else dict(answers[policy == "accept"])


def build_initialize_params(*, version: str = "0") -> JsonObject:
    """`experimentalApi` is not optional for us: without it every thread with tools is refused."""
    return {"clientInfo": {"name": "isthmus", "version": version}, "capabilities": {"experimentalApi": True}}


def build_new_conversation_params(spec: ThreadSpec) -> JsonObject:
    """What a conversation is born with: the only place for tools, in 0.92 (`newConversation`) as in `thread/start`."""
    return _given(
        model=spec.model,
        modelProvider=spec.model_provider,
        cwd=spec.cwd,
        approvalPolicy=spec.approval_policy,
        sandbox=spec.sandbox,
        config=deep_merge(MODEL_ONLY_CONFIG if spec.model_only else {}, spec.config) or None,
        baseInstructions=spec.base_instructions,
        developerInstructions=spec.developer_instructions,
        dynamicTools=[complete_tool(tool) for tool in spec.tools] or None,
    )


def build_thread_start_params(spec: ThreadSpec) -> JsonObject:
    """`thread/start`: the same, kept by nobody. Raw events give verbatim arguments and usage."""
    return {**build_new_conversation_params(spec), "ephemeral": True, "experimentalRawEvents": True}


def build_turn_start_params(thread_id: str, turn: TurnSpec) -> JsonObject:
    """`turn/start`. No items is valid: the model is sampled on the history as it stands."""
    settings = _given(effort=turn.effort, summary=turn.summary, outputSchema=turn.output_schema)
    return {"threadId": thread_id, "input": [dict(item) for item in turn.items], **settings}


def build_send_user_message_params(conversation_id: str, items: Sequence[Mapping[str, Any]]) -> JsonObject:
    """`sendUserMessage` of 0.92: items and nothing else, for a turn as the conversation was born."""
    return {"conversationId": conversation_id, "items": [_older_item(item) for item in items]}


def build_send_user_turn_params(conversation_id: str, spec: ThreadSpec, turn: TurnSpec) -> JsonObject:
    """`sendUserTurn` of 0.92: everything about a turn except tools."""
    return {
        **build_send_user_message_params(conversation_id, turn.items),
        "cwd": spec.cwd or "/",
        "approvalPolicy": spec.approval_policy,
        "sandboxPolicy": {"type": spec.sandbox},
        "model": spec.model,
        "summary": turn.summary or "auto",
        **_given(effort=turn.effort, outputSchema=turn.output_schema),
    }


def build_inject_items_params(thread_id: str, items: Sequence[Mapping[str, Any]]) -> JsonObject:
    """`thread/inject_items`. Codex drops `system` messages without a word, so they go as `developer`."""
    told = [{**item, "role": "developer"} if item.get("role") == "system" else dict(item) for item in items]
    return {"threadId": thread_id, "items": told}


def text_input(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def image_input(url: str) -> JsonObject:
    """Codex takes images as data URLs only."""
    return {"type": "image", "url": url}


def complete_tool(tool: Mapping[str, Any]) -> JsonObject:
    """The binary refuses a tool without `description` or with a schema that is no object."""
    schema = tool.get("inputSchema")
    return {
        "type": "function",
        "name": tool["name"],
        "description": tool.get("description") or "",
        "inputSchema": schema if isinstance(schema, Mapping) and schema else {"type": "object", "properties": {}},
    }


def _given(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _older_item(item: Mapping[str, Any]) -> JsonObject:
    if item.get("type") == "image":
        return {"type": "image", "data": {"image_url": item["url"]}}
    return {"type": "text", "data": {"text": item["text"]}}
