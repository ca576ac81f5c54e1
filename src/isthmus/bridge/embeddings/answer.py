"""What a provider answers about embeddings → vectors as the client wants them, checked.

In: the bytes of a whole answer, and the plan. Out: `Embedded`, or `NotVectors`: as many vectors as texts, each once,
all of one length, and of the length that was asked for. Worth knowing: numbers that only travel through are never made
into Python's: a vector in JSON is looked at as text, and passed on as it came.
"""

from __future__ import annotations

import binascii
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from isthmus.bridge.embeddings.plan import EmbeddingPlan
from isthmus.protocol.json import JsonObject

_NUMBERS: Final = b"0123456789+-.eE, \t\r\n"


class NotVectors(Exception):
    """What is wrong with an answer, in words that follow its provider's name."""


class _Vector(msgspec.Struct):
    embedding: msgspec.Raw
    index: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    total_tokens: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Vector]
    usage: _Usage | None = None


class Embedded(msgspec.Struct, frozen=True):
    """Vectors in the order of their texts."""

    vectors: list[msgspec.Raw]
    """Each as it travels: a list of numbers, or a text in base64."""
    tokens: int | None
    """What the provider counted; `None`: it did not tell."""
    limits: Mapping[str, str] = {}
    """What it said of its rate limits."""


_answers: Final = msgspec.json.Decoder(_Answer)
_floats: Final = msgspec.json.Decoder(list[float])
_texts: Final = msgspec.json.Decoder(str)


def read_embeddings(data: bytes, plan: EmbeddingPlan, limits: Mapping[str, str] | None = None) -> Embedded:
    try:
        answer = _answers.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotVectors(f"answered something that is no list of embeddings: {error}") from error
    vectors = _in_order(answer.data, plan.count)
    made = [_convert(vector, plan) for vector in vectors]
    lengths = {length for _, length in made}
    if len(lengths) != 1 or (plan.dimensions is not None and lengths != {plan.dimensions}):
        wanted = "of one length" if plan.dimensions is None else f"of {plan.dimensions} numbers, as was asked"
        found = ", ".join(str(length) for length in sorted(lengths)[:3])
        raise NotVectors(f"answered vectors that are not {wanted}, but of {found}")
    usage = answer.usage or _Usage()
    told = usage.prompt_tokens if usage.prompt_tokens is not None else usage.total_tokens
    return Embedded([raw for raw, _ in made], told, limits or {})


def render_embeddings(embedded: Embedded, plan: EmbeddingPlan) -> JsonObject:
    """OpenAI's shape, with what was decided beside it."""
    target, spent = plan.target, embedded.tokens or 0
    told: JsonObject = {
        "provider": target.provider,
        "model": target.model,
        "diagnostics": [diagnostic.to_json() for diagnostic in plan.diagnostics],
    }
    if target.alias is not None:
        told["alias"] = target.alias
    if embedded.tokens is None:
        told["usage"] = "not told"  # clients want a number there; this one is none
    usage = {"prompt_tokens": spent, "total_tokens": spent}
    data = [
        {"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(embedded.vectors)
    ]
    return {"object": "list", "data": data, "model": target.model, "usage": usage, "isthmus": told}


def _in_order(found: list[_Vector], count: int) -> list[bytes]:
    """By their index; servers that name none send them in order."""
    if len(found) != count:
        raise NotVectors(f"answered {len(found)} vectors for {count} texts")
    if all(vector.index is None for vector in found):
        return [bytes(vector.embedding) for vector in found]
    placed: dict[int | None, bytes] = {vector.index: bytes(vector.embedding) for vector in found}
    if placed.keys() != set(range(count)):
        raise NotVectors("answered vectors whose `index` does not say which text each belongs to")
    return [placed[index] for index in range(count)]


def _convert(raw: bytes, plan: EmbeddingPlan) -> tuple[msgspec.Raw, int]:
    """The vector as the client asked for it, and its length."""
    packed = raw[:1] == b'"'
    if packed:
        numbers = _unpack(raw)
        if plan.encoding == "base64":
            return msgspec.Raw(raw), len(numbers)
        if not all(map(isfinite, numbers)):  # JSON has no word for them
            raise _not_a_vector()
        return msgspec.Raw(msgspec.json.encode(numbers.tolist())), len(numbers)
    length = _count(raw)
    if plan.encoding == "float":
        return msgspec.Raw(raw), length
    return msgspec.Raw(b'"%b"' % b64encode(_pack(raw))), length


def _count(raw: bytes) -> int:
    """How many numbers stand in a JSON list of nothing else."""
    inside = raw[1:-1]
    if raw[:1] != b"[" or not inside.strip() or inside.translate(None, _NUMBERS):
        raise _not_a_vector()
    return inside.count(b",") + 1


def _pack(raw: bytes) -> bytes:
    """As OpenAI packs them: 32 bits each, the least byte first."""
    try:
        numbers = array("f", _floats.decode(raw))
    except (msgspec.DecodeError, OverflowError) as error:
        raise _not_a_vector() from error
    if not all(map(isfinite, numbers)):  # more than 32 bits can say
        raise _not_a_vector()
    return _little(numbers).tobytes()


def _unpack(raw: bytes) -> array[float]:
    numbers: array[float] = array("f")
    try:
        numbers.frombytes(b64decode(_texts.decode(raw), validate=True))
    except (msgspec.DecodeError, binascii.Error, ValueError) as error:
        raise _not_a_vector() from error
    if not numbers:
        raise _not_a_vector()
    return _little(numbers)


def _little(numbers: array[float]) -> array[Any]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _not_a_vector() -> NotVectors:
    return NotVectors("answered an embedding that is neither a list of numbers nor base64 of 32-bit numbers")
