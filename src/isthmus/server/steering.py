"""More words for a response that is being made (`response.steer`): taken, kept, and said in the one that follows it.

The response ends with the item that it is at, as `incomplete` with the reason `steered`, or by itself; its successor in
the same lane has the same settings and goes on from there with the words. A response that ends with calls for the
client waits for their outputs: the words go before them, in the request that the client makes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

import msgspec

from isthmus.bridge.limits import RequestLimits
from isthmus.bridge.parse import Request, conversation_of, parse_request
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.protocol.json import JsonObject

MAX_STEERS: Final = 16
"""Words that wait for one response."""
_STUBS: Final = {
    "function_call": ("function_call_output", "name"),
    "custom_tool_call": ("custom_tool_call_output",),
    "shell_call": ("shell_call_output",),
    "apply_patch_call": ("apply_patch_call_output",),
    "computer_call": ("computer_call_output",),
}
"""Calls that the client answers: the type of the output, and what else of the call its stub has."""


class Steer(msgspec.Struct, frozen=True):
    target: str = ""
    """The response that is meant."""
    input: Any = None
    """As it came: it is given back where nothing becomes of it."""
    items: tuple[JsonObject, ...] = ()
    failure: IsthmusError | None = None
    id: str = ""
    size: int = 0
    """Bytes of its frame."""

    @property
    def shown(self) -> JsonObject:
        return {"id": self.id, "previous_response_id": self.target}


def read_steer(frame: JsonObject, limits: RequestLimits, size: int = 0) -> Steer:
    target, given = frame.get("previous_response_id"), frame.get("input")
    target = target if isinstance(target, str) else ""
    try:
        items = parse_request({"input": given}, limits).items
        words = [item for item in items if item["type"] == "message" and item.get("role") == "user"]
        if not items or len(words) < len(items):
            raise RequestRefused("`input` must be a text, or messages of the user", param="input")
    except IsthmusError as error:
        return Steer(target, given, failure=steer_error("invalid_input", error.message))
    return Steer(target, given, items, size=size)


def steer_error(code: str, words: str) -> RequestRefused:
    return RequestRefused(words, code=code, param="previous_response_id")


def already_over(id: str) -> RequestRefused:
    return steer_error("response_already_completed", f"`{id}` has ended; continue it with `response.create`")


def steer_failed(steer: Steer, error: IsthmusError) -> JsonObject:
    """What an event says of words of which nothing becomes: they are given back."""
    told = {"type": "invalid_request_error", "code": error.code, "message": error.message}
    back = {"previous_response_id": steer.target, "input": steer.input}
    return {"error": told, "steer": {**back, **({"id": steer.id} if steer.id else {})}}


def required_input(run: Run) -> list[JsonObject]:
    """Stubs of what the client has to answer before anything goes on."""
    stubs: list[JsonObject] = []
    for item in run.response["output"] if run.response is not None else ():
        call: Any = item
        if (stub := _STUBS.get(call["type"])) is not None:
            kind, *more = stub
            stubs.append({"type": kind, "call_id": call["call_id"], **{name: call[name] for name in more}})
        elif call["type"] == "tool_search_call" and call.get("execution") == "client":
            stubs.append({"type": "tool_search_output", "call_id": call["call_id"], "execution": "client"})
        elif call["type"] == "mcp_approval_request":
            stubs.append({"type": "mcp_approval_response", "approval_request_id": call["id"]})
    return stubs


class Steering:
    """The words that wait in one lane, and for what."""

    __slots__ = ("_waiting", "last", "request", "run", "told", "waits_for")

    def __init__(self) -> None:
        self.run: Run | None = None
        """What runs there, or waits for the client; not kept beyond that, for it holds its whole conversation."""
        self.request: Request | None = None
        self.last = ""
        """The response that ended last."""
        self.told = 0
        """How many events it told."""
        self.waits_for = ""
        """The response whose calls the client has to answer first."""
        self._waiting: list[tuple[Steer, ExitStack]] = []
        """Each with the room that it takes."""

    def begin(self, run: Run, request: Request) -> None:
        self.end()
        self.run, self.request = run, request

    def parent_of(self, request: Request | None) -> str:
        """The response that a request goes on from, as far as this lane can tell."""
        if request is None:
            return ""
        within = conversation_of(request.body)
        if within is not None and self.run is not None and self.request is not None:
            return self.run.id if conversation_of(self.request.body) == within else ""
        return request.body.get("previous_response_id") or ""

    def end(self) -> None:
        """Nothing waits for what ran."""
        if self.run is not None and self.run.told:
            self.last, self.told = self.run.id, self.run.told
        self.run = self.request = None

    def check(self, steer: Steer) -> None:
        """Whether the words can be taken now."""
        run = self.run
        assert run is not None
        if not run.plan.steers or run.plan.compaction is not None:
            raise steer_error("steering_not_supported", "this response cannot be steered; say it in the next one")
        if run.finished and self.waits_for != run.id:
            raise already_over(run.id)
        if len(self._waiting) >= MAX_STEERS:
            raise steer_error("too_many_pending_steers", f"{MAX_STEERS} wait already; wait until they are taken up")

    def take(self, steer: Steer, room: AbstractContextManager[None]) -> Steer:
        """Keep it; refused where there is no room for it."""
        taken, held = msgspec.structs.replace(steer, id=f"steer_{secrets.token_hex(16)}"), ExitStack()
        held.enter_context(room)
        self._waiting.append((taken, held))
        return taken

    def words(self, target: str) -> list[Steer]:
        """Those that wait for this response."""
        return [steer for steer, _ in self._waiting if steer.target == target]

    def give(self, target: str | None) -> None:
        """They wait no more; `None`: none does, for any response."""
        for steer, room in self._waiting:
            if target in (None, steer.target):
                room.close()
        self._waiting = [each for each in self._waiting if target is not None and each[0].target != target]
        if self.waits_for == target:
            self.waits_for = ""


def with_words(request: Request, words: Sequence[Steer]) -> Request:
    """The same request, with these before whatever else it says."""
    said = tuple(item for steer in words for item in steer.items)
    return msgspec.structs.replace(request, items=(*said, *request.items))


def successor(request: Request, parent: str, words: Sequence[Steer]) -> Request:
    """The same settings, going on from the response that they made: by its id, or in the conversation that it is in."""
    body: Any = {**request.body, "input": []}
    if conversation_of(request.body) is None:
        body["previous_response_id"] = parent
    return with_words(msgspec.structs.replace(request, body=body, items=()), words)
