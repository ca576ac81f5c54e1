"""All calls of one reply: which tool each means (found out once, when it opens), whether it may pass, when it closes.

A call is closed when something else opens, if its arguments are whole by then: vendors interleave the fragments of
parallel calls, so one that is not whole stays open. A custom call whose tool has a grammar is examined first, and not
here: `Paused` rises, `pending` says what is to be examined, and whoever closed tries again after `take_verdict`.

A call that was cut off is never closed as complete. By a length, a filter or a failure: it is `incomplete` in the
response. By nothing that the provider admits (a regular finish, arguments that break off): a `function_call` with the
arguments as they are, unless a part of them was shown as custom input already; then it is `incomplete` as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from isthmus.bridge.assemble.call import Call
from isthmus.bridge.assemble.managed import ManagedCalls
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import CallArguments, CallOpened, Failed, HostedCall, HostedOpened, HostedProgress
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.finish import Outcome
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.tools.restore import find_identity
from isthmus.bridge.types.tools import ToolIdentity, ToolPlan
from isthmus.protocol.items import HostedStatus

_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Paused(Exception):
    """Nothing goes on before the pending examination is answered."""


class Calls(msgspec.Struct, eq=False):
    _tools: ToolPlan
    _output: Output
    _taken: set[str]
    """Call ids that the conversation uses."""
    _notices: list[CompatibilityDiagnostic]
    """Where what has to be said is put."""
    _calls: dict[int, Call | None] = {}
    _open: dict[int, Call] = {}
    _changed: dict[int, Call] = {}
    """Those that got more text since it was last asked whether they are whole."""
    _examining: Call | None = None
    _waived: bool = False
    pending: ExamineInput | None = None
    broken: bool = False
    """Whether one broke off although the provider said that it finished."""
    _plain_ids: bool = False
    _managed: ManagedCalls | None = None
    """Where calls go that run here."""

    def __bool__(self) -> bool:
        """Whether there is a call that the client sees."""
        return any(self._calls.values())

    @property
    def searches(self) -> bool:
        """Whether one looks for deferred tools, here."""
        return any(call is not None and call.searches for call in self._calls.values())

    @property
    def runs(self) -> bool:
        """Whether one runs here, or waits to be approved."""
        return any(call is not None and call.runs for call in self._calls.values())

    @property
    def only_here(self) -> bool:
        """Whether every call is answered here: then the model is asked again, not the client."""
        return bool(self) and all(call is None or _is_answered(call) for call in self._calls.values())

    def open(self, delta: CallOpened, before: Callable[[], None]) -> Failed | None:
        """Begin a call, with this done `before`, or suppress it; one that means no tool at all fails the turn."""
        identity = self._identify(delta)
        name = identity.provider_name if identity is not None else delta.name
        self._calls[delta.slot] = None
        if not name:
            return Failed("the model called a tool without naming it")
        allowed = self._tools.choice.keep
        if allowed is not None and name not in allowed:
            words = f"the model called `{name}`, which this request does not allow"
            self._notices.append(notice("bridge.tool.call_suppressed", "output", words, name=name))
            return None
        before()
        call = Call(self._call_id(delta.id, identity), name, identity, self._output)
        self._calls[delta.slot] = self._open[delta.slot] = call
        return None

    def append(self, delta: CallArguments) -> None:
        call = self._open.get(delta.slot)
        if call is not None:
            self._changed[delta.slot] = call
            call.append(delta)
        elif (closed := self._calls.get(delta.slot)) is not None and not closed.says(delta):
            words = f"arguments of the call to `{closed.name}` came after it was whole"
            where = f"output.{closed.item_id}"
            self._notices.append(notice("bridge.tool.arguments_ignored", where, words, call_id=closed.call_id))

    def call_id(self, slot: int) -> str | None:
        call = self._calls.get(slot)
        return call.call_id if call is not None else None

    def close_whole(self) -> None:
        """Something else opens: what is whole is done."""
        if not self._changed:
            return
        whole = {slot: call for slot, call in self._changed.items() if call.whole}
        self._examine(whole.values())
        self._changed = {}
        for slot, call in whole.items():
            self._close(slot, call, cut=False)

    def examine_all(self, outcome: Outcome, *, spoken_since: bool) -> None:
        """The reply is about to be over: whatever will be closed as whole is examined first."""
        self._examine([call for call in self._open.values() if not self._cut(call, outcome, spoken_since)])

    def take_verdict(self, verdict: Examined) -> None:
        if self._examining is None:
            raise RuntimeError("no examination is pending")
        self._examining.examined = verdict
        self._examining = self.pending = None

    def waive(self) -> None:
        """Nobody can be waited for any more: what was not examined yet will be passed on as it is."""
        self._examining = self.pending = None
        self._waived = True

    def _examine(self, calls: Iterable[Call]) -> None:
        for call in calls:
            job = call.examination
            if job is not None and self._waived:
                call.examined = Examined(job.text, "", "unchecked", "the response ended before that")
            elif job is not None:
                self.pending, self._examining = job, call
                raise Paused

    def close_all(self, outcome: Outcome, *, spoken_since: bool) -> None:
        self.examine_all(outcome, spoken_since=spoken_since)
        for slot, call in list(self._open.items()):
            cut = self._cut(call, outcome, spoken_since)
            if cut and (outcome.status == "failed" or call.searches or call.runs) and not call.begun:
                del self._open[slot]  # never shown, never whole: nothing a client could use
            else:
                self._close(slot, call, cut=cut)

    def _cut(self, call: Call, outcome: Outcome, spoken_since: bool) -> bool:
        if outcome.status == "completed" or call.whole:
            return False
        # A call without a word of arguments is whole unless it is the very last thing that was said.
        newest = next((call for call in reversed(self._calls.values()) if call is not None), None)
        return bool(call.text or (call is newest and not spoken_since))

    def _close(self, slot: int, call: Call, *, cut: bool) -> None:
        del self._open[slot]
        if (tool := call.runs) is not None and self._managed is not None:
            self._managed.open(call.call_id, tool, call.text)
            return
        if not cut and call.breaks_off:
            self.broken = cut = True
        self._notices.extend(call.close_cut() if cut else call.close(self._tools.deferred))

    def _identify(self, delta: CallOpened) -> ToolIdentity | None:
        if delta.name:
            return find_identity(delta.name, self._tools.identities)
        only = [declared.identity for declared in self._tools.declarations if declared.identity is not None]
        return only[0] if len(only) == 1 else None

    def _call_id(self, given: str | None, identity: ToolIdentity | None) -> str:
        """The vendor's id, unless it is missing or already used in this conversation (`call_0` each turn), or one that
        the client cannot take. A call that runs here is known by its item alone."""
        if self._managed is not None and identity is not None and identity.managed is not None:
            given = self._managed.new_id(identity)
        elif not given or given in self._taken or (self._plain_ids and _PLAIN_ID.fullmatch(given) is None):
            given = f"call_{self._output.suffix}_{len(self._taken)}"
        self._taken.add(given)
        return given


def _is_answered(call: Call) -> bool:
    return call.searches or (call.runs is not None and not call.runs.asks)


_PREFIXES: Final = {
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
}
_UNFINISHED: Final = frozenset({"in_progress", "searching", "interpreting", "generating", "calling"})


class _Open(msgspec.Struct):
    id: str
    index: int
    item: Any
    stepped: bool = False


class Hosted(msgspec.Struct, eq=False):
    """Tools that the provider runs itself: told as it tells them, with its own progress, status and id.

    The id matters: the client's `mcp_approval_response` names the request by it, and items that are sent back are known
    by it. An item that is still open when the reply ends has failed: nobody will hear of its result.
    """

    _output: Output
    _open: dict[int, _Open] = {}
    told: bool = False
    """Whether there was any."""

    @property
    def busy(self) -> bool:
        return bool(self._open)

    def open(self, delta: HostedOpened) -> None:
        self._open[delta.slot] = self._begin(delta.item)

    def step(self, delta: HostedProgress) -> None:
        known = self._open.get(delta.slot)
        if known is not None:
            known.stepped = True
            self._tell(known, delta.type, delta.fields)

    def end(self, delta: HostedCall) -> None:
        """The end of one that was opened, or the whole of one that was not."""
        known = self._open.pop(delta.slot, None) if delta.slot is not None else None
        given = delta.item.get("status")
        over = isinstance(given, str) and given not in _UNFINISHED
        self._finish(known or self._begin(delta.item), delta.item, given if over else "completed")

    def close_all(self) -> None:
        for known in self._open.values():
            self._finish(known, known.item, "failed")
        self._open = {}

    def _begin(self, item: Any) -> _Open:
        self.told = True
        wanted = item.get("id")
        id, index = self._output.place(_PREFIXES.get(item["type"], "item"), wanted if isinstance(wanted, str) else "")
        begun: Any = {**item, "id": id, "status": "in_progress"}
        self._output.added(index, begun)
        return _Open(id, index, item)

    def _finish(self, known: _Open, item: Any, status: HostedStatus) -> None:
        if item["type"] == "web_search_call" and not known.stepped:
            # Told as one piece: clients show a search by its steps.
            for step in ("in_progress", "searching", *(("completed",) if status == "completed" else ())):
                self._tell(known, f"response.web_search_call.{step}", {})
        ended: Any = {**item, "id": known.id, "status": status}
        self._output.done(known.index, ended)

    def _tell(self, known: _Open, type: str, fields: dict[str, Any]) -> None:
        self._output.say(type, item_id=known.id, output_index=known.index, **fields)  # the vendor's own fields
