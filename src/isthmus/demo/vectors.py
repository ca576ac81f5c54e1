"""Vectors of the demo model: texts that share words lie near each other, and the same text always has the same vector.

In: a request for embeddings as OpenAI spells it. Out: the answer. Each word, and each piece of three letters of it,
adds to a few places of the vector that its digest chooses; the sum is brought to length one. So a search among a
handful of notes finds what one would expect, without a model.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from struct import pack
from typing import Any, Final

from isthmus.demo.model import MODELS
from isthmus.demo.question import Refused
from isthmus.demo.tokens import split_tokens

MODEL: Final = "demo-embedding"
LENGTH: Final = 256
_MOST: Final = 4096
_MOST_TEXTS: Final = 2048
_WORD: Final = re.compile(r"\w+")
_PLACES: Final = 4
"""Numbers of the vector that one piece adds to."""


def embed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `Refused`."""
    model = body.get("model")
    if model not in (MODEL, *MODELS):
        raise Refused(404, f"there is no demo model `{model}`; ask for `{MODEL}`", "model_not_found")
    texts, length = _texts(body.get("input")), _length(body.get("dimensions"))
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else vector}
        for index, vector in enumerate(make_vector(text, length) for text in texts)
    ]
    spent = sum(len(split_tokens(text)) for text in texts)
    usage = {"prompt_tokens": spent, "total_tokens": spent}
    return {"object": "list", "data": data, "model": MODEL, "usage": usage}


def make_vector(text: str, length: int = LENGTH) -> list[float]:
    vector = [0.0] * length
    for piece, weight in _pieces(text.lower()):
        digest = blake2b(piece.encode(), digest_size=3 * _PLACES).digest()
        for place in range(_PLACES):
            high, low, sign = digest[3 * place : 3 * place + 3]
            vector[(high * 256 + low) % length] += weight if sign & 1 else -weight
    size = math.sqrt(sum(number * number for number in vector))
    if not size:  # nothing but white space and signs
        return [1.0, *[0.0] * (length - 1)]
    return [round(number / size, 7) for number in vector]


def _pieces(text: str) -> Iterator[tuple[str, float]]:
    for word in _WORD.findall(text):
        yield word, 1.0
        for start in range(len(word) - 2):
            yield f"#{word[start : start + 3]}", 0.3


def _texts(given: Any) -> list[str]:
    """Tokens are taken as words of their own: the demo has no vocabulary."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and 0 < len(given) <= _MOST_TEXTS:
        if all(isinstance(each, int) for each in given):
            return [" ".join(map(str, given))]
        return [each if isinstance(each, str) else " ".join(map(str, each)) for each in given]
    raise Refused(400, "`input` must be a text or a list of texts", "invalid_request_error")


def _length(given: Any) -> int:
    if given is None:
        return LENGTH
    if isinstance(given, int) and 0 < given <= _MOST:
        return given
    raise Refused(400, f"`dimensions` must be from 1 to {_MOST}", "invalid_request_error")


def _packed(vector: list[float]) -> str:
    return b64encode(pack(f"<{len(vector)}f", *vector)).decode()
