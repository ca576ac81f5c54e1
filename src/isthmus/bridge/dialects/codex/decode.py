"""Messages of a Codex turn → deltas, one HTTP leg at a time.

In: notifications and `item/tool/call` requests of one turn, as they arrive. Out: deltas, and a state: `open` (more to
come), `paused` (the client's tools must answer), `ended` (the turn is over). The one thing worth knowing: a turn may
hold several model responses. A leg pauses when the current one is complete and Codex waits for one of its calls; some
binaries ask for parallel calls one after the other, so the raw items and not the requests say which calls there are.
Binaries before 0.147 do not mark the end of a response; there a leg pauses at each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from isthmus.bridge import deltas
from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.codex.dynamic_tools import build_tool_call_delta_from_dynamic_request
from isthmus.bridge.dialects.codex.errors import map_turn_error, read_incomplete
from isthmus.bridge.dialects.reports import read_phase, seal
from isthmus.protocol.items import Phase
from isthmus.protocol.json import JsonObject, is_json

Params = Mapping[str, Any]

_USAGE: Final = (
    *("inputTokens", "outputTokens", "totalTokens"),
    *("cachedInputTokens", "reasoningOutputTokens", "cacheWriteInputTokens"),
)
_OLDER: Final = {
    "agent_message_delta": "item/agentMessage/delta",
    "agent_reasoning_delta": "item/reasoning/summaryTextDelta",
    "agent_reasoning_raw_content_delta": "item/reasoning/textDelta",
    "raw_response_item": "rawResponseItem/completed",
}
"""Events of the older methods (`codex/event/…`) that differ from today's notifications in their name only."""


class LegDecoder:
    """One leg's state machine. `names` maps Codex tool names to the client's; feed it and watch `state`."""

    def __init__(self, names: Mapping[str, str], *, marks_responses: bool = True) -> None:
        self.state: Literal["open", "paused", "ended"] = "open"
        self.calls: list[str] = []  # ids of the calls that this leg opened and that the client must answer, in order
        self.abandoned = False  # the leg failed while Codex goes on by itself: the turn must be interrupted
        self._names = names
        self._marks_responses = marks_responses
        self._between_responses = True
        self._slots: dict[str, int] = {}
        self._requested: set[str] = set()
        self._settled: set[str] = set()
        self._early: dict[str, Params] = {}
        self._item: tuple[str, str] | None = None  # the message or thought that speaks, by its kind and id
        self._pieces: list[str] = []  # what was streamed of the message that speaks
        self._phases: dict[str, Phase] = {}
        self._dirty = False
        self._usage: deltas.Usage | None = None
        self._error: Params | None = None

    def feed(self, method: str, params: Params) -> list[Delta]:
        """The deltas of one message; none once the leg is over."""
        out: list[Delta] = []
        for name, fields in translate_older(method, params):
            if self.state == "open":
                out += self._read(name, fields)
        return out

    def _read(self, method: str, params: Params) -> list[Delta]:
        item = params.get("item") or {}
        match method:
            case "item/agentMessage/delta":
                self._between_responses = not self._marks_responses
                return [*self._begin("message", params.get("itemId")), *self._say(str(params.get("delta") or ""))]
            case "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta":
                self._between_responses = not self._marks_responses
                if text := str(params.get("delta") or ""):
                    kind: Literal["text", "summary"] = "text" if method == "item/reasoning/textDelta" else "summary"
                    return [*self._begin("reasoning", params.get("itemId")), deltas.Reasoning(text, kind)]
            case "item/reasoning/summaryPartAdded" if params.get("summaryIndex"):
                return [*self._begin("reasoning", params.get("itemId")), deltas.PartBegan("summary_text")]
            case "item/started":
                self._note_phase(item)
            case "item/completed" if item.get("type") == "agentMessage":
                return self._end_message(item)
            case "rawResponseItem/completed":
                return self._read_raw(item)
            case "rawResponse/completed":
                return self._end_response(params)
            case "item/tool/call":
                return self._request(params)
            case "thread/tokenUsage/updated" if not self._marks_responses:
                return self._spend((params.get("tokenUsage") or {}).get("last"))
            case "isthmus/usage":
                return [deltas.Used(_read_usage(params))]
            case "error":
                return self._take_error(params)
            case "turn/completed":
                return self._end_turn(params.get("turn") or {})
        return []

    def _note_phase(self, item: Params) -> None:
        """Said before the first words of a message, or with the whole of it."""
        if (phase := read_phase(item.get("phase"))) is not None:
            self._phases[str(item.get("id") or "")] = phase

    def _say(self, text: str) -> list[Delta]:
        if not text:
            return []
        self._dirty = True
        self._pieces.append(text)
        return [deltas.Text(text)]

    def _end_message(self, item: Params) -> list[Delta]:
        """The whole message again: only what was never streamed is new."""
        self._note_phase(item)
        out = self._begin("message", item.get("id"))
        text, said = str(item.get("text") or ""), "".join(self._pieces)
        out += self._say(text[len(said) :] if text.startswith(said) else "")
        self._item = None
        return [*out, deltas.ItemEnded(phase=self._phases.get(str(item.get("id") or "")))]

    def _begin(self, kind: Literal["message", "reasoning"], item_id: Any) -> list[Delta]:
        """One answer may come as several messages: each is an item of its own."""
        key = str(item_id or "")
        if self._item == (kind, key):
            return []
        self._item, self._pieces = (kind, key), []
        return [deltas.ItemBegan(kind, self._phases.get(key) if kind == "message" else None, key)]

    def _read_raw(self, item: Params) -> list[Delta]:
        kind = item.get("type")
        if kind == "function_call_output":
            # Codex answered by itself (bad arguments, unknown tool): nobody will ask us.
            self._settled.add(str(item.get("call_id")))
        elif kind != "message" or item.get("role") == "assistant":
            self._between_responses = not self._marks_responses
        if kind == "function_call":
            return self._list_call(item)
        if kind != "reasoning" or not item.get("encrypted_content"):
            return []
        out = self._begin("reasoning", item.get("id"))
        self._item = None
        return [*out, seal(item), deltas.ItemEnded()]

    def _list_call(self, item: Params) -> list[Delta]:
        call_id, name, text = str(item.get("call_id")), str(item.get("name")), str(item.get("arguments") or "")
        if item.get("namespace") or name not in self._names:
            return []
        if call_id in self._slots:
            return [deltas.CallArguments(self._slots[call_id], text, replace=True)]
        if not is_json(text):
            return []
        if self._early.pop(call_id, None) is not None:
            self._requested.add(call_id)
        return self._open(call_id, self._names[name], text)

    def _request(self, params: Params) -> list[Delta]:
        call_id = str(params.get("callId") or params.get("call_id") or "")
        if call_id not in self._slots and not self._between_responses:
            self._early[call_id] = params
            return []
        return [*self._open_requested(call_id, params), *self._pause_if_waiting()]

    def _open_requested(self, call_id: str, params: Params) -> list[Delta]:
        self._requested.add(call_id)
        if call_id in self._slots:
            return []
        (call,) = build_tool_call_delta_from_dynamic_request(params, self._names)["tool_calls"]
        return self._open(call["id"], call["function"]["name"], call["function"]["arguments"])

    def _open(self, call_id: str, name: str, arguments: str) -> list[Delta]:
        self._dirty = True
        self._item = None
        slot = self._slots[call_id] = len(self._slots)
        self.calls.append(call_id)
        return [deltas.CallOpened(slot, call_id, name), deltas.CallArguments(slot, arguments, whole=True)]

    def _pause_if_waiting(self) -> list[Delta]:
        open_calls = [call_id for call_id in self.calls if call_id not in self._settled]
        if not self._between_responses or not any(call_id in self._requested for call_id in open_calls):
            return []
        self.calls = open_calls
        self.state = "paused"
        return [deltas.Finished("tool_calls")]

    def _end_response(self, params: Params) -> list[Delta]:
        self._between_responses, self._dirty = True, False
        out = self._spend(params.get("usage"))
        early, self._early = self._early, {}
        for call_id, call in early.items():
            out += self._open_requested(call_id, call)
        return [*out, *self._pause_if_waiting()]

    def _spend(self, usage: Any) -> list[Delta]:
        """A leg with several responses (Codex answered a call itself) costs their sum."""
        if not isinstance(usage, Mapping):
            return []
        now = _read_usage(usage)
        self._usage = now if self._usage is None else self._usage + now
        return [deltas.Used(self._usage)]

    def _take_error(self, params: Params) -> list[Delta]:
        """A retry that Codex announces is not final, unless its first attempt has already been passed on."""
        error = params.get("error") or {}
        if not params.get("willRetry"):
            self._error = error
        elif self._dirty:
            self.abandoned = True
            return self._fail(error)
        return []

    def _end_turn(self, turn: Params) -> list[Delta]:
        error, status = turn.get("error") or self._error, turn.get("status")
        if status == "interrupted":
            return self._fail({"message": "the codex turn was interrupted"})
        reason = "stop" if status != "failed" and error is None else read_incomplete(error)
        if reason is None:
            return self._fail(error)
        self.state = "ended"
        return [deltas.Finished(reason)]

    def _fail(self, error: Params | None) -> list[Delta]:
        self.state = "ended"
        failure = map_turn_error(error)
        return [deltas.Failed(failure.message, failure.code)]


def _read_usage(usage: Params) -> deltas.Usage:
    given, made, total, cached, thought, written = (int(usage.get(name) or 0) for name in _USAGE)
    return deltas.Usage(given, made, total or given + made, cached, thought, written)


def translate_older(method: str, params: Params) -> list[tuple[str, Params]]:
    """Newer messages pass unchanged; an older event becomes none, one or two of them, so that there is one decoder.
    The older stream marks no end of a model response, so a dynamic call ends its leg as soon as it arrives."""
    event, kind = params, method
    if method != "dynamic_tool_call_request":
        if not method.startswith("codex/event"):
            return [(method, params)]
        told = params.get("msg")
        event = told if isinstance(told, Mapping) else {}
        kind = str(event.get("type"))
    match kind:
        case "agent_reasoning_section_break":
            return [("item/reasoning/summaryPartAdded", {"summaryIndex": 1})]
        case "agent_message":
            return [("item/completed", {"item": {"type": "agentMessage", "id": "", "text": event.get("message")}})]
        case "token_count":
            last = (event.get("info") or {}).get("last_token_usage")
            if not isinstance(last, Mapping):
                return []
            return [("isthmus/usage", {_camel(name): count for name, count in last.items()})]
        case "dynamic_tool_call_request":
            return [("rawResponse/completed", {}), ("item/tool/call", event)]
        case "stream_error":
            return [("error", {"error": _error(event), "willRetry": True})]
        case "error" | "turn_aborted" | "task_complete" | "turn_complete":
            status = {"error": "failed", "turn_aborted": "interrupted"}.get(kind, "completed")
            error = _error(event) if kind == "error" else None
            return [("turn/completed", {"turn": {"status": status, "error": error}})]
        case _:
            return [(_OLDER[kind], event)] if kind in _OLDER else []


def _error(event: Params) -> JsonObject:
    info = event.get("codex_error_info")
    return {"message": event.get("message"), "codexErrorInfo": _camel(info) if isinstance(info, str) else info}


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
