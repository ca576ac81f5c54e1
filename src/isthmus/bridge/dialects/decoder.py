"""What the decoders of both HTTP dialects share: JSON in, deltas out, and nothing behind the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

import msgspec

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta, Failed
from isthmus.bridge.dialects.chat.failures import excerpt
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_decode_json: Final = msgspec.json.Decoder().decode
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NO_SECRETS: Final = Scrubber()


class JsonDecoder(ABC):
    """Decodes one upstream answer: either chunks one by one and `end`, or `reply` once."""

    _unit: ClassVar[str]

    def __init__(self, rules: ReplyRules, scrubber: Scrubber | None = None) -> None:
        """`scrubber` is for the words of errors and of MCP servers; what the model says is not looked at."""
        self._rules = rules
        self._scrubber = scrubber or _NO_SECRETS
        self._scrub = self._scrubber.text
        self.done = False  # whether nothing more is to come

    def chunk(self, data: bytes) -> list[Delta]:
        """The deltas of one SSE data line; none behind the end."""
        if self.done:
            return []
        try:
            event = _decode_json(data)
        except _NOT_JSON:
            if data.strip() == b"[DONE]":
                self.done = True
                return []
            return [Failed(f"the upstream sent {self._unit} that is not JSON: {excerpt(data, self._scrub)}")]
        if not isinstance(event, dict):
            return [Failed(f"the upstream sent {self._unit} that is not an object: {excerpt(data, self._scrub)}")]
        out: list[Delta] = []
        self._read(event, out)
        return out

    def reply(self, data: bytes) -> list[Delta]:
        try:
            reply = _decode_json(data)
        except _NOT_JSON:
            return [Failed(f"the upstream's reply is not JSON: {excerpt(data, self._scrub)}")]
        out: list[Delta] = []
        self._read_whole(reply if isinstance(reply, dict) else {}, out)
        return out

    def end(self) -> list[Delta]:
        """The stream is over: what was held back comes out."""
        return []

    @abstractmethod
    def _read(self, event: JsonObject, out: list[Delta]) -> None: ...

    @abstractmethod
    def _read_whole(self, reply: JsonObject, out: list[Delta]) -> None: ...
