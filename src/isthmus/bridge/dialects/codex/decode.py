"""Messages of a Codex turn → deltas, one HTTP leg at a time.

In: notifications and `item/tool/call` requests of one turn, in order of arrival. Out: deltas, and a state:
`open` (more to come), `paused` (the client's tools must answer), `ended` (the turn is over). The one thing
worth knowing: a turn may hold several model responses. A leg pauses when the current response is complete
and Codex waits for one of its calls; some binaries ask for parallel calls one after the other, each only
when the one before is answered, so the raw items and not the requests say which calls there are. Binaries
before 0.147 do not mark the end of a response; there a leg pauses at each request. Messages and thoughts keep their
bounds and phases; the raw items bring what the notifications leave out (encrypted reasoning).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    ItemBegan,
    ItemEnded,
    PartBegan,
    Reasoning,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.dialects.codex.dynamic_tools import build_tool_call_delta_from_dynamic_request
from isthmus.bridge.dialects.codex.errors import map_turn_error, read_incomplete
from isthmus.bridge.dialects.codex.older_decode import translate_older
from isthmus.bridge.json_text import is_json
from isthmus.protocol.items import Phase

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
        """The message or thought that speaks, by its id."""
        self._kind: Literal["message", "reasoning"] = "message"
        self._pieces: list[str] = []
        """What was streamed of the message that speaks."""
        self._phases: dict[str, Phase] = {}
        self._dirty = False
        self._usage: Usage | None = None
        self._error: Params | None = None
        self._handlers: dict[str, Callable[[Params], list[Delta]]] = {
            "item/started": self._on_item_started,
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

    def _on_item_started(self, params: Params) -> list[Delta]:
        """Says the phase of a message before its first words."""
        item = params.get("item") or {}
        if item.get("phase") in ("commentary", "final_answer"):
            self._phases[str(item.get("id") or "")] = item["phase"]
        return []

    def _on_text(self, params: Params) -> list[Delta]:
        self._response_runs()
        deltas = self._begin("message", params.get("itemId"))
        return [*deltas, *self._say(str(params.get("delta") or ""))]

    def _on_item_completed(self, params: Params) -> list[Delta]:
        """The whole message again: only what was never streamed is new."""
        item = params.get("item") or {}
        if item.get("type") != "agentMessage":
            return []
        self._on_item_started(params)
        deltas = self._begin("message", item.get("id"))
        text, said = str(item.get("text") or ""), "".join(self._pieces)
        deltas += self._say(text[len(said) :] if text.startswith(said) else "")
        self._item = None
        return [*deltas, ItemEnded(phase=self._phases.get(str(item.get("id") or "")))]

    def _begin(self, kind: Literal["message", "reasoning"], item_id: Any) -> list[Delta]:
        """One answer may come as several messages: each is an item of its own."""
        key = str(item_id or "")
        if self._item == key and self._kind == kind:
            return []
        self._item, self._kind, self._pieces = key, kind, []
        return [ItemBegan(kind, self._phases.get(key) if kind == "message" else None, key)]

    def _say(self, text: str) -> list[Delta]:
        if not text:
            return []
        self._dirty = True
        self._pieces.append(text)
        return [Text(text)]

    def _on_summary(self, params: Params) -> list[Delta]:
        return self._think(params, "summary")

    def _on_summary_part(self, params: Params) -> list[Delta]:
        if not params.get("summaryIndex"):
            return []
        return [*self._begin("reasoning", params.get("itemId")), PartBegan("summary_text")]

    def _on_reasoning(self, params: Params) -> list[Delta]:
        return self._think(params, "text")

    def _think(self, params: Params, kind: Literal["text", "summary"]) -> list[Delta]:
        self._response_runs()
        text = str(params.get("delta") or "")
        return [*self._begin("reasoning", params.get("itemId")), Reasoning(text, kind)] if text else []

    def _on_raw_reasoning(self, item: Params) -> list[Delta]:
        """Codex takes encrypted reasoning back when a thread is rebuilt: it travels with the item it belongs to."""
        self._response_runs()
        if not item.get("encrypted_content"):
            return []
        kept = {name: item[name] for name in ("type", "id", "summary", "encrypted_content") if name in item}
        deltas = self._begin("reasoning", item.get("id"))
        self._item = None
        return [*deltas, VendorExtra("encrypted_content", [{"summary": [], **kept}]), ItemEnded()]

    def _on_raw_item(self, params: Params) -> list[Delta]:
        item = params.get("item") or {}
        match item.get("type"):
            case "function_call":
                self._response_runs()
                return self._list_call(item)
            case "function_call_output":
                # Codex answered by itself (bad arguments, unknown tool): nobody will ask us.
                self._settled.add(str(item.get("call_id")))
            case "reasoning":
                return self._on_raw_reasoning(item)
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
        if not is_json(text):
            return []
        if self._early.pop(call_id, None) is not None:
            self._requested.add(call_id)
        return self._open(call_id, self._names[name], text)

    def _on_call(self, params: Params) -> list[Delta]:
        call_id = str(params.get("callId") or params.get("call_id") or "")
        if call_id not in self._slots and not self._between_responses:
            self._early[call_id] = params
            return []
        self._requested.add(call_id)
        deltas: list[Delta] = []
        if call_id not in self._slots:
            deltas = self._open_requested(params)
        return [*deltas, *self._pause_if_waiting()]

    def _open_requested(self, params: Params) -> list[Delta]:
        (call,) = build_tool_call_delta_from_dynamic_request(params, self._names)["tool_calls"]
        return self._open(call["id"], call["function"]["name"], call["function"]["arguments"])

    def _open(self, call_id: str, name: str, arguments: str) -> list[Delta]:
        self._dirty = True
        self._item = None
        slot = self._slots[call_id] = len(self._slots)
        self.calls.append(call_id)
        return [CallOpened(slot, call_id, name), CallArguments(slot, arguments, whole=True)]

    def _on_response_completed(self, params: Params) -> list[Delta]:
        self._between_responses, self._dirty = True, False
        deltas = self._spend(params.get("usage"))
        for call_id, call in self._early.items():
            self._requested.add(call_id)
            deltas += self._open_requested(call)
        self._early = {}
        return [*deltas, *self._pause_if_waiting()]

    def _on_token_usage(self, params: Params) -> list[Delta]:
        return self._spend((params.get("tokenUsage") or {}).get("last"))

    def _spend(self, usage: Any) -> list[Delta]:
        """A leg with several responses (Codex answered a call itself) costs their sum."""
        if not isinstance(usage, Mapping):
            return []
        now = _read_usage(usage)
        self._usage = now if self._usage is None else self._usage + now
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
