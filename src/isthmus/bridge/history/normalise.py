"""Items in any order → turns that form a valid conversation, with a decision for each thing that was changed.

In: checked input items (stored history first, then the new input), and the types that go back as they are. Out:
a `History`. The one rule worth knowing is when an assistant turn ends. It grows while thoughts, texts and calls
follow each other. What others say ends it, unless a call still waits for its output: then that message is held back
until the turn is over, and only further calls still belong to the turn. Anything the assistant does after the first
output begins its next turn. Results always stand with their call, wherever they came in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, get_args

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item, repair_history
from isthmus.bridge.history.items import read_call, read_compaction, read_thought, write_note
from isthmus.bridge.history.managed import NOWHERE, Here, is_call, mark_of, read_approvals, result_of
from isthmus.bridge.history.pairing import CALLS, OUTPUTS, call_id_of, find_late_outputs, is_unnamed, pair_outputs
from isthmus.bridge.history.parts import read_output, read_parts
from isthmus.bridge.tools.managed import asked_by
from isthmus.bridge.types import history as past
from isthmus.bridge.types.history import (
    Acted,
    Kept,
    PastCall,
    PastResult,
    Said,
    Spoken,
    Words,
    item_path,
    item_paths,
    join_texts,
)
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM, RequestRefused
from isthmus.protocol.json import JsonObject

NO_OUTPUT: Final = "[no output recorded]"
STILL_RUNNING: Final = "[still running; the output will come in a later message]"
_LATE: Final = "the output came after others had gone on; the call was told as still running, this is a user note"
_ANSWERS: Final = frozenset({"computer_call_output", "mcp_approval_response"})
"""Items of hosted tools that come from the user's side."""
_Tools = Set[tuple[str | None, str]]
"""Namespace and name."""
_COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
_SPEAKERS: Final[Mapping[object, past.Speaker]] = {role: role for role in get_args(past.Speaker)}


def normalise_history(
    items: Sequence[JsonObject],
    *,
    stored: int = 0,
    envelope_key: bytes | None = None,
    owner: str = "",
    provider: str = "",
    keeps: Set[str] = frozenset(),
    patient: _Tools = frozenset(),
    continues: bool = False,
    here: Here = NOWHERE,
) -> past.History:
    """The first `stored` items come from earlier turns: their paths start with `history`.

    Items of the types in `keeps` are the provider's own, and go back to it as they came. `patient` are the tools whose
    outputs may come turns later. What `continues` a response that is kept here is not repaired: its history is ours, so
    an output of a call that is not in it is the client's mistake. Calls that ran `here` have their results with them.
    """
    if continues:
        _refuse_unknown_calls(items, stored)
    walk = _Walk(items, stored, envelope_key, owner, provider, patient, here)
    walk.take_all(keeps)
    walk.close()
    return past.History(tuple(walk.turns), tuple(walk.decisions), walk.phased)


def _refuse_unknown_calls(items: Sequence[JsonObject], stored: int) -> None:
    answers = [index for index in range(stored, len(items)) if items[index]["type"] in OUTPUTS]
    called = {call_id_of(item) for item in items if item["type"] in CALLS} if answers else ()
    for index in answers:
        if (id := call_id_of(items[index])) and id not in called:
            where = f"{item_path(index, stored)}.call_id"
            raise RequestRefused(
                f"`{where}` is `{id}`, and what is continued has no such call; send the id of one of its calls, or the "
                "whole conversation as `input`",
                code="invalid_value",
                param=where,
            )


def _is_asked_again(ran: str, mark: str, call: bool) -> bool:
    """Whether the model acts after it was told what came of calls that ran here. Where nothing marks the replies,
    calls that follow each other were made side by side."""
    return mark != ran if mark and ran else not call


def _unmarked(item: JsonObject) -> str:
    return ""


class _Open(msgspec.Struct):
    """The assistant's turn while it grows: a call is still an index among its steps."""

    first: str = ""
    steps: list[past.Step | int] = []
    thoughts: list[past.Thought] = []
    texts: list[str] = []
    calls: list[int] = []
    call_extras: dict[str, Any] = {}
    held: list[Said | Kept] = []
    outstanding: int = 0
    """Calls whose output stands further on."""
    answered: bool = False
    ran: str | None = None
    """The mark of the reply whose calls ran here, where the turn has such calls: they are answered."""


class _Walk:
    """One pass over the items."""

    def __init__(
        self,
        items: Sequence[JsonObject],
        stored: int,
        envelope_key: bytes | None,
        owner: str,
        provider: str,
        patient: _Tools,
        here: Here = NOWHERE,
    ) -> None:
        self.turns: list[past.PastTurn] = []
        self.phased = ""
        self.decisions: list[CompatibilityDecision] = []
        self._items = items
        self._paths = item_paths(len(items), stored)
        self._envelope_key, self._owner, self._provider, self._patient = envelope_key, owner, provider, patient
        self._here, self._any_here, self._approvals = here, bool(here), read_approvals(items, here)
        self._mark = mark_of if self._any_here else _unmarked
        self._answers = pair_outputs(items, stored)
        self._late = find_late_outputs(items, self._answers, patient) if patient else {}
        for call in self._late.values():
            del self._answers[call]
        self._call_of = {output: call for call, output in self._answers.items()}
        self._used_ids: set[str] = set()
        self._copies: dict[str, int] = {}
        self._open = _Open()

    def take_all(self, keeps: Set[str]) -> None:
        for index, item in enumerate(self._items):
            kind = item["type"]
            if kind == "message":
                self._take_message(self._paths[index], item)
            elif self._any_here and self._take_here(index, item):
                pass
            elif kind in keeps:
                self._keep(self._paths[index], item)
            elif kind in CALLS:
                self._take_call(index, item)
            elif kind in OUTPUTS:
                self._take_output(index, item)
            else:
                self._take_other(self._paths[index], item)

    def close(self) -> None:
        """End the open assistant turn; what was held back comes after it."""
        turn = self._open
        if not turn.steps:  # nothing is open, so nothing was held back
            return
        calls: tuple[PastCall, ...] = ()
        results: tuple[PastResult, ...] = ()
        if turn.calls:
            calls = tuple([self._past_call(index) for index in turn.calls])
            results = tuple([self._result(index) for index in turn.calls])
        steps: tuple[past.Step, ...] = calls
        if len(turn.steps) != len(calls):
            made = iter(calls)
            steps = tuple([next(made) if isinstance(step, int) else step for step in turn.steps])
        self.turns.append(Acted(turn.first, steps, tuple(turn.thoughts), tuple(turn.texts), calls, results))
        self.turns += turn.held
        self._open = _Open()

    def _begin(self, where: str, mark: str = "", call: bool = False) -> _Open:
        """The assistant acts: in the open turn, or in a new one."""
        turn = self._open
        if (
            turn.answered
            or (turn.held and not (call and turn.outstanding))
            or (turn.ran is not None and _is_asked_again(turn.ran, mark, call))
        ):
            self.close()
            turn = self._open
        if not turn.first:
            turn.first = where
        return turn

    def _take_message(self, where: str, item: JsonObject) -> None:
        content, role = item.get("content"), item.get("role")
        parts: tuple[Words | past.Media, ...]
        if isinstance(content, str):
            parts = (Words(content),) if content else ()
        else:
            parts = read_parts(content, f"{where}.content", self.decisions)
        if not parts:
            self.decisions.append(decide_item(where, "supported", "the message is empty; there is nothing to send"))
        elif role == "assistant":
            phase = item.get("phase")
            words = tuple([part if isinstance(part, Words) else self._omitted(part) for part in parts])
            text = words[0].text if len(words) == 1 else join_texts([part.text for part in words])
            if text:
                self._speak(Spoken(where, text, words, phase if isinstance(phase, str) else ""), self._mark(item))
                if phase and not self.phased:
                    self.phased = f"{where}.phase"
        else:
            speaker, name = _SPEAKERS.get(role), item.get("name")
            if speaker is None:
                reason = f"role `{role}` is not known; read as `user`"
                self.decisions.append(decide_item(f"{where}.role", "degraded", reason))
            self._say(Said(speaker or "user", parts, where, name if isinstance(name, str) else ""))

    def _omitted(self, part: past.Media) -> Words:
        """What an assistant said is text; media that stand in its name cannot be sent back."""
        what = type(part).__name__.lower()
        reason = f"an assistant message carries text only; its {what} became a note"
        self.decisions.append(decide_item(part.path, "degraded", reason))
        return Words(f"[{what} omitted]")

    def _speak(self, spoken: Spoken, mark: str = "") -> None:
        turn = self._begin(spoken.path, mark)
        turn.steps.append(spoken)
        turn.texts.append(spoken.text)

    def _take_call(self, index: int, item: JsonObject) -> None:
        output = self._answers.get(index)
        if output is None and is_unnamed(item):  # which nothing answers
            self._repaired(index, "the call has no name, so no provider would accept it; it was left out", ".name")
            return
        turn = self._begin(self._paths[index], self._mark(item), True)
        turn.calls.append(index)
        turn.steps.append(index)
        if output is not None and output > index:
            turn.outstanding += 1

    def _take_here(self, index: int, item: JsonObject) -> bool:
        """A call that ran here is a call with its result; approvals are part of the call that they are about."""
        where, approvals = self._paths[index], self._approvals
        if item["type"] in ("mcp_approval_response", "mcp_call") and item.get("approval_request_id") in approvals.asked:
            self.decisions.append(decide_item(where, "supported", "told with the call that was asked about"))
            return True
        if item["type"] == "mcp_list_tools" and item.get("server_label") in self._here.labels:
            self.decisions.append(decide_item(where, "supported", "these tools are offered by the tool plan"))
            return True
        if not is_call(item, self._here):
            return False
        mark = self._mark(item)
        turn = self._begin(where, mark, True)
        turn.calls.append(index)
        turn.steps.append(index)
        turn.ran = mark
        return True

    def _take_output(self, index: int, item: JsonObject) -> None:
        call = self._call_of.get(index)
        if call is None:  # those that came late have none here
            late = self._late.get(index)
            parts = read_output(item, self._paths[index], self.decisions)
            if late is not None:
                head = f"[output of the call {call_id_of(self._items[late])} of `{self._items[late]['name']}`]"
                self.decisions.append(decide_item(self._paths[index], "degraded", _LATE))
            else:
                head = f"[output of a tool call that is not in the history: {call_id_of(item) or 'no id'}]"
                self._repaired(index, "no call in the history belongs to this output; it became a user note")
            self._say(Said("user", (Words(head), *parts), self._paths[index]))
        elif call > index:
            self._repaired(index, "the output stands before its call; it was moved behind it")
        elif (turn := self._open).calls and call >= turn.calls[0]:
            turn.outstanding -= 1
            turn.answered = True

    def _take_other(self, where: str, item: JsonObject) -> None:
        kind = item["type"]
        if kind == "reasoning":
            turn = self._begin(where, self._mark(item))
            thought, extras = read_thought(item, where, self._envelope_key, self._provider, self.decisions, self._owner)
            turn.steps.append(thought)
            turn.thoughts.append(thought)
            turn.call_extras.update(extras)
        elif kind in _COMPACTIONS:
            said = read_compaction(item, where, self._envelope_key, self.decisions, self._owner)
            if said is not None:
                self._say(said)
        elif kind == "item_reference":
            raise RequestRefused(
                f"`{where}.id` refers to item `{item.get('id')}`, which is not stored here; send the item itself",
                code=BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM,
                param=f"{where}.id",
            )
        else:
            self._take_note(where, item)

    def _take_note(self, where: str, item: JsonObject) -> None:
        note = write_note(item, where)
        self.decisions.append(decide_item(where, note.action, note.reason))
        if note.role == "assistant":
            self._speak(Spoken(where, note.text))
        elif note.role == "user":
            self._say(Said("user", (Words(note.text),), where))

    def _keep(self, where: str, item: JsonObject) -> None:
        """The provider's own item: in the assistant's turn, or what the user answered to one."""
        self.decisions.append(decide_item(where, "supported", "the provider's own item; it goes back as it came"))
        if item["type"] in _ANSWERS:
            self._say(Kept(where, item))
            return
        turn = self._open if self._open.outstanding else self._begin(where)
        turn.steps.append(Kept(where, item))

    def _say(self, said: Said | Kept) -> None:
        turn = self._open
        if turn.outstanding:
            reason = "the message stands between a call and its output; it was moved behind the output"
            self.decisions.append(repair_history(said.path, reason))
            turn.held.append(said)
            return
        only_thought = turn.thoughts and len(turn.thoughts) == len(turn.steps)
        if not (only_thought and isinstance(said, Said) and said.role != "user"):
            # A thought belongs to what the model did next, not to an instruction that slipped in between.
            self.close()
        self.turns.append(said)

    def _past_call(self, index: int) -> PastCall:
        item = self._items[index]
        if self._any_here and is_call(item, self._here):
            name, label, arguments = asked_by(item)
            id = self._unique_id(index, str(item.get("id") or ""))
            return PastCall(id, name, arguments, self._paths[index], label, self._open.call_extras.get(id))
        name, arguments, problem = read_call(item)
        if problem:
            self._repaired(index, f"{problem}; a valid object was put in their place", ".arguments")
        namespace, given, free_text = item.get("namespace") or None, call_id_of(item), None
        if item["type"] == "custom_tool_call" and isinstance(item.get("input"), str):
            free_text = item["input"]
        return PastCall(
            self._unique_id(index, given),
            name,
            arguments,
            self._paths[index],
            namespace if isinstance(namespace, str) else None,
            self._open.call_extras.get(given),
            free_text,
        )

    def _unique_id(self, index: int, given: str) -> str:
        """The first call keeps its id; a later one with the same id gets a number, the same in every request."""
        if given and given not in self._used_ids:
            self._used_ids.add(given)
            return given
        base, number = (given, self._copies.get(given, 1) + 1) if given else ("call", index)
        while (made := f"{base}_{number}") in self._used_ids:
            number += 1
        if given:
            self._copies[given] = number
            self._repaired(index, f"call id `{given}` was used before; this one became `{made}`", ".call_id")
        self._used_ids.add(made)
        return made

    def _result(self, index: int) -> PastResult:
        if self._any_here and is_call(self._items[index], self._here):
            return self._result_here(index)
        output = self._answers.get(index)
        if output is not None:
            item, where = self._items[output], self._paths[output]
            return PastResult(read_output(item, where, self.decisions), where, item.get("is_error") is True)
        item = self._items[index]
        if (item.get("namespace"), item.get("name")) not in self._patient:
            self._repaired(index, f"the call has no output; `{NO_OUTPUT}` was put in its place")
            return PastResult((Words(NO_OUTPUT),), self._paths[index])
        if index not in self._late.values():
            reason = f"the output of the call is still to come; `{STILL_RUNNING}` stands in its place"
            self.decisions.append(decide_item(self._paths[index], "degraded", reason))
        return PastResult((Words(STILL_RUNNING),), self._paths[index])

    def _result_here(self, index: int) -> PastResult:
        where, key = self._paths[index], self._envelope_key
        output, failed, _ = result_of(self._items[index], self._here, self._approvals, key, self._owner)
        told: JsonObject = {"type": "function_call_output", "output": output}
        return PastResult(read_output(told, where, self.decisions), where, failed)

    def _repaired(self, index: int, reason: str, field: str = "") -> None:
        self.decisions.append(repair_history(f"{self._paths[index]}{field}", reason))
