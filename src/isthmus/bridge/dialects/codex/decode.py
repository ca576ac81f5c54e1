"""Messages of a Codex turn → deltas, one HTTP leg at a time.

In: notifications and `item/tool/call` requests of one turn, as they arrive. Out: deltas, and a state: `open` (more to
come), `paused` (the client's tools must answer), `ended` (the turn is over), `failed` (it is, badly), `abandoned` (it
failed for us, and Codex goes on by itself). The one thing worth knowing: a turn may hold several model responses. A leg
pauses when the current one is complete and Codex waits for one of its calls; some binaries ask for parallel calls one
after the other, so the raw items and not the requests say which calls there are.
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
from isthmus.protocol.json import is_json

Params = Mapping[str, Any]

_USAGE: Final = (
    *("inputTokens", "outputTokens", "totalTokens"),
    *("cachedInputTokens", "reasoningOutputTokens", "cacheWriteInputTokens"),
)
LegState = Literal["open", "paused", "ended", "failed", "abandoned"]


class LegDecoder:
    """One leg's state machine. `names` maps Codex tool names to the client's; feed it and watch `state`."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.state: LegState = "open"
        self.calls: list[str] = []  # ids of the calls that this leg opened and that the client must answer, in order
        self._names = names
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
        if self.state != "open":
            return []
        item = params.get("item") or {}
        match method:
            case "item/agentMessage/delta":
                self._between_responses = False
                return [*self._begin("message", params.get("itemId")), *self._say(str(params.get("delta") or ""))]
            case "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta":
                self._between_responses = False
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
            case "dynamic_tool_call_request":  # 0.92 marked no end of a response: the call itself is its end
                return [*self._end_response({}), *self._request(params)]
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
            self._between_responses = False
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
            return self._fail(error, "abandoned")
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

    def _fail(self, error: Params | None, state: LegState = "failed") -> list[Delta]:
        self.state = state
        failure = map_turn_error(error)
        return [deltas.Failed(failure.message, failure.code)]


def _read_usage(usage: Params) -> deltas.Usage:
    given, made, total, cached, thought, written = (int(usage.get(name) or 0) for name in _USAGE)
    return deltas.Usage(given, made, total or given + made, cached, thought, written)
