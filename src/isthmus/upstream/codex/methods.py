"""The two families of methods that app-servers know, behind one set of verbs.

Newer binaries speak of threads, older ones of conversations. The newer words are tried first; a binary that
answers "unknown variant" gets the older ones from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from isthmus.bridge.dialects.codex import wire
from isthmus.bridge.dialects.codex.dynamic_tools import build_older_tool_reply, build_tool_reply
from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.failures import RpcRefused


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
        result = await process.request("thread/start", wire.build_thread_start_params(spec))
        return _identity((result.get("thread") or {}).get("id"), "thread/start")

    async def inject(self, process: Caller, thread_id: str, items: Sequence[JsonObject]) -> None:
        await process.request("thread/inject_items", wire.build_inject_items_params(thread_id, items))

    async def start_turn(self, process: Caller, thread_id: str, spec: ThreadSpec, turn: TurnSpec) -> str:
        result = await process.request("turn/start", wire.build_turn_start_params(thread_id, turn))
        return _identity((result.get("turn") or {}).get("id"), "turn/start")

    async def interrupt(self, process: Caller, thread_id: str, turn_id: str) -> None:
        await process.request("turn/interrupt", {"threadId": thread_id, "turnId": turn_id}, within=5)

    async def close(self, process: Caller, thread_id: str) -> None:
        await process.request("thread/unsubscribe", {"threadId": thread_id}, within=5)

    def tool_reply(self, output: ToolOutput) -> JsonObject:
        return build_tool_reply(output.output, success=output.success)


class ConversationMethods:
    older = True
    tool_call = "dynamic_tool_call_request"

    def __init__(self) -> None:
        self._subscription = ""

    async def start(self, process: Caller, spec: ThreadSpec) -> str:
        result = await process.request("newConversation", wire.build_new_conversation_params(spec))
        thread_id = _identity(result.get("conversationId"), "newConversation")
        listen = {"conversationId": thread_id, "experimentalRawEvents": True}
        heard = await process.request("addConversationListener", listen)
        self._subscription = str(heard.get("subscriptionId") or "")
        return thread_id

    async def inject(self, process: Caller, thread_id: str, items: Sequence[JsonObject]) -> None:
        raise UpstreamFailed("this codex binary is too old to take over a history; upgrade it", status=501)

    async def start_turn(self, process: Caller, thread_id: str, spec: ThreadSpec, turn: TurnSpec) -> str:
        if turn == TurnSpec(turn.items):  # nothing of its own: the conversation knows the rest from its birth
            await process.request("sendUserMessage", wire.build_send_user_message_params(thread_id, turn.items))
            return ""
        await process.request("sendUserTurn", wire.build_send_user_turn_params(thread_id, spec, turn))
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
