"""One Codex thread, from the asking for it to the farewell: a state machine, and `_move` is where it moves.

    opening ──▶ busy ◀──▶ idle    its turn is over, and nobody has it
       │         ├─◀────▶ held    its turn waits for the outputs of its calls, and nobody has it
       ▼         ▼
    closing ──▶ closed            from every other state; at once, when the process is gone

A thread that is busy belongs to one request: it is given what it has to know (`inject`), then a leg begins, of a new
turn (`run`) or of the one that was held (`answer`), and is read to its end. How it ended says where the thread `rests`;
otherwise it is closed, because an interrupted thread carries a note about it that no client wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.codex.decode import LegDecoder
from isthmus.bridge.dialects.codex.dynamic_tools import build_tool_reply
from isthmus.bridge.dialects.codex.wire import (
    ThreadSpec,
    TurnSpec,
    build_inject_items_params,
    build_thread_start_params,
    build_turn_start_params,
)
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.failures import CodexGone
from isthmus.upstream.codex.rpc import Request, RequestId
from isthmus.upstream.codex.turns import TurnMessage, TurnQueue

State = Literal["opening", "busy", "idle", "held", "closing", "closed"]
Output = str | Sequence[Mapping[str, Any]]

_NEXT: Final[Mapping[State, frozenset[State]]] = {
    "opening": frozenset({"busy", "closing"}),
    "busy": frozenset({"idle", "held", "closing", "closed"}),
    "idle": frozenset({"busy", "closing", "closed"}),
    "held": frozenset({"busy", "closing", "closed"}),
    "closing": frozenset({"closed"}),
    "closed": frozenset(),
}
_PARTING: Final = 5.0
"""Seconds that each word of a farewell may take."""


class Program(Protocol):
    """What a thread needs of its process."""

    async def request(self, method: str, params: JsonObject, *, within: float | None = None) -> JsonObject: ...
    def reply(self, identity: RequestId, result: JsonObject) -> None: ...
    def reject(self, identity: RequestId, message: str) -> None: ...


class CodexThread:
    def __init__(
        self, program: Program, spec: ThreadSpec, moved: Callable[[CodexThread], None], *, queue_size: int = 32_768
    ) -> None:
        """Asks for the thread at once; `moved` hears of every change of state."""
        self.id = ""
        self.state: State = "opening"
        self.since = asyncio.get_running_loop().time()
        """When it came into this state."""
        self.parting: asyncio.Task[None] | None = None
        """The farewell, while the state is closing."""
        self._program = program
        self._names = spec.tool_names
        self._moved = moved
        self._queue_size = queue_size
        self._naming = asyncio.create_task(self._name("thread", build_thread_start_params(spec)))
        self._turn: asyncio.Task[str] | None = None
        self._messages = TurnQueue(queue_size)
        self._decoder = LegDecoder(self._names)
        self._asked: dict[str, RequestId] = {}
        """Calls that Codex has asked us for, and waits."""
        self._answers: dict[str, JsonObject] = {}
        """Answers to calls that it has not asked for yet: some binaries ask one by one."""

    # A request's own: opening → busy → what happens there

    async def open(self) -> None:
        """Shielded: whoever leaves now leaves a thread behind that has to be named before it can be closed."""
        self.id = await asyncio.shield(self._naming)
        self._move("busy")

    async def inject(self, items: Sequence[JsonObject]) -> None:
        """Append Responses items to what the model sees, without sampling."""
        if items:
            await self._program.request("thread/inject_items", build_inject_items_params(self.id, items))

    async def run(self, turn: TurnSpec) -> None:
        """Begin a turn, and its first leg."""
        self._messages, self._decoder = TurnQueue(self._queue_size), LegDecoder(self._names)
        self._turn = asyncio.create_task(self._name("turn", build_turn_start_params(self.id, turn)))
        self._turn.add_done_callback(_look)
        await asyncio.shield(self._turn)  # whoever leaves now still needs the turn's id to stop it

    async def answer(self, outputs: Mapping[str, Output]) -> None:
        """Go on with the turn that was held, and begin its next leg; every pending call has its output."""
        pending, self._decoder = self.pending, LegDecoder(self._names)
        for call_id in pending:
            reply = build_tool_reply(outputs[call_id])
            if call_id in self._asked:
                self._program.reply(self._asked.pop(call_id), reply)
            else:
                self._answers[call_id] = reply

    async def read(self) -> Sequence[Delta]:
        """What the leg says next; nothing, when it is over."""
        while self._decoder.state == "open":
            if deltas := self._decode(await self._messages.get()):
                return deltas
        return ()

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of the calls that the turn waits for, in call order."""
        return tuple(self._decoder.calls) if self._decoder.state == "paused" else ()

    @property
    def rests(self) -> Literal["idle", "held"] | None:
        """Where the thread waits for the next request after the leg that was read; nowhere, if it did not end well."""
        match self._decoder.state:
            case "paused":
                return "held"
            case "ended":
                return "idle"
        return None

    # The registry's

    def take(self) -> None:
        """A request has it from now on."""
        self._move("busy")

    def rest(self) -> None:
        """The request is over, and another one may go on here."""
        rests = self.rests
        assert rests is not None, "only a leg that ended well leaves a thread to go on with"
        self._move(rests)
        if rests == "idle":
            self._end_turn()

    def hear(self, message: TurnMessage) -> bool:
        """A message of the turn that is alive; nobody waits for any other."""
        if self._turn is None or self.state not in ("busy", "held"):
            return False
        self._messages.put(message)
        return True

    def lose(self, gone: CodexGone) -> None:
        """The process has ended: there is nobody to take leave of."""
        self._messages.fail(gone)
        if self.state != "closing":
            self._move("closed")

    def close(self) -> None:
        """Let go of the thread, from whatever state: a turn that is alive is interrupted first."""
        if self.state not in ("closing", "closed"):
            self._move("closing")
            self.parting = asyncio.create_task(self._part())

    # Its own

    def _move(self, to: State) -> None:
        """The one place where the state changes; a move that is not in the table is a bug of ours."""
        if self.state in ("closing", "closed") and to != "closed":
            raise CodexGone("this codex thread is gone; its history can be given to a new one")
        assert to in _NEXT[self.state], f"a codex thread cannot go from {self.state} to {to}"
        self.state, self.since = to, asyncio.get_running_loop().time()
        self._moved(self)

    def _decode(self, message: TurnMessage) -> list[Delta]:
        params = message.params
        turn_id = params.get("turnId") or (params.get("turn") or {}).get("id")
        ours = turn_id is None or (self._turn is not None and turn_id == self._turn.result())
        if not isinstance(message, Request):
            return self._decoder.feed(message.method, params) if ours else []
        call_id = str(params.get("callId") or "")
        if not ours:
            self._program.reject(message.id, "this turn is over")
        elif call_id in self._answers:
            self._program.reply(message.id, self._answers.pop(call_id))
        else:
            self._asked[call_id] = message.id
            return self._decoder.feed(message.method, params)
        return []

    def _end_turn(self) -> None:
        self._turn, self._asked, self._answers = None, {}, {}

    async def _part(self) -> None:
        alive = self._turn if self._decoder.state in ("open", "paused", "abandoned") else None
        with contextlib.suppress(UpstreamFailed, TimeoutError):
            self.id = await self._naming
            if alive is not None:
                with contextlib.suppress(UpstreamFailed, TimeoutError):
                    async with asyncio.timeout(_PARTING):
                        turn_id = await asyncio.shield(alive)
                    stop = {"threadId": self.id, "turnId": turn_id}
                    await self._program.request("turn/interrupt", stop, within=_PARTING)
            await self._program.request("thread/unsubscribe", {"threadId": self.id}, within=_PARTING)
        self._end_turn()
        self._move("closed")

    async def _name(self, kind: Literal["thread", "turn"], params: JsonObject) -> str:
        """Begin one, and learn its id."""
        told = (await self._program.request(f"{kind}/start", params)).get(kind)
        if not isinstance(told, dict) or not isinstance(told.get("id"), str):
            raise UpstreamFailed(f"codex answered `{kind}/start` without an id")
        return str(told["id"])


def _look(done: asyncio.Task[str]) -> None:
    """Whoever left does not hear how it went, and that is no mistake."""
    if not done.cancelled():
        done.exception()
