"""Deltas → Responses events and the final object: the one machine behind streamed and whole answers.

Theory. A response is *idle*, then *running*, then *ended*; nothing else exists and nothing goes back.
While it runs, at most one item speaks (a message or a reasoning item) and any number of calls may be
open, because vendors interleave the fragments of parallel calls. An item is opened by its first delta
and closed when another one opens, except a call whose arguments are not whole yet. Every transition:

    what speaks      Text, Refusal         Reasoning             CallOpened            end
    ──────────────   ───────────────────   ───────────────────   ───────────────────   ─────────────────
    nothing          open message          open reasoning        open call             (empty message)
    message          append                close, open reas.     close, open call      close
    reasoning        close, open message   append                close, open call      close
    open calls       whole ones close      whole ones close      whole ones close      close all

    phase      start     feed      end, fail
    ────────   ───────   ───────   ─────────
    idle       running   error     error
    running    error     running   ended
    ended      error     error     error

A whole reply goes through the same machine: the decoder gives its deltas in the order reasoning, calls,
message. With `held`, answer text is not shown before `end`, because a binding output contract may still
clean it or ask the model again (`again`). A custom call with a grammar is examined before it closes, by somebody
else: `feed` then stops in front of the delta that would close it, `pending` says what to examine, and after
`examined` the next `feed` goes on with what was left.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from isthmus.bridge.assemble.calling import Calls, Paused
from isthmus.bridge.assemble.emitter import Event
from isthmus.bridge.assemble.finish import Outcome, map_provider_finish_reason
from isthmus.bridge.assemble.frame import Frame, add_usage
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Speech
from isthmus.bridge.assemble.vendor import Seal, VendorState
from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    HostedCall,
    Markup,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.json import JsonObject

Phase = Literal["idle", "running", "ended"]

TRANSITIONS: Final[dict[tuple[Phase, str], Phase]] = {
    ("idle", "start"): "running",
    ("running", "feed"): "running",
    ("running", "end"): "ended",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The response as it is stored and sent, and the events that close the stream (terminal one last)."""

    response: JsonObject
    events: list[Event]


class Assembler:
    __slots__ = (
        "_annotations",
        "_calls",
        "_emitter",
        "_failure",
        "_finish",
        "_frame",
        "_held",
        "_held_logprobs",
        "_held_text",
        "_output",
        "_phase",
        "_plan_diagnostics",
        "_reasoning_kind",
        "_refused",
        "_reply_notices",
        "_speech",
        "_usage",
        "_usage_before",
        "_vendor",
        "_waiting",
    )

    def __init__(
        self,
        frame: Frame,
        tools: ToolPlan,
        *,
        diagnostics: Iterable[CompatibilityDiagnostic] = (),
        held: bool = False,
        taken_call_ids: frozenset[str] = frozenset(),
        seal: Seal | None = None,
        seals_text: bool = True,
        reasoning_as: Literal["text", "summary"] = "text",
    ) -> None:
        self._frame = frame
        self._plan_diagnostics = tuple(diagnostics)
        self._held = held
        self._reasoning_kind: Literal["reasoning_text", "summary_text"] = (
            "summary_text" if reasoning_as == "summary" else "reasoning_text"
        )
        self._phase: Phase = "idle"
        self._output = Output(frame.response_id)
        self._emitter = self._output.emitter
        self._calls = Calls(tools, self._output, taken_call_ids)
        self._vendor = VendorState(frame.provider, seal, text_too=seals_text)
        self._speech: Speech | None = None
        self._held_text: list[str] = []
        self._held_logprobs: list[JsonObject] = []
        self._annotations: list[JsonObject] = []
        self._reply_notices = self._calls.notices
        self._usage: Usage | None = None
        self._usage_before: Usage | None = None
        self._finish: str | None = None
        self._failure: Failed | None = None
        self._refused = False
        self._waiting: list[Delta] = []

    # ── facts about the answer so far ──────────────────────────────────────────────────────────────

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def failure(self) -> Failed | None:
        """An error that the upstream reported inside its answer."""
        return self._failure

    @property
    def outcome(self) -> Outcome:
        """How the answer ended, by its finish reason."""
        if self._failure is not None:
            return Outcome("failed", None, self._failure.code, self._failure.message)
        return map_provider_finish_reason(self._finish)

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    @property
    def refused(self) -> bool:
        return self._refused

    @property
    def text(self) -> str:
        """The answer text, shown or held."""
        if self._held:
            return "".join(self._held_text)
        done = "".join(
            part["text"]
            for item in self._output.items
            if item["type"] == "message"
            for part in item["content"]
            if part["type"] == "output_text"
        )
        part = self._speech.part if self._speech is not None and self._speech.kind == "message" else None
        return done + part.text if part is not None and part.kind == "output_text" else done

    # ── the machine ────────────────────────────────────────────────────────────────────────────────

    def start(self) -> list[Event]:
        """The upstream has accepted: the client hears of its response at once."""
        self._move("start")
        response = self.snapshot("in_progress")
        self._emitter.emit("response.created", response=response)
        self._emitter.emit("response.in_progress", response=response)
        return self._emitter.take()

    def heartbeat(self) -> Event:
        """A sign of life that counts: clients' idle timers ignore SSE comments."""
        self._emitter.emit("response.in_progress", response=self.snapshot("in_progress"))
        return self._emitter.take()[-1]

    def feed(self, deltas: Iterable[Delta]) -> list[Event]:
        """The events that these deltas give; the hot path is `Text` while a message is open."""
        if self._phase != "running":
            self._move("feed")
        self._take(deltas)
        emitter = self._emitter
        events = emitter.events
        emitter.events = []
        return events

    @property
    def pending(self) -> ExamineInput | None:
        """What has to be examined before anything goes on."""
        return self._calls.pending

    def examined(self, verdict: Examined) -> None:
        self._calls.take_verdict(verdict)

    def last_examination(self) -> ExamineInput | None:
        """What has to be examined before `end`; to be asked again after each verdict, until there is nothing."""
        if self._waiting:
            raise RuntimeError("an examination is pending, or what was left after it was not fed on")
        if self.pending is None:
            stopped = self.outcome.status != "completed"
            with suppress(Paused):
                self._calls.examine_all(stopped=stopped, spoken_since=self._speech is not None)
        return self.pending

    def snapshot(self, status: str) -> JsonObject:
        """The response as it stands, before its end."""
        return self._frame.response(status=status, output=())

    def note(self, diagnostic: CompatibilityDiagnostic) -> None:
        """Something was changed in the reply: it will be reported."""
        self._reply_notices.append(diagnostic)

    def again(self) -> None:
        """The contract is not kept and the model is asked once more: its held text is dropped."""
        self._close_speech("completed")
        self._held_text.clear()
        self._held_logprobs.clear()
        self._finish = None
        self._usage_before = add_usage(self._usage_before, self._usage)
        self._usage = None
        self._calls.forget()

    def end(self, now: int, *, text: str | None = None) -> Ending:
        """The upstream is done: everything closes. `text` replaces held text that was cleaned."""
        outcome = self.outcome
        if text is not None:
            self._held_text = [text]
            self._held_logprobs = []  # they belong to the tokens as they were said
        return self._end(outcome, now)

    def fail(self, message: str, code: str, now: int) -> Ending:
        """The turn broke off: one terminal event says why."""
        return self._end(Outcome("failed", None, code, message), now)

    def cancel(self, now: int) -> Ending:
        """The client has left, or asked to stop: what there is so far is kept, as cancelled."""
        return self._end(Outcome("failed"), now, status="cancelled")

    # ── deltas ─────────────────────────────────────────────────────────────────────────────────────

    def _take(self, deltas: Iterable[Delta]) -> None:
        if self._waiting:
            deltas, self._waiting = [*self._waiting, *deltas], []
            if self.pending is not None:
                self._waiting = deltas  # the verdict is still missing
                return
        coming = iter(deltas)
        delta: Delta
        try:
            for delta in coming:
                kind = type(delta)
                if kind is Text:
                    self._text(delta)  # type: ignore[arg-type]  # `kind is Text` is the cheap isinstance
                elif kind is CallArguments:
                    self._calls.append(delta)  # type: ignore[arg-type]
                else:
                    self._other(delta)
        except Paused:
            # A delta makes room before it does anything else, so it can simply be taken again.
            self._waiting = [delta, *coming]

    def _text(self, delta: Text) -> None:
        if self._held:
            self._held_text.append(delta.text)
            self._held_logprobs += delta.logprobs or ()
            return
        speech = self._speech
        if speech is not None and speech.kind == "message" and speech.part is not None:
            part = speech.part
            if part.kind == "output_text":
                part.append(delta.text, delta.logprobs)
                return
        self._message().speak("output_text", delta.text, delta.logprobs)

    def _other(self, delta: Delta) -> None:
        match delta:
            case Reasoning(text, kind):
                part_kind = self._reasoning_kind if kind == "text" else "summary_text"
                self._open_speech("reasoning").speak(part_kind, text)
            case CallOpened():
                self._open_call(delta)
            case Used(usage):
                self._usage = usage
            case Finished(reason):
                self._finish = reason
            case Refusal(text):
                self._refused = True
                self._message().speak("refusal", text)
            case Annotation(annotation):
                self._annotate(annotation)
            case VendorExtra():
                self._vendor.take(delta, self._calls.call_id(delta.slot) if delta.slot is not None else None)
            case HostedCall(item):
                self._hosted(item)
            case Failed():
                self._failure = self._failure or delta
            case Markup(what):
                self.note(notice("bridge.response.markup_parsed", "output", what))
            case _:
                raise AssertionError(f"no room for {delta!r}")

    def _message(self) -> Speech:
        return self._open_speech("message")

    def _open_speech(self, kind: Literal["message", "reasoning"]) -> Speech:
        speech = self._speech
        if speech is not None and speech.kind == kind:
            return speech
        self._make_room()
        id, index = self._output.place("msg" if kind == "message" else "rs")
        self._speech = speech = Speech(kind, id, index, self._emitter)
        speech.open()
        return speech

    def _annotate(self, annotation: JsonObject) -> None:
        part = self._speech.part if self._speech is not None and self._speech.kind == "message" else None
        if part is not None and part.kind == "output_text":
            part.annotate(annotation)
        else:
            self._annotations.append(annotation)

    def _open_call(self, delta: CallOpened) -> None:
        self._make_room()
        self._failure = self._failure or self._calls.open(delta)

    def _hosted(self, item: JsonObject) -> None:
        self._make_room()
        if item["type"] == "web_search_call":
            steps = tuple(f"response.web_search_call.{step}" for step in ("in_progress", "searching", "completed"))
            self._output.add_whole("ws", item, opened=item, steps=steps)
        else:
            self._output.add_whole("item", item, opened=item)

    def _make_room(self) -> None:
        """Something new opens: what spoke is done, and so is every call that is whole."""
        self._close_speech("completed")
        self._calls.close_whole()

    # ── closing ────────────────────────────────────────────────────────────────────────────────────

    def _close_speech(self, status: str) -> None:
        speech, self._speech = self._speech, None
        if speech is not None:
            if self._annotations:
                self._attach_annotations(speech)
            sealer = self._vendor.seal_reasoning if speech.kind == "reasoning" else None
            self._output.put(speech.output_index, speech.close(status, sealer))

    def _end(self, outcome: Outcome, now: int, *, status: str | None = None) -> Ending:
        if self._phase == "idle":
            self.start_silently()
        self._calls.waive()
        self._take(())
        stopped = outcome.status != "completed"
        failed = outcome.status == "failed"
        self._calls.close_all(stopped=stopped, failed=failed, spoken_since=self._speech is not None)
        self._flush_text(outcome)
        self._close_speech("incomplete" if stopped else "completed")
        for annotation in self._annotations:
            words = "an annotation came without a text to belong to"
            self.note(notice("bridge.item.ignored", "output", words, annotation=annotation))
        self._vendor.flush(self._output)
        self._move("end")
        return self._terminal(outcome, now, status or outcome.status)

    def start_silently(self) -> None:
        """A turn that ends before it began still has a whole life: its events start at `created`."""
        events = self.start()
        self._emitter.events[:0] = events

    def _flush_text(self, outcome: Outcome) -> None:
        if self._held and self._held_text:
            self._held = False
            self._message().speak("output_text", "".join(self._held_text), self._held_logprobs)
        if not self._calls and not self._has_message() and outcome.status != "failed":
            self._message().begin("output_text")

    def _attach_annotations(self, speech: Speech) -> None:
        """Citations that came before their text."""
        part = speech.part if speech.kind == "message" else None
        if part is not None and part.kind == "output_text":
            for annotation in self._annotations:
                part.annotate(annotation)
            self._annotations = []

    def _has_message(self) -> bool:
        if self._speech is not None and self._speech.kind == "message":
            return True
        return any(item["type"] == "message" for item in self._output.items)

    def _terminal(self, outcome: Outcome, now: int, status: str) -> Ending:
        failed = status == "failed"
        response = self._frame.response(
            status=status,
            output=self._output.items,
            usage=add_usage(self._usage_before, self._usage),
            completed_at=now if status == "completed" else None,
            error={"code": outcome.error_code, "message": outcome.error_message} if failed else None,
            incomplete_reason=outcome.incomplete_reason,
            diagnostics=(*self._plan_diagnostics, *self._reply_notices),
        )
        # There is no `response.cancelled` event: a stream that is cancelled ends as failed.
        event = "failed" if status == "cancelled" else status
        self._emitter.emit(f"response.{event}", response=response)
        return Ending(response, self._emitter.take())

    # ── small things ───────────────────────────────────────────────────────────────────────────────

    def _move(self, action: str) -> None:
        following = TRANSITIONS.get((self._phase, action))
        if following is None:
            raise RuntimeError(f"the response is {self._phase}: it cannot {action}")
        self._phase = following
