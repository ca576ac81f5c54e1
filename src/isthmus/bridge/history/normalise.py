"""Items in any order → turns that form a valid conversation, with a decision for each thing that was changed.

In: checked input items (stored history first, then the new input), and the types that go back as they are. Out:
a `History`. The one rule worth knowing is when an assistant turn ends. It grows while thoughts, texts and calls
follow each other. What others say ends it, unless a call still waits for its output: then that message is held back
until the turn is over, and only further calls still belong to the turn. Anything the assistant does after the first
output begins its next turn. Results always stand with their call, wherever they came in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, Literal

from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.bridge.history.notes import write_note
from isthmus.bridge.history.outputs import read_output
from isthmus.bridge.history.pairing import (
    CALLS,
    OUTPUTS,
    call_id_of,
    find_calls_by_name,
    find_late_outputs,
    is_unnamed,
    pair_outputs,
)
from isthmus.bridge.history.parts import read_parts
from isthmus.bridge.history.past_calls import read_call
from isthmus.bridge.history.thoughts import read_compaction, read_thought
from isthmus.bridge.types.history import (
    Acted,
    Audio,
    File,
    History,
    Image,
    Kept,
    Part,
    PastCall,
    PastResult,
    PastTurn,
    Said,
    Spoken,
    Step,
    Thought,
    Words,
    item_path,
    join_texts,
)
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM, RequestRefused
from isthmus.protocol.json import JsonObject

NO_OUTPUT: Final = "[no output recorded]"
STILL_RUNNING: Final = "[still running; the output will come in a later message]"
ANSWERS: Final = frozenset({"computer_call_output", "mcp_approval_response"})
"""Items of hosted tools that come from the user's side."""

_COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
_SPEAKERS: Final[Mapping[str, Literal["user", "system", "developer"]]] = {
    "user": "user",
    "system": "system",
    "developer": "developer",
}


def normalise_history(
    items: Sequence[JsonObject],
    *,
    stored: int = 0,
    envelope_key: bytes | None = None,
    provider: str = "",
    keeps: Set[str] = frozenset(),
    patient: Set[tuple[str | None, str]] = frozenset(),
) -> History:
    """The first `stored` items come from earlier turns: their paths start with `history`.

    Items of the types in `keeps` are the provider's own, and go back to it as they came. `patient` are the tools
    (namespace, name) whose outputs may come turns later.
    """
    items = find_calls_by_name(items, stored)
    walk = _Walk(items, stored, envelope_key, provider, keeps, patient)
    for index, item in enumerate(items):
        walk.take(index, item)
    walk.close()
    return History(tuple(walk.turns), tuple(walk.decisions), walk.phased)


class _Walk:
    """One pass over the items; the open assistant turn is a list of steps, in which a call is still an index."""

    def __init__(
        self,
        items: Sequence[JsonObject],
        stored: int,
        envelope_key: bytes | None,
        provider: str,
        keeps: Set[str],
        patient: Set[tuple[str | None, str]],
    ) -> None:
        self.turns: list[PastTurn] = []
        self.phased = ""
        self.decisions: list[CompatibilityDecision] = []
        self._items = items
        self._stored = stored
        self._envelope_key, self._provider = envelope_key, provider
        self._keeps = keeps
        self._patient = patient
        self._answers = pair_outputs(items)
        self._late = find_late_outputs(items, self._answers, patient)
        for call in self._late.values():
            del self._answers[call]
        self._call_of = {output: call for call, output in self._answers.items()}
        self._used_ids: set[str] = set()
        self._copies: dict[str, int] = {}
        self._open_turn()

    def take(self, index: int, item: JsonObject) -> None:
        """Each item goes to exactly one of these."""
        kind = item["type"]
        if kind == "message":
            self._take_message(index, item)
        elif kind in self._keeps:
            self._keep(index, item)
        elif kind in CALLS:
            self._take_call(index, item)
        elif kind in OUTPUTS:
            self._take_output(index, item)
        elif kind == "reasoning":
            self._begin(index)
            thought, extras = read_thought(item, self._where(index), self._envelope_key, self._provider, self.decisions)
            self._steps.append(thought)
            self._thoughts.append(thought)
            if extras:
                self._call_extras.update(extras)
        elif kind in _COMPACTIONS:
            said = read_compaction(item, self._where(index), self._envelope_key, self.decisions)
            if said is not None:
                self._say(said)
        elif kind == "item_reference":
            self._refuse_reference(index, item)
        else:
            self._take_other(index, item)

    def close(self) -> None:
        """End the open assistant turn; what was held back comes after it."""
        if self._steps:
            calls = tuple([self._past_call(index) for index in self._calls])
            results = tuple([self._result(index) for index in self._calls])
            steps: tuple[Step, ...] = calls
            if len(self._steps) != len(calls):
                made = iter(calls)
                steps = tuple([next(made) if isinstance(step, int) else step for step in self._steps])
            thoughts, texts = tuple(self._thoughts), tuple(self._texts)
            self.turns.append(Acted(self._where(self._first), steps, thoughts, texts, calls, results))
        self.turns.extend(self._held)
        self._open_turn()

    def _open_turn(self) -> None:
        self._first = -1
        self._steps: list[Step | int] = []
        self._thoughts: list[Thought] = []
        self._texts: list[str] = []
        self._calls: list[int] = []
        self._call_extras: dict[str, Any] = {}
        self._held: list[Said | Kept] = []
        self._outstanding = 0
        """Calls of the open turn whose output stands further on."""
        self._answered = False

    def _begin(self, index: int, *, call: bool = False) -> None:
        """The assistant acts: in the open turn, or in a new one."""
        if self._answered or (self._held and not (call and self._outstanding)):
            self.close()
        if self._first < 0:
            self._first = index

    def _take_message(self, index: int, item: JsonObject) -> None:
        where, role = self._where(index), item.get("role")
        parts = read_parts(item.get("content"), f"{where}.content", self.decisions)
        if not parts:
            self._decide(where, "supported", "the message is empty; there is nothing to send", "")
            return
        if role == "assistant":
            words = self._assistant_words(parts)
            text = join_texts([part.text for part in words])
            if text:
                self._begin(index)
                phase = item.get("phase")
                self._steps.append(Spoken(where, text, words, phase if isinstance(phase, str) else ""))
                self._texts.append(text)
                if phase and not self.phased:
                    self.phased = f"{where}.phase"
            return
        speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
        if speaker is None:
            reason = f"role `{role}` is not known; read as `user`"
            self._decide(f"{where}.role", "degraded", reason, "bridge.item.degraded")
            speaker = "user"
        name = item.get("name")
        self._say(Said(speaker, parts, where, name if isinstance(name, str) else ""))

    def _assistant_words(self, parts: tuple[Part, ...]) -> tuple[Words, ...]:
        """What an assistant said is text; media that stand in its name cannot be sent back."""
        words: list[Words] = []
        for part in parts:
            match part:
                case Words():
                    words.append(part)
                case Image() | File() | Audio():
                    what = type(part).__name__.lower()
                    words.append(Words(f"[{what} omitted]"))
                    reason = f"an assistant message carries text only; its {what} became a note"
                    self._decide(part.path, "degraded", reason, "bridge.item.degraded")
        return tuple(words)

    def _take_call(self, index: int, item: JsonObject) -> None:
        if is_unnamed(item):
            self._repaired(index, "the call has no name, so no provider would accept it; it was left out", "name")
            return
        self._begin(index, call=True)
        self._calls.append(index)
        self._steps.append(index)
        if self._answers.get(index, -1) > index:
            self._outstanding += 1

    def _take_output(self, index: int, item: JsonObject) -> None:
        call = self._call_of.get(index)
        if index in self._late:
            self._take_late_output(index, item)
        elif call is None:
            where = self._where(index)
            parts = read_output(item, where, self.decisions)
            self._repaired(index, "no call in the history belongs to this output; it became a user note")
            head = f"[output of a tool call that is not in the history: {call_id_of(item) or 'no id'}]"
            self._say(Said("user", (Words(head), *parts), where))
        elif call > index:
            self._repaired(index, "the output stands before its call; it was moved behind it")
        elif self._calls and call >= self._calls[0]:
            self._outstanding -= 1
            self._answered = True

    def _take_late_output(self, index: int, item: JsonObject) -> None:
        where = self._where(index)
        parts = read_output(item, where, self.decisions)
        reason = "the output came after others had gone on; the call was told as still running, this is a user note"
        self._decide(where, "degraded", reason, "bridge.item.degraded")
        head = f"[output of the call {call_id_of(item)} of `{self._items[self._late[index]]['name']}`]"
        self._say(Said("user", (Words(head), *parts), where))

    def _take_other(self, index: int, item: JsonObject) -> None:
        where = self._where(index)
        note = write_note(item, where)
        code = f"bridge.item.{note.action}" if note.action != "supported" else ""
        self._decide(where, note.action, note.reason, code)
        if note.role == "assistant":
            self._begin(index)
            self._steps.append(Spoken(where, note.text))
            self._texts.append(note.text)
        elif note.role == "user":
            self._say(Said("user", (Words(note.text), *((note.image,) if note.image else ())), where))

    def _keep(self, index: int, item: JsonObject) -> None:
        """The provider's own item: in the assistant's turn, or what the user answered to one."""
        where = self._where(index)
        self._decide(where, "supported", "the provider's own item; it goes back as it came", "")
        kept = Kept(where, item)
        if item["type"] in ANSWERS:
            self._say(kept)
        elif self._outstanding:
            self._steps.append(kept)
        else:
            self._begin(index)
            self._steps.append(kept)

    def _say(self, said: Said | Kept) -> None:
        if self._outstanding:
            reason = "the message stands between a call and its output; it was moved behind the output"
            self._decide(said.path, "degraded", reason, "bridge.history.repaired")
            self._held.append(said)
            return
        if (
            isinstance(said, Said)
            and said.role != "user"
            and self._thoughts
            and len(self._thoughts) == len(self._steps)
        ):
            # A thought belongs to what the model did next, not to an instruction that slipped in between.
            self.turns.append(said)
            return
        self.close()
        self.turns.append(said)

    def _past_call(self, index: int) -> PastCall:
        item = self._items[index]
        name, arguments, problem = read_call(item)
        if problem:
            self._repaired(index, f"{problem}; a valid object was put in their place", "arguments")
        namespace, given, free_text = item.get("namespace"), call_id_of(item), item.get("input")
        return PastCall(
            self._unique_id(index, given),
            name,
            arguments,
            self._where(index),
            namespace if isinstance(namespace, str) and namespace else None,
            self._call_extras.get(given),
            free_text if item["type"] == "custom_tool_call" and isinstance(free_text, str) else None,
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
            self._repaired(index, f"call id `{given}` was used before; this one became `{made}`", "call_id")
        self._used_ids.add(made)
        return made

    def _result(self, index: int) -> PastResult:
        output = self._answers.get(index)
        item = self._items[index]
        if output is None and (item.get("namespace"), item.get("name")) in self._patient:
            if index not in self._late.values():
                reason = f"the output of the call is still to come; `{STILL_RUNNING}` stands in its place"
                self._decide(self._where(index), "degraded", reason, "bridge.item.degraded")
            return PastResult((Words(STILL_RUNNING),), self._where(index), synthesised=True)
        if output is None:
            self._repaired(index, f"the call has no output; `{NO_OUTPUT}` was put in its place")
            return PastResult((Words(NO_OUTPUT),), self._where(index), synthesised=True)
        where = self._where(output)
        return PastResult(read_output(self._items[output], where, self.decisions), where)

    def _refuse_reference(self, index: int, item: JsonObject) -> None:
        param = f"{self._where(index)}.id"
        raise RequestRefused(
            f"`{param}` refers to item `{item.get('id')}`, which is not stored here; send the item itself",
            code=BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM,
            param=param,
        )

    def _where(self, index: int) -> str:
        return item_path(index, self._stored)

    def _repaired(self, index: int, reason: str, field: str = "") -> None:
        where = f"{self._where(index)}.{field}" if field else self._where(index)
        self._decide(where, "degraded", reason, "bridge.history.repaired")

    def _decide(self, path: str, action: Action, reason: str, code: str) -> None:
        self.decisions.append(CompatibilityDecision(path, action, reason, code=code))
