"""What the decoders of both HTTP dialects share: JSON in, deltas out, and nothing behind the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final

import msgspec

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta, Failed
from isthmus.bridge.dialects.alike import UNREADABLE, Alike, Say
from isthmus.bridge.dialects.chat.failures import excerpt
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_decode_json: Final = msgspec.json.Decoder().decode
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
        self._alike = Alike()
        self._said: tuple[JsonObject, str, Say] | None = None
        """Where the text of a chunk stands that says nothing else, and how others in its place are told."""

    def chunks(self, given: Iterable[bytes]) -> list[Delta]:
        """The deltas of the data of these events; none behind the end."""
        out: list[Delta] = []
        alike = self._alike
        run: list[bytes] = []
        for data in given:
            if data.startswith(alike.head) and data.endswith(alike.tail):
                run.append(data)
                continue
            if run:
                self._go_on(run, out)
                run = []
            self._chunk(data, out)
        if run:
            self._go_on(run, out)
        return out

    def chunk(self, data: bytes) -> list[Delta]:
        return self.chunks((data,))

    def _go_on(self, run: list[bytes], out: list[Delta]) -> None:
        """The stream goes on as it did: only the words of these chunks are read."""
        if not self._alike.tell(run, out):
            for data in run:
                self._chunk(data, out)

    def _chunk(self, data: bytes, out: list[Delta]) -> None:
        if self.done:
            return
        self._alike.forget()
        try:
            event = _decode_json(data)
        except UNREADABLE:
            if data.strip() == b"[DONE]":
                self.done = True
            else:
                out.append(Failed(f"the upstream sent {self._unit} that is not JSON: {excerpt(data, self._scrub)}"))
            return
        if type(event) is not dict:
            out.append(Failed(f"the upstream sent {self._unit} that is not an object: {excerpt(data, self._scrub)}"))
            return
        told: list[Delta] = []
        self._said = None
        self._read(event, told)
        out += told
        self._learn(data, event, told)

    def _learn(self, data: bytes, event: JsonObject, told: list[Delta]) -> None:
        if self._said is not None and len(told) == 1:
            self._alike.learn(data, event, *self._said)

    def reply(self, data: bytes) -> list[Delta]:
        try:
            reply = _decode_json(data)
        except UNREADABLE:
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
