"""A request for embeddings: JSON in, an `EmbeddingRequest` out, or a 400 that names the field.

Worth knowing: a text may come as its tokens, so one list of numbers is one text, and a list of such lists several.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits, check_texts
from isthmus.bridge.parse import decode_json
from isthmus.errors import REQUEST_TOO_LARGE, RequestRefused
from isthmus.protocol.json import JsonObject

Encoding = Literal["float", "base64"]
ENCODINGS: Final = ("float", "base64")
_LARGEST_TOKEN: Final = 2**31


class EmbeddingRequest(msgspec.Struct, frozen=True):
    """A checked request. `body` is the client's own object, never changed."""

    body: JsonObject
    count: int
    """How many vectors it asks for."""
    tokens: bool
    """Whether its texts come as tokens."""
    size: int = 0
    """Bytes of its text."""


def read_embedding_request(raw: bytes | bytearray, limits: RequestLimits = DEFAULT_LIMITS) -> EmbeddingRequest:
    body = decode_json(raw, _with_tokens(limits))
    if not isinstance(body, dict):
        wanted = 'the request body must be a JSON object; send `{"model": …, "input": …}`'
        raise RequestRefused(wanted, code="invalid_type")
    if len(body) > limits.max_fields:
        words = f"the request body has more than {limits.max_fields} fields, the limit `limits.max_fields`"
        raise RequestRefused(f"{words} of this gateway", code=REQUEST_TOO_LARGE)
    inputs = _inputs(body)
    check_texts(inputs, limits)
    tokens = _check_inputs(inputs)
    _check_options(body)
    return EmbeddingRequest(body, len(inputs), tokens, len(raw))


def _with_tokens(limits: RequestLimits) -> RequestLimits:
    """Tokens are the cheapest values that there are, and have bounds of their own."""
    return msgspec.structs.replace(limits, max_values=limits.max_values + limits.max_input_tokens)


def _inputs(body: JsonObject) -> list[Any]:
    """The texts; a single one as a list of one."""
    given = body.get("input")
    match given:
        case None if isinstance(body.get("messages"), list):
            raise _missing("it has `messages` and no `input`: send it to `/v1/chat/completions`")
        case None:
            raise _missing("send a text, or a list of texts")
        case [int(), *_]:
            return [given]
        case str():
            return [given]
        case []:
            raise RequestRefused("`input` is empty; send at least one text", code="invalid_value", param="input")
        case list():
            return given
    wanted = "`input` must be a text, a list of texts, a list of tokens, or a list of such lists"
    raise RequestRefused(wanted, code="invalid_type", param="input")


def _check_inputs(inputs: list[Any]) -> bool:
    """Whether they are tokens. All are of one kind, and none is empty."""
    tokens = isinstance(inputs[0], list)
    for index, each in enumerate(inputs):
        where = f"input[{index}]"
        if not isinstance(each, list if tokens else str):
            raise RequestRefused(
                f"`{where}` is neither a text nor tokens, or not what the first one is; send all as texts, or all as "
                "lists of tokens",
                code="invalid_type",
                param=where,
            )
        if not each:
            words = f"`{where}` is empty; leave it out, no model has a vector for nothing"
            raise RequestRefused(words, code="invalid_value", param=where)
        if tokens and not all(type(token) is int and 0 <= token < _LARGEST_TOKEN for token in each):
            words = f"`{where}` holds something that is no token; tokens are whole numbers"
            raise RequestRefused(words, code="invalid_type", param=where)
    return tokens


def _check_options(body: JsonObject) -> None:
    if body.get("encoding_format") not in (None, *ENCODINGS):
        words = "`encoding_format` must be `float` or `base64`"
        raise RequestRefused(words, code="invalid_value", param="encoding_format")
    dimensions = body.get("dimensions")
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        words = "`dimensions` must be a whole number of at least 1"
        raise RequestRefused(words, code="invalid_value", param="dimensions")
    for name in ("model", "user"):
        if not isinstance(body.get(name, ""), str | None):
            raise RequestRefused(f"`{name}` must be a string", code="invalid_type", param=name)


def _missing(why: str) -> RequestRefused:
    return RequestRefused(f"`input` is missing; {why}", code="missing_required_parameter", param="input")
