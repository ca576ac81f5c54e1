"""One upstream answer, from its first delta to its last: everything that is known of it lives and dies with it.

Asking the model again makes a new `Reply`; what was told stays in the response's `Output`. At most one item speaks (a
message or a reasoning item), while any number of calls may be open. What speaks × what comes:

    speaks       Text, Refusal         Reasoning             ItemBegan        CallOpened, hosted   end
    ──────────   ───────────────────   ───────────────────   ──────────────   ──────────────────   ───────────────
    nothing      open message          open reasoning        open it          open call            (empty message)
    message      append                close, open reas.     close, open it   close, open call     close
    reasoning    close, open message   append                close, open it   close, open call     close
    open calls   whole ones close      whole ones close      whole ones close whole ones close     close all

`PartBegan` closes the part that is open, and opens the next one of the same item.
`ItemEnded` closes what speaks at once, unless it is `incomplete`, or the server tells no cuts: then the end of the
reply says how it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import msgspec

from isthmus.bridge import deltas as kinds
from isthmus.bridge.assemble.calls import Calls, Hosted, Paused
from isthmus.bridge.assemble.managed import ManagedCalls
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Part, Speech, TextPart, VendorState
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Failed, Finished, ItemBegan, Reasoning, Text, Used
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.finish import Outcome, map_provider_finish_reason
from isthmus.protocol.items import Annotation, Phase, Status

_CUT: Final = map_provider_finish_reason("length")
"""A call that was half shown and never ended, or a limit that was met: whatever the provider says, it was cut off."""

_LOGPROBS: Final = attrgetter("logprobs")
_THOUGHTS: Final = ("reasoning_text", "summary_text")


class _Steered(Exception):
    """The item that was open is done, and another one would open."""


class Reply(msgspec.Struct, eq=False):
    _output: Output
    _vendor: VendorState
    """Given to the reasoning item that closes next, or to one of its own at the end."""
    _notices: list[CompatibilityDiagnostic]
    _hosted: Hosted
    calls: Calls
    holds: bool
    """Whether answer text is not shown before the end, because a contract may still replace it."""
    _summarises: bool
    """Whether all thinking is told as a summary."""
    _managed: ManagedCalls
    """Knows what citations may point to."""
    _limit: int | None = None
    """The tokens that were asked for at most, where the server does not tell that an answer met them."""
    _speech: Speech | None = None
    _open_text: TextPart | None = None
    """The hot path: `Text` is appended without asking anything."""
    _messages: list[Speech] = []
    """Those that were told, the open one included."""
    _held: list[Delta] = []
    """The deltas of messages while it `holds`: told at the end, or replaced by what the contract made of them."""
    _holding: bool = False
    """Whether the item that speaks is a message that is held."""
    _annotations: list[Annotation] = []
    """Those that came before their text: they wait for the next text part; at the end they are reported."""
    _waiting: list[Delta] = []
    """Behind a pending check."""
    usage: kinds.Usage | None = None
    """The last one counts; of failures, the first one."""
    finish: str | None = None
    stop: str | None = None
    """What the provider says of the stop sequence that ended it, if one did (`Finished`)."""
    failure: Failed | None = None
    paused: list[Any] | None = None
    """What must be sent back for the turn to go on."""
    steering: bool = False
    """Whether it is to end with the item that is open; a call that is opened needs its answer first, and goes on."""
    steered: bool = False
    """Whether it has: what else comes is not told."""
    refused: bool = False
    """A refusal is no answer: no contract applies to it."""

    @property
    def outcome(self) -> Outcome:
        if self.failure is not None:
            return Outcome("failed", None, self.failure.code, self.failure.message)
        return self._unless_cut(map_provider_finish_reason(self.finish))

    def _unless_cut(self, outcome: Outcome) -> Outcome:
        return _CUT if outcome.status == "completed" and (self.calls.broken or self._met_limit) else outcome

    @property
    def _met_limit(self) -> bool:
        return self._limit is not None and self.usage is not None and self.usage.output_tokens >= self._limit

    @property
    def text(self) -> str:
        """The answer, shown or held: all messages but those that the model itself calls commentary."""
        said = [(message.phase, message.text) for message in self._messages]
        for phase, deltas in _messages(self._held):
            said.append((phase, "".join(delta.text for delta in deltas if isinstance(delta, Text))))
        answer = [text for phase, text in said if phase != "commentary"]
        return "".join(answer or [text for _, text in said])

    def take(self, deltas: Iterable[Delta]) -> None:
        """Tell what these deltas say; stops in front of one that has to wait for a pending check."""
        if self._waiting:
            deltas, self._waiting = [*self._waiting, *deltas], []
            if self.calls.pending is not None:
                self._waiting = deltas
                return
        groups = groupby(deltas, type)
        delta: Delta
        try:
            for kind, run in groups:
                for delta in run:
                    if kind is Text and self._open_text is not None:
                        _say(self._open_text, delta, run)  # type: ignore[arg-type]  # a cheap isinstance
                    elif kind is CallArguments:
                        self.calls.append(delta)  # type: ignore[arg-type]
                    else:
                        self._other(delta)
        except Paused:
            # A delta makes room before it does anything else, so it can simply be taken again.
            self._waiting = [delta, *run, *(later for _, rest in groups for later in rest)]
        except _Steered:
            self.steered = True

    @property
    def at_rest(self) -> bool:
        """Whether nothing is open, or held, and no call was made."""
        return self._speech is None and not self._held and not self.calls and not self._hosted.busy

    def last_examination(self) -> None:
        """Ask for what has to be examined before the end: `calls.pending` says what."""
        if self.calls.pending is None and self._waiting:
            self.take(())
        if self.calls.pending is None and self.calls:
            with suppress(Paused):
                self.calls.examine_all(self.outcome, spoken_since=self._speech is not None)

    def _other(self, delta: Delta) -> None:
        if self.holds and self._keeps(delta):
            self._held.append(delta)
            return
        match delta:
            case Reasoning(text, kind):
                self._part("summary_text" if kind == "summary" or self._summarises else "reasoning_text").append(text)
            case Text(text, logprobs):
                self._part("output_text").append(text, logprobs)
            case Used(usage):
                self.usage = usage
            case Finished(reason, stop):
                self.finish, self.stop = reason, stop or self.stop  # some say the end twice, and the stop once
            case CallOpened():
                self._make_room()
                # A reply that calls is no final answer: no contract is going to change what it said before.
                self.failure = self.failure or self.calls.open(delta, before=self._release)
            case kinds.VendorExtra(slot=slot):
                self._vendor.take(delta, self.calls.call_id(slot) if slot is not None else None)
            case Failed():
                self.failure = self.failure or delta
            case kinds.Markup(what, code):
                self._notices.append(notice(code, "output", what))
            case _:
                self._rarer(delta)

    def _rarer(self, delta: Delta) -> None:
        match delta:
            case kinds.Refusal(text):
                self._release()  # likewise
                self._part("refusal").append(text)
                self.refused = True
            case kinds.Annotation(citation):
                if self._open_text is not None:
                    self._open_text.annotate(citation)
                else:
                    self._annotations.append(citation)
            case ItemBegan(item, phase):
                self._open(item, phase)
            case kinds.PartBegan(part):
                if part == "refusal":
                    self._release()
                self._begin("summary_text" if part == "reasoning_text" and self._summarises else part)
            case kinds.ItemEnded(status, phase):
                if self._speech is not None and phase is not None:
                    self._speech.phase = phase
                # Where the server does not tell a cut, only the usage does, and that comes last.
                if status == "completed" and self._limit is None:
                    self._close_speech("completed")
            case kinds.TurnPaused(content):
                self.paused = content
            case kinds.HostedOpened():
                self._make_room()
                self._hosted.open(delta)
            case kinds.HostedProgress():
                self._hosted.step(delta)
            case kinds.HostedCall(_, slot):
                if slot is None:
                    self._make_room()
                self._hosted.end(delta)
            case _:
                raise AssertionError(f"no room for {delta!r}")

    def _keeps(self, delta: Delta) -> bool:
        """Whether this belongs to a message, while messages are held."""
        match delta:
            case Text() | kinds.Annotation() | ItemBegan("message") | kinds.PartBegan("output_text"):
                self._holding = True
                return True
            case kinds.ItemEnded():
                held, self._holding = self._holding, False
                return held
            case Reasoning() | ItemBegan() | kinds.PartBegan():
                self._holding = False
        return False

    def _release(self) -> None:
        """What was held is told after all."""
        if self.holds:
            self.holds = self._holding = False
            held, self._held = self._held, []
            self.take(held)

    def _part(self, kind: kinds.PartKind) -> Part:
        part = self._speech.part if self._speech is not None else None
        return part if part is not None and part.kind == kind else self._begin(kind)

    def _begin(self, kind: kinds.PartKind) -> Part:
        item: kinds.ItemKind = "reasoning" if kind in _THOUGHTS else "message"
        speech = self._speech
        if speech is None or speech.kind != item:
            speech = self._open(item)
        part = speech.begin(kind)
        self._open_text = part if isinstance(part, TextPart) else None
        if self._open_text is not None:
            for citation in self._annotations:
                self._open_text.annotate(citation)
            self._annotations = []
        return part

    def _open(self, item: kinds.ItemKind, phase: Phase | None = None) -> Speech:
        self._make_room()
        cite = self._managed.cite if self._managed.cites else None
        self._speech = speech = Speech(item, self._output, phase=phase, seal=self._vendor.seal_reasoning, cite=cite)
        if item == "message":
            self._messages.append(speech)
        return speech

    def _make_room(self) -> None:
        """Something new opens: what spoke is done, and so is every call that is whole."""
        self.calls.close_whole()
        self._close_speech("completed")
        if self.steering and not self.calls and not self._hosted.busy:
            raise _Steered

    def _close_speech(self, status: Status) -> None:
        speech, self._speech, self._open_text = self._speech, None, None
        if speech is not None:
            speech.close(status)

    def replace_text(self, text: str) -> None:
        """What the contract made of the answer: instead of what is held, but for the model's commentary."""
        held = _messages(self._held)
        kept = [message for message in held if message[0] == "commentary"]
        answered = [message for message in held if message[0] != "commentary"]
        if not answered:
            kept, answered = [], held
        phase = answered[-1][0] if answered else None
        citations = [delta for _, deltas in answered for delta in deltas if isinstance(delta, kinds.Annotation)]
        commentary = [delta for _, deltas in kept for delta in deltas]
        self._held = [*commentary, ItemBegan("message", phase), Text(text), *citations]

    def withhold_text(self) -> None:
        """The answer broke its contract for good: what is still held of it is never told. SDKs read the text of an
        answer by the type that was asked for, whatever its status says, and would raise about that instead."""
        self._held = [delta for phase, deltas in _messages(self._held) if phase == "commentary" for delta in deltas]

    def close(self, outcome: Outcome) -> Outcome:
        """Everything closes; gives how it ended, which a call that broke off can still change."""
        self.steering = False
        self.calls.waive()
        if self._waiting:
            self.take(())
        self.calls.close_all(outcome, spoken_since=self._speech is not None)
        outcome = self._unless_cut(outcome)
        if outcome is _CUT and self._met_limit:
            words = f"the server says that the answer is complete, but it used all of the {self._limit} tokens it had"
            self._notices.append(notice("bridge.response.length_untold", "max_output_tokens", words))
        self._hosted.close_all()
        self._release()
        steered = outcome.incomplete_reason == "steered"
        if not (self.calls or self._hosted.told or self._messages or outcome.status == "failed" or steered):
            self._begin("output_text")  # an answer without a word is an empty message
        self._close_speech("completed" if outcome.status == "completed" else "incomplete")
        for citation in self._annotations:
            words = "an annotation came without a text to belong to"
            self._notices.append(notice("bridge.item.ignored", "output", words, annotation=citation))
        self._vendor.flush(self._output)
        return outcome

    def abandon(self) -> None:
        """Another attempt follows: what was told is closed, what was held is never told."""
        self._close_speech("completed")
        self._hosted.close_all()


def _say(part: TextPart, first: Text, run: Iterator[Text]) -> None:
    """All texts of a run at once; one that has log probabilities is told alone."""
    more = [*run]
    if not more or first.logprobs or any(map(_LOGPROBS, more)):
        part.append(first.text, first.logprobs)
        for one in more:
            part.append(one.text, one.logprobs)
    else:
        part.extend([first.text, *[one.text for one in more]])


def _messages(held: Iterable[Delta]) -> list[tuple[Phase | None, list[Delta]]]:
    """What is held, message by message, each with its phase."""
    messages: list[list[Delta]] = []
    for delta in held:
        if isinstance(delta, ItemBegan) or not messages:
            messages.append([])
        messages[-1].append(delta)
    bounds = ([delta for delta in message if isinstance(delta, ItemBegan | kinds.ItemEnded)] for message in messages)
    phases = (next((bound.phase for bound in reversed(each) if bound.phase is not None), None) for each in bounds)
    return list(zip(phases, messages, strict=True))
