"""The two families of methods that app-servers know, behind one set of verbs.

Newer binaries speak of threads, older ones of conversations. The newer words are tried first; a binary that
answers "unknown variant" gets the older ones from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from isthmus.bridge.dialects.codex import wire
from isthmus.bridge.dialects.codex.dynamic_tools import DynamicTools, build_older_tool_reply, build_tool_reply
from isthmus.bridge.merge import deep_merge
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.failures import RpcRefused


@dataclass(frozen=True, slots=True)
class ThreadSpec:
    """What a thread is born with. Tools cannot be added later."""

    model: str
    tools: DynamicTools = field(default_factory=DynamicTools)
    base_instructions: str | None = None
    developer_instructions: str | None = None
    model_provider: str | None = None
    model_only: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    cwd: str | None = None
    approval_policy: wire.Approval = "never"
    """When Codex may ask before it acts with tools of its own; the process's policy answers."""
    sandbox: wire.Sandbox = "read-only"


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """What one turn adds; no items: sample on the history as it stands."""

    items: tuple[JsonObject, ...] = ()
    effort: str | None = None
    summary: str | None = None
    output_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    output: str | Sequence[Mapping[str, Any]]
    success: bool = True


class Caller(Protocol):
    """What the verbs need of a process."""

    older_methods: bool

    async def request(self, method: str, params: JsonObject, *, within: float | None = None) -> JsonObject: ...


class Methods(Protocol):
    older: bool
    tool_call: str
    """The word under which the decoder knows a tool call of this family."""

    async def start(self, process: Caller, spec: ThreadSpec) -> str: ...
    async def inject(self, process: Caller, thread_id: str, items: Sequence[JsonObject]) -> None: ...
    async def start_turn(self, process: Caller, thread_id: str, spec: ThreadSpec, turn: TurnSpec) -> str: ...
    async def interrupt(self, process: Caller, thread_id: str, turn_id: str) -> None: ...
    async def close(self, process: Caller, thread_id: str) -> None: ...
    def tool_reply(self, output: ToolOutput) -> JsonObject: ...


async def open_thread(process: Caller, spec: ThreadSpec) -> tuple[Methods, str]:
    """A new thread, in whichever family this binary knows."""
    if not process.older_methods:
        newer = ThreadMethods()
        try:
            return newer, await newer.start(process, spec)
        except RpcRefused as refusal:
            if not refusal.unknown_method:
                raise
        process.older_methods = True
    older = ConversationMethods()
    return older, await older.start(process, spec)


class ThreadMethods:
    older = False
    tool_call = "item/tool/call"

    async def start(self, process: Caller, spec: ThreadSpec) -> str:
        params = wire.build_thread_start_params(
            model=spec.model,
            model_provider=spec.model_provider,
            base_instructions=spec.base_instructions,
            developer_instructions=spec.developer_instructions,
            dynamic_tools=spec.tools.tools,
            config=spec.config,
            model_only=spec.model_only,
            cwd=spec.cwd,
            approval_policy=spec.approval_policy,
            sandbox=spec.sandbox,
        )
        result = await process.request("thread/start", params)
        return _identity((result.get("thread") or {}).get("id"), "thread/start")

    async def inject(self, process: Caller, thread_id: str, items: Sequence[JsonObject]) -> None:
        await process.request("thread/inject_items", wire.build_inject_items_params(thread_id, items))

    async def start_turn(self, process: Caller, thread_id: str, spec: ThreadSpec, turn: TurnSpec) -> str:
        params = wire.build_turn_start_params(
            thread_id, turn.items, effort=turn.effort, summary=turn.summary, output_schema=turn.output_schema
        )
        result = await process.request("turn/start", params)
        return _identity((result.get("turn") or {}).get("id"), "turn/start")

    async def interrupt(self, process: Caller, thread_id: str, turn_id: str) -> None:
        await process.request("turn/interrupt", wire.build_turn_interrupt_params(thread_id, turn_id), within=5)

    async def close(self, process: Caller, thread_id: str) -> None:
        await process.request("thread/unsubscribe", wire.build_unsubscribe_params(thread_id), within=5)

    def tool_reply(self, output: ToolOutput) -> JsonObject:
        return build_tool_reply(output.output, success=output.success)


class ConversationMethods:
    older = True
    tool_call = "dynamic_tool_call_request"

    def __init__(self) -> None:
        self._subscription = ""

    async def start(self, process: Caller, spec: ThreadSpec) -> str:
        config = deep_merge(wire.MODEL_ONLY_CONFIG, spec.config) if spec.model_only else dict(spec.config)
        params = wire.build_new_conversation_params(
            model=spec.model,
            model_provider=spec.model_provider,
            cwd=spec.cwd,
            approval_policy=spec.approval_policy,
            sandbox=spec.sandbox,
            config=config,
            base_instructions=spec.base_instructions,
            developer_instructions=spec.developer_instructions,
            dynamic_tools=[wire.complete_tool(tool) for tool in spec.tools.tools] or None,
        )
        result = await process.request("newConversation", params)
        thread_id = _identity(result.get("conversationId"), "newConversation")
        listen = {"conversationId": thread_id, "experimentalRawEvents": True}
        heard = await process.request("addConversationListener", listen)
        self._subscription = str(heard.get("subscriptionId") or "")
        return thread_id

    async def inject(self, process: Caller, thread_id: str, items: Sequence[JsonObject]) -> None:
        raise UpstreamFailed("this codex binary is too old to take over a history; upgrade it", status=501)

    async def start_turn(self, process: Caller, thread_id: str, spec: ThreadSpec, turn: TurnSpec) -> str:
        params = wire.build_send_user_turn_params(
            thread_id,
            turn.items,
            cwd=spec.cwd or "/",
            model=spec.model,
            approval_policy=spec.approval_policy,
            sandbox_policy={"type": spec.sandbox},
            effort=turn.effort,
            summary=turn.summary or "auto",
            output_schema=turn.output_schema,
        )
        await process.request("sendUserTurn", params)
        return ""

    async def interrupt(self, process: Caller, thread_id: str, turn_id: str) -> None:
        await process.request("interruptConversation", {"conversationId": thread_id}, within=5)

    async def close(self, process: Caller, thread_id: str) -> None:
        await process.request("removeConversationListener", {"subscriptionId": self._subscription}, within=5)

    def tool_reply(self, output: ToolOutput) -> JsonObject:
        return build_older_tool_reply(output.output, success=output.success)


def _identity(value: Any, method: str) -> str:
    if not isinstance(value, str) or not value:
        raise UpstreamFailed(f"codex answered `{method}` without an id")
    return value
