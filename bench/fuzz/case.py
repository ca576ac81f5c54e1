"""One case of the fuzzer: what a client asks, and what the provider answers. The same seed makes the same cases.

A case is data, not bytes: the grammar makes it, changes work on its structure, and only `raw` and `answer` spell it.
So a change that doubles a list, nests a schema or repeats a chunk stays a request that means something.
"""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bench.fuzz.grammar import MODELS, chunk, make_answer, make_body, make_error
from bench.fuzz.native import make_native, spoken, whole_native
from bench.robustness.fuzz_bodies import WRONG

from isthmus.testing import CUT, RESET
from isthmus.testing.script import Answer, Ending

Json = dict[str, Any]
Chunk = Json | bytes
STATUSES: Final = (*(200,) * 12, 400, 401, 404, 408, 413, 429, 500, 503, 529)
WAITS: Final = ("0", "2", "-1", "nan", "1e308", "99999999", "x", "Fri, 31 Dec 9999 23:59:59 GMT")
JUNK: Final = (b"data: {\n\n", b"data: \xff\n\n", b": ping\n\n", b"data: x\n", b"event: y\ndata: [DONE]\n\n", b"\r\n")
_DEEP: Final = re.compile(rb'"<(\d+) deep>"')
LARGEST: Final = 1_500_000
"""Bytes beyond which a case is not made any larger."""


@dataclass(frozen=True, slots=True)
class Case:
    chat: bool
    """Asked at `/v1/chat/completions`; otherwise at `/v1/responses`."""
    body: Json
    chunks: tuple[Chunk, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    slice: int | None = None
    """Bytes of one write of the provider."""
    ending: Ending | None = None
    kept: float | None = None
    """The share of a stream's bytes after which it is cut, wherever that is."""

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.chat else "/v1/responses"

    def raw(self) -> bytes:
        return _spell(self.body)

    def answer(self, streamed: bool, native: bool = False) -> Answer:
        """`native`: asked at the provider's own `/responses`."""
        pieces = self.pieces()
        kind = "text/event-stream" if streamed else "application/json"
        if not streamed or self.status >= 400:
            pieces = [json.dumps(self._whole(native)).encode()]
        ending = self.ending
        if streamed and self.kept is not None:
            whole = b"".join(pieces)
            pieces, ending = [whole[: int(len(whole) * self.kept)]], CUT
        parts = (*pieces, *((ending,) if ending is not None and streamed else ()))
        headers = {"Content-Type": kind, **self.headers}
        # In very small pieces, but not in very many: our own provider must not be what takes the time.
        slice = max(self.slice, sum(map(len, pieces)) // 2_000) if self.slice else None
        return Answer(parts, self.status, headers, framing="chunked" if streamed else "length", slice=slice)

    def pieces(self) -> list[bytes]:
        """The stream, event by event."""
        return [each if isinstance(each, bytes) else _event(each) for each in self.chunks]

    def _whole(self, native: bool) -> Json:
        first = next((each for each in self.chunks if isinstance(each, dict)), {})
        if self.status >= 400:
            return first
        return whole_native(self.chunks) if native else _as_whole(first)


def plain_cases() -> list[Case]:
    """One that every provider answers well, to begin with: what is changed a little is let in far more often. Every
    second provider sends small pieces."""
    said = tuple(chunk({"content": word}) for word in ("Rome, ", "I think. " * 30))
    ended = (*said, chunk({}, "stop"), b"data: [DONE]\n\n")
    told = tuple(spoken(word) for word in ("Rome, ", "I think. " * 30))
    over = (*told, {"type": "response.completed", "response": {"status": "completed", "output": []}})
    return [
        Case(
            chat,
            {"model": model, **asked, "stream": True},
            over if model.startswith("native/") else ended,
            slice=7 if number % 2 else None,
        )
        for number, model in enumerate(MODELS)
        for chat, asked in (
            (False, {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Which city?"}]}]}),
            (True, {"messages": [{"role": "user", "content": "Which city?"}]}),
        )
    ]


def make(chance: random.Random) -> Case:
    """A fresh one, by the grammar."""
    chat = chance.random() < 0.3
    status = chance.choice(STATUSES)
    headers = {"Retry-After": chance.choice(WAITS)} if status in (408, 429, 503) or chance.random() < 0.05 else {}
    ending = chance.choice((None,) * 8 + (CUT, RESET))
    slice = chance.choice((None, None, None, 1, 7, 100, 4_096))
    body = make_body(chance, chat)
    native = body["model"].startswith("native/")
    chunks = (make_error(chance),) if status >= 400 else make_native(chance) if native else make_answer(chance)
    if chance.random() < 0.1 and len(chunks) > 3:  # nearly without end; what ends it stands behind
        at = chance.randrange(1, len(chunks) - 2)
        chunks = (*chunks[:at], *(chunks[at],) * chance.choice((300, 1_500)), *chunks[at:])
    kept = chance.random() if chance.random() < 0.1 else None
    if chance.random() < 0.1:
        name = chance.choice(list(body))
        body[name] = _nest(body[name], chance.choice((50, 150, 900, 5_000)), chance)
    return Case(chat, body, chunks, status, headers, slice, ending, kept)


def change(case: Case, other: Case, chance: random.Random) -> Case:
    """The case with one to four changes; `other` lends what it has."""
    try:
        changed = _change(case, other, chance)
        changed.raw()
        changed.answer(True)
    except RecursionError:  # deeper than we ourselves can spell
        return case
    return changed


def _change(case: Case, other: Case, chance: random.Random) -> Case:
    for _ in range(chance.randint(1, 4)):
        match chance.randrange(7):
            case 0 | 1 | 2:
                body = _change_value(case.body, chance) if len(case.raw()) < LARGEST else make_body(chance, case.chat)
                case = replace(case, body=body if isinstance(body, dict) else {"input": body})
            case 3 | 4:
                case = replace(case, chunks=_change_chunks(case.chunks, other.chunks, chance))
            case 5:
                name = chance.choice(list(other.body) or ["input"])
                case = replace(case, body={**case.body, name: copy.deepcopy(other.body.get(name))})
            case _:
                fresh = make(chance)
                case = replace(case, status=fresh.status, headers=fresh.headers, slice=fresh.slice)
                case = replace(case, ending=fresh.ending, kept=fresh.kept)
    return case


def _change_value(value: Any, chance: random.Random, depth: int = 0) -> Any:
    """Somewhere in it, something else; more, deeper, longer, or of the wrong kind."""
    if isinstance(value, dict) and value and (depth == 0 or chance.random() < 0.75):
        # What stands deep inside is where the work is; the flags beside it are soon known.
        names = [name for name, inner in value.items() if isinstance(inner, dict | list)]
        name = chance.choice(names if names and chance.random() < 0.8 else list(value))
        if chance.random() < 0.03:
            return {**value, **{f"{name}{number}": 0 for number in range(_often(chance, 10))}}
        if chance.random() < 0.08:
            return {each: inner for each, inner in value.items() if each != name}
        return {**value, name: _change_value(value[name], chance, depth + 1)}
    if isinstance(value, list) and value and chance.random() < 0.75:
        at = chance.randrange(len(value))
        if chance.random() < 0.5:
            return [*value[:at], _change_value(value[at], chance, depth + 1), *value[at + 1 :]]
        if chance.random() < 0.6:
            return value * _often(chance, len(value))
        return value[:at] + value[at + 1 :]
    match chance.randrange(6):
        case 0:
            return _nest(value, chance.choice((2, 20, 70, 200, 900, 5_000)), chance)
        case 1 if isinstance(value, str):
            return value * _often(chance, max(len(value), 1))
        case 2 if isinstance(value, (int, float)) and not isinstance(value, bool):
            return chance.choice((-value, value * 10**9, value / 3, 2**63, 0))
        case 3:
            return [value] * _often(chance, 1)
        case _:
            return copy.deepcopy(chance.choice(WRONG))


def _often(chance: random.Random, size: int) -> int:
    times = chance.choice((2, 3, 10, 100, 1_000, 20_000))
    return max(min(times, 200_000 // max(size, 1)), 2)


def _nest(value: Any, levels: int, chance: random.Random) -> Any:
    if levels > 200:
        return f"<{levels} deep>"
    wrap = chance.choice(("list", "items", "properties", "allOf"))
    for _ in range(levels):
        match wrap:
            case "list":
                value = [value]
            case "items":
                value = {"type": "array", "items": value}
            case "properties":
                value = {"type": "object", "properties": {"a": value}}
            case _:
                value = {"allOf": [value, {}]}
    return value


def _change_chunks(chunks: tuple[Chunk, ...], others: tuple[Chunk, ...], chance: random.Random) -> tuple[Chunk, ...]:
    if not chunks:
        return others
    at = chance.randrange(len(chunks))
    before, one, after = chunks[:at], chunks[at], chunks[at + 1 :]
    match chance.randrange(6):
        case 0:
            return (*before, *(one,) * min(chance.choice((2, 10, 100, 1_500)), 3_000 // len(chunks) + 2), *after)
        case 1:
            return (*before, *after)
        case 2:
            changed = _change_value(one, chance) if isinstance(one, dict) else one + one
            return (*before, changed if isinstance(changed, dict | bytes) else {"choices": changed}, *after)
        case 3:
            return (*before, *others[:3], *chunks[at:])
        case 4:
            return (*before, chance.choice(JUNK), *chunks[at:])
        case _:
            if isinstance(one, bytes):
                return chunks
            pieces = [copy.deepcopy(one) for _ in range(min(chance.choice((5, 300)), 3_000 // len(chunks) + 2))]
            for number, piece in enumerate(pieces):
                _rename(piece, number)
            return (*before, *pieces, *after)


def _rename(value: Any, number: int) -> None:
    """Ids become others: many calls in place of many pieces of one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "id" and isinstance(inner, str):
                value[name] = f"{inner}_{number}"
            else:
                _rename(inner, number)
    elif isinstance(value, list):
        for inner in value:
            _rename(inner, number)


def _event(chunk: Json) -> bytes:
    return b"data: " + _spell(chunk) + b"\n\n"


def _spell(value: Any) -> bytes:
    """JSON; what is nested deeper than Python can spell stands for itself until now."""
    return _DEEP.sub(lambda found: b"[" * int(found[1]) + b"]" * int(found[1]), json.dumps(value).encode())


def _as_whole(chunk: Json) -> Json:
    """A chunk as a whole reply has it."""
    made = dict(chunk)
    choices = made.get("choices")
    if isinstance(choices, list):
        made["choices"] = [
            {**each, "message": each.get("delta"), "finish_reason": "stop"} if isinstance(each, dict) else each
            for each in choices
        ]
    return made
