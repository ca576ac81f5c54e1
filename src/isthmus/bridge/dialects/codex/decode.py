"""Messages of a Codex turn → deltas, one HTTP leg at a time.

In: notifications and `item/tool/call` requests of one turn, in order of arrival. Out: deltas, and a state:
`open` (more to come), `paused` (the client's tools must answer), `ended` (the turn is over). The one thing
worth knowing: a turn may hold several model responses. A leg pauses when the current response is complete
and Codex waits for one of its calls; some binaries ask for parallel calls one after the other, each only
when the one before is answered, so the raw items and not the requests say which calls there are. Binaries
before 0.147 do not mark the end of a response; there a leg pauses at each request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    Reasoning,
    Text,
    Usage,
    Used,
)
from isthmus.bridge.dialects.codex.dynamic_tools import arguments_text
from isthmus.bridge.dialects.codex.errors import map_turn_error, read_incomplete
from isthmus.bridge.dialects.codex.older_decode import translate_older

LegState = Literal["open", "paused", "ended"]
Params = Mapping[str, Any]


class LegDecoder:
    """One leg's state machine. `names` maps Codex tool names to the client's; feed it and watch `state`."""

    def __init__(self, names: Mapping[str, str], *, marks_responses: bool = True) -> None:
        self.state: LegState = "open"
        self.calls: list[str] = []
        """Ids of the calls that this leg opened and that the client must answer, in order."""
        self.abandoned = False
        """The leg failed while Codex goes on by itself: the turn must be interrupted."""
        self._names = names
        self._marks_responses = marks_responses
        self._between_responses = True
        self._slots: dict[str, int] = {}
        self._requested: set[str] = set()
        self._settled: set[str] = set()
        self._early: dict[str, Params] = {}
        self._item: str | None = None
        self._item_text = ""
        self._spoke = False
        self._dirty = False
        self._usage: Usage | None = None
        self._error: Params | None = None
        self._handlers: dict[str, Callable[[Params], list[Delta]]] = {
            "item/agentMessage/delta": self._on_text,
            "item/reasoning/summaryPartAdded": self._on_summary_part,
            "item/reasoning/summaryTextDelta": self._on_summary,
            "item/reasoning/textDelta": self._on_reasoning,
            "item/completed": self._on_item_completed,
            "rawResponseItem/completed": self._on_raw_item,
            "rawResponse/completed": self._on_response_completed,
            "item/tool/call": self._on_call,
            "error": self._on_error,
            "turn/completed": self._on_turn_completed,
            "isthmus/usage": self._on_older_usage,
        }
        if not marks_responses:
            self._handlers["thread/tokenUsage/updated"] = self._on_token_usage

    @property
    def over(self) -> bool:
        return self.state != "open"

    def feed(self, method: str, params: Params) -> list[Delta]:
        """The deltas of one message; none once the leg is over."""
        deltas: list[Delta] = []
        for name, fields in translate_older(method, params):
            handler = self._handlers.get(name)
            if handler is not None and self.state == "open":
                deltas += handler(fields)
        return deltas

    def _on_text(self, params: Params) -> list[Delta]:
        self._response_runs()
        deltas = self._begin_message(params.get("itemId"))
        text = str(params.get("delta") or "")
        self._item_text += text
        return [*deltas, *self._say(text)]

    def _on_item_completed(self, params: Params) -> list[Delta]:
        """The whole message again: only what was never streamed is new."""
        item = params.get("item") or {}
        if item.get("type") != "agentMessage":
            return []
        deltas = self._begin_message(item.get("id"))
        text = str(item.get("text") or "")
        rest = text[len(self._item_text) :] if text.startswith(self._item_text) else ""
        self._item, self._item_text = None, ""
        return [*deltas, *self._say(rest)]

    def _begin_message(self, item_id: Any) -> list[Delta]:
        """One answer may come as several messages; a blank line keeps them apart."""
        key = str(item_id or "")
        if self._item == key:
            return []
        self._item, self._item_text = key, ""
        return [Text("\n\n")] if self._spoke else []

    def _say(self, text: str) -> list[Delta]:
        if not text:
            return []
        self._spoke = self._dirty = True
        return [Text(text)]

    def _on_summary(self, params: Params) -> list[Delta]:
        return self._think(str(params.get("delta") or ""), "summary")

    def _on_summary_part(self, params: Params) -> list[Delta]:
        return self._think("\n\n", "summary") if params.get("summaryIndex") else []

    def _on_reasoning(self, params: Params) -> list[Delta]:
        return self._think(str(params.get("delta") or ""), "text")

    def _think(self, text: str, kind: Literal["text", "summary"]) -> list[Delta]:
        self._response_runs()
        return [Reasoning(text, kind)] if text else []

    def _on_raw_item(self, params: Params) -> list[Delta]:
        item = params.get("item") or {}
        match item.get("type"):
            case "function_call":
                self._response_runs()
                return self._list_call(item)
            case "function_call_output":
                # Codex answered by itself (bad arguments, unknown tool): nobody will ask us.
                self._settled.add(str(item.get("call_id")))
            case "message" if item.get("role") != "assistant":
                pass
            case _:
                self._response_runs()
        return []

    def _list_call(self, item: Params) -> list[Delta]:
        call_id, name, text = str(item.get("call_id")), str(item.get("name")), str(item.get("arguments") or "")
        if item.get("namespace") or name not in self._names:
            return []
        if call_id in self._slots:
            return [CallArguments(self._slots[call_id], text, replace=True)]
        if not _is_json(text):
            return []
        if self._early.pop(call_id, None) is not None:
            self._requested.add(call_id)
        return self._open(call_id, name, text)

    def _on_call(self, params: Params) -> list[Delta]:
        call_id = str(params.get("callId") or params.get("call_id") or "")
        if call_id not in self._slots and not self._between_responses:
            self._early[call_id] = params
            return []
        self._requested.add(call_id)
        deltas: list[Delta] = []
        if call_id not in self._slots:
            deltas = self._open(call_id, str(params.get("tool")), arguments_text(params.get("arguments")))
        return [*deltas, *self._pause_if_waiting()]

    def _open(self, call_id: str, name: str, arguments: str) -> list[Delta]:
        self._dirty = True
        slot = self._slots[call_id] = len(self._slots)
        self.calls.append(call_id)
        return [CallOpened(slot, call_id, self._names.get(name, name)), CallArguments(slot, arguments)]

    def _on_response_completed(self, params: Params) -> list[Delta]:
        self._between_responses, self._dirty = True, False
        deltas = self._spend(params.get("usage"))
        for call_id, call in self._early.items():
            self._requested.add(call_id)
            deltas += self._open(call_id, str(call.get("tool")), arguments_text(call.get("arguments")))
        self._early = {}
        return [*deltas, *self._pause_if_waiting()]

    def _on_token_usage(self, params: Params) -> list[Delta]:
        return self._spend((params.get("tokenUsage") or {}).get("last"))

    def _spend(self, usage: Any) -> list[Delta]:
        """A leg with several responses (Codex answered a call itself) costs their sum."""
        if not isinstance(usage, Mapping):
            return []
        now = _read_usage(usage)
        self._usage = now if self._usage is None else _add(self._usage, now)
        return [Used(self._usage)]

    def _on_older_usage(self, params: Params) -> list[Delta]:
        return [Used(_read_usage(params))]

    def _pause_if_waiting(self) -> list[Delta]:
        open_calls = [call_id for call_id in self.calls if call_id not in self._settled]
        if not self._between_responses or not any(call_id in self._requested for call_id in open_calls):
            return []
        self.calls = open_calls
        self.state = "paused"
        return [Finished("tool_calls")]

    def _on_error(self, params: Params) -> list[Delta]:
        """A retry that Codex announces is not final, unless its first attempt has already been passed on."""
        error = params.get("error") or {}
        if not params.get("willRetry"):
            self._error = error
            return []
        if not self._dirty:
            return []
        self.abandoned = True
        return self._fail(error)

    def _on_turn_completed(self, params: Params) -> list[Delta]:
        turn = params.get("turn") or {}
        error = turn.get("error") or self._error
        status = turn.get("status")
        if status == "interrupted":
            return self._fail({"message": "the codex turn was interrupted"})
        if status != "failed" and error is None:
            self.state = "ended"
            return [Finished("stop")]
        cut = read_incomplete(error)
        if cut is None:
            return self._fail(error)
        self.state = "ended"
        return [Finished(cut)]

    def _fail(self, error: Params | None) -> list[Delta]:
        self.state = "ended"
        failure = map_turn_error(error)
        return [Failed(failure.message, failure.code)]

    def _response_runs(self) -> None:
        self._between_responses = not self._marks_responses


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _read_usage(usage: Params) -> Usage:
    read = {name: int(usage.get(name) or 0) for name in ("inputTokens", "outputTokens", "totalTokens")}
    return Usage(
        input_tokens=read["inputTokens"],
        output_tokens=read["outputTokens"],
        total_tokens=read["totalTokens"] or read["inputTokens"] + read["outputTokens"],
        cached_tokens=int(usage.get("cachedInputTokens") or 0),
        reasoning_tokens=int(usage.get("reasoningOutputTokens") or 0),
        cache_write_tokens=int(usage.get("cacheWriteInputTokens") or 0),
    )


def _add(before: Usage, now: Usage) -> Usage:
    fields = [name for name in now.__struct_fields__ if name != "estimated"]
    return Usage(**{name: getattr(before, name) + getattr(now, name) for name in fields})
