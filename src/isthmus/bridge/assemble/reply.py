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
`ItemEnded` closes what speaks at once, unless it is `incomplete`: then the end of the reply says how it ended.
The rest of its state, and what changes it:

    state         set by                               used by
    ───────────   ──────────────────────────────────   ──────────────────────────────────────────────────────────
    open_text     a text part opens; reset by close    `Text`, the hot path: appended without asking anything
    held          message deltas, if `hold`            `end`: told, or replaced by what the contract made of them
    annotations   `Annotation` before its text         the next text part that opens; at the end they are reported
    vendor        `VendorExtra`                        the reasoning item that closes next, or one of its own
    usage         `Used`, the last one counts          the response, summed over attempts
    finish        `Finished`, the last one counts      the response's status
    failure       `Failed`, the first one counts       the response's status
    refused       `Refusal`                            the contract: a refusal is no answer
    waiting       deltas behind a pending check        the next `take`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from isthmus.bridge.assemble.calls import Calls, Paused
from isthmus.bridge.assemble.hosted import Hosted
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Message, RefusalWords, TextPart, Thought, ThoughtSummary, ThoughtText
from isthmus.bridge.assemble.vendor import VendorState
from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    HostedCall,
    HostedOpened,
    HostedProgress,
    ItemBegan,
    ItemEnded,
    Markup,
    PartBegan,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.finish import Outcome, map_provider_finish_reason
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.items import Annotation as Citation
from isthmus.protocol.items import Phase, Status

_BROKEN: Outcome = map_provider_finish_reason("length")
"""A call that was half shown and never ended: whatever the provider says, its answer was cut off."""

_Spoken = Text | Annotation | ItemBegan | PartBegan | ItemEnded


class Reply:
    __slots__ = (
        "_annotations",
        "_held",
        "_holding",
        "_hosted",
        "_notices",
        "_open_text",
        "_output",
        "_said",
        "_speech",
        "_summarises",
        "_vendor",
        "_waiting",
        "calls",
        "failure",
        "finish",
        "holds",
        "refused",
        "usage",
    )

    def __init__(
        self,
        output: Output,
        tools: ToolPlan,
        vendor: VendorState,
        notices: list[CompatibilityDiagnostic],
        taken_call_ids: set[str],
        *,
        hold: bool = False,
        reasoning_as: Literal["text", "summary"] = "text",
    ) -> None:
        """`hold`: answer text is not shown before the end, because a contract may still replace it."""
        self._output = output
        self._vendor = vendor
        self._notices = notices
        self._summarises = reasoning_as == "summary"
        self._hosted = Hosted(output)
        self._speech: Message | Thought | None = None
        self._open_text: TextPart | None = None
        self._said: list[Message] = []
        """Those that are closed."""
        self._held: list[_Spoken] = []
        self._holding = False
        """Whether the item that speaks is a message that is held."""
        self._annotations: list[Citation] = []
        self._waiting: list[Delta] = []
        self.holds = hold
        self.calls = Calls(tools, output, taken_call_ids, notices)
        self.usage: Usage | None = None
        self.finish: str | None = None
        self.failure: Failed | None = None
        self.refused = False

    # ── what is known of it ────────────────────────────────────────────────────────────────────────

    @property
    def outcome(self) -> Outcome:
        """How it ended, by its finish reason."""
        if self.failure is not None:
            return Outcome("failed", None, self.failure.code, self.failure.message)
        outcome = map_provider_finish_reason(self.finish)
        return _BROKEN if self.calls.broken and outcome.status == "completed" else outcome

    @property
    def text(self) -> str:
        """The answer, shown or held: all messages but those that the model itself calls commentary."""
        shown = [*self._said, self._speech] if isinstance(self._speech, Message) else self._said
        said = [*((message.phase, message.text) for message in shown), *_read_held(self._held)]
        answer = [text for phase, text in said if phase != "commentary"]
        return "".join(answer or [text for _, text in said])

    # ── deltas ─────────────────────────────────────────────────────────────────────────────────────

    def take(self, deltas: Iterable[Delta]) -> None:
        """Tell what these deltas say; stops in front of one that has to wait for a pending check."""
        if self._waiting:
            deltas, self._waiting = [*self._waiting, *deltas], []
            if self.calls.pending is not None:
                self._waiting = deltas
                return
        coming = iter(deltas)
        delta: Delta
        try:
            for delta in coming:
                kind = type(delta)
                if kind is Text:
                    if self._open_text is not None:
                        self._open_text.append(delta.text, delta.logprobs)  # type: ignore[union-attr]
                    else:
                        self._text(delta)  # type: ignore[arg-type]  # `kind is Text` is the cheap isinstance
                elif kind is CallArguments:
                    self.calls.append(delta)  # type: ignore[arg-type]
                else:
                    self._other(delta)
        except Paused:
            # A delta makes room before it does anything else, so it can simply be taken again.
            self._waiting = [delta, *coming]

    def last_examination(self) -> None:
        """Ask for what has to be examined before the end: `calls.pending` says what."""
        if self.calls.pending is None and self._waiting:
            self.take(())
        if self.calls.pending is None and self.calls:
            try:
                stopped = self.outcome.status != "completed"
                self.calls.examine_all(stopped=stopped, spoken_since=self._speech is not None)
            except Paused:
                pass

    def _text(self, delta: Text) -> None:
        if self.holds:
            self._hold(delta)
        else:
            self._text_part().append(delta.text, delta.logprobs)

    def _other(self, delta: Delta) -> None:
        match delta:
            case Reasoning(text, kind):
                self._holding = False
                self._thought_part(kind == "summary" or self._summarises).append(text)
            case CallOpened():
                self._make_room()
                # A reply that calls is no final answer: no contract is going to change what it said before.
                self.failure = self.failure or self.calls.open(delta, before=self._release)
            case Used(usage):
                self.usage = usage
            case Finished(reason):
                self.finish = reason
            case Refusal(text):
                self._release()  # likewise
                self._refusal_part().append(text)
                self.refused = True
            case ItemBegan() | PartBegan() | ItemEnded():
                self._bound(delta)
            case Annotation(citation):
                self._annotate(delta, citation)
            case VendorExtra():
                self._vendor.take(delta, self.calls.call_id(delta.slot) if delta.slot is not None else None)
            case HostedOpened() | HostedProgress() | HostedCall():
                self._run_hosted(delta)
            case Failed():
                self.failure = self.failure or delta
            case Markup(what, code):
                self._notices.append(notice(code, "output", what))
            case _:
                raise AssertionError(f"no room for {delta!r}")

    def _annotate(self, delta: Annotation, citation: Citation) -> None:
        if self.holds:
            self._hold(delta)
        elif self._open_text is not None:
            self._open_text.annotate(citation)
        else:
            self._annotations.append(citation)

    def _run_hosted(self, delta: HostedOpened | HostedProgress | HostedCall) -> None:
        if isinstance(delta, HostedProgress):
            self._hosted.step(delta)
            return
        if isinstance(delta, HostedOpened):
            self._make_room()
            self._hosted.open(delta)
        else:
            if delta.slot is None:
                self._make_room()
            self._hosted.end(delta)

    def _bound(self, delta: ItemBegan | PartBegan | ItemEnded) -> None:
        match delta:
            case ItemBegan("message", phase):
                if self.holds:
                    self._hold(delta)
                else:
                    self._open_message(phase)
            case ItemBegan():
                self._holding = False
                self._open_thought()
            case PartBegan("output_text"):
                if self.holds:
                    self._hold(delta)
                else:
                    self._begin_text()
            case PartBegan("refusal"):
                self._release()
                self._message().begin_refusal()
                self._open_text = None
            case PartBegan(kind):
                self._holding = False
                thought = self._thought()
                _ = thought.begin_summary() if kind == "summary_text" or self._summarises else thought.begin_text()
            case ItemEnded(status, phase):
                if self._holding:
                    self._hold(delta)
                    self._holding = False
                    return
                if isinstance(self._speech, Message) and phase is not None:
                    self._speech.phase = phase
                if status == "completed":
                    self._close_speech("completed")

    def _hold(self, delta: _Spoken) -> None:
        self._held.append(delta)
        self._holding = True

    def _release(self) -> None:
        """What was held is told after all."""
        if self.holds:
            self.holds = self._holding = False
            held, self._held = self._held, []
            self.take(held)

    # ── what speaks ────────────────────────────────────────────────────────────────────────────────

    def _text_part(self) -> TextPart:
        return self._open_text or self._begin_text()

    def _begin_text(self) -> TextPart:
        self._open_text = part = self._message().begin_text()
        for citation in self._annotations:  # those that came before their text
            part.annotate(citation)
        self._annotations = []
        return part

    def _refusal_part(self) -> RefusalWords:
        message = self._message()
        if isinstance(message.part, RefusalWords):
            return message.part
        self._open_text = None
        return message.begin_refusal()

    def _thought_part(self, summary: bool) -> ThoughtText | ThoughtSummary:
        thought = self._thought()
        part = thought.part
        if part is not None and isinstance(part, ThoughtSummary) is summary:
            return part
        return thought.begin_summary() if summary else thought.begin_text()

    def _message(self) -> Message:
        return self._speech if isinstance(self._speech, Message) else self._open_message(None)

    def _thought(self) -> Thought:
        return self._speech if isinstance(self._speech, Thought) else self._open_thought()

    def _open_message(self, phase: Phase | None) -> Message:
        self._make_room()
        self._speech = message = Message(self._output, phase)
        return message

    def _open_thought(self) -> Thought:
        self._make_room()
        self._speech = thought = Thought(self._output)
        return thought

    def _make_room(self) -> None:
        """Something new opens: what spoke is done, and so is every call that is whole."""
        self.calls.close_whole()
        self._close_speech("completed")

    def _close_speech(self, status: Status) -> None:
        speech, self._speech = self._speech, None
        self._open_text = None
        if isinstance(speech, Message):
            speech.close(status)
            self._said.append(speech)
        elif speech is not None:
            speech.close(status, self._vendor.seal_reasoning)

    # ── the end ────────────────────────────────────────────────────────────────────────────────────

    def replace_text(self, text: str) -> None:
        """What the contract made of the answer: instead of what is held, but for the model's commentary."""
        kept, answered = _split_commentary(self._held)
        phase = next((delta.phase for delta in reversed(answered) if isinstance(delta, ItemBegan)), None)
        citations = [delta for delta in answered if isinstance(delta, Annotation)]
        self._held = [*kept, ItemBegan("message", phase), Text(text), *citations]

    def close(self, outcome: Outcome) -> Outcome:
        """Everything closes; gives how it ended, which a call that broke off can still change."""
        self.calls.waive()
        if self._waiting:
            self.take(())
        stopped, failed = outcome.status != "completed", outcome.status == "failed"
        self.calls.close_all(stopped=stopped, failed=failed, spoken_since=self._speech is not None)
        if self.calls.broken and outcome.status == "completed":
            outcome = _BROKEN
        self._hosted.close_all()
        self._release()
        if not (self.calls or self._hosted.told or failed or self._said or isinstance(self._speech, Message)):
            self._begin_text()  # an answer without a word is an empty message
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


def _read_held(held: Iterable[_Spoken]) -> list[tuple[Phase | None, str]]:
    """The messages that are held, each with its phase."""
    messages: list[tuple[Phase | None, list[str]]] = []
    for delta in held:
        if isinstance(delta, ItemBegan) or not messages:
            messages.append((delta.phase if isinstance(delta, ItemBegan) else None, []))
        if isinstance(delta, ItemEnded) and delta.phase is not None:
            messages[-1] = (delta.phase, messages[-1][1])
        if isinstance(delta, Text):
            messages[-1][1].append(delta.text)
    return [(phase, "".join(texts)) for phase, texts in messages]


def _split_commentary(held: list[_Spoken]) -> tuple[list[_Spoken], list[_Spoken]]:
    """The deltas of commentary, if there is an answer beside it, and those of the answer."""
    messages: list[list[_Spoken]] = []
    for delta in held:
        if isinstance(delta, ItemBegan) or not messages:
            messages.append([])
        messages[-1].append(delta)
    phases = [_read_held(message)[0][0] for message in messages]
    if all(phase == "commentary" for phase in phases):
        return [], held
    pairs = list(zip(phases, messages, strict=True))
    kept = [delta for phase, message in pairs if phase == "commentary" for delta in message]
    return kept, [delta for phase, message in pairs if phase != "commentary" for delta in message]
