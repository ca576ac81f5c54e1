"""The demo model's brain: a Chat Completions request → its `Reply`. Pure: no clock, no chance, no network.

Worth knowing: a reply is a sequence of pieces, the way it is streamed; the whole answer is those pieces
joined. Ids are digests of the request, so the same request always gets the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import msgspec

from isthmus.demo.answers import compose_answer
from isthmus.demo.choose import Call, choose_calls
from isthmus.demo.directives import Break
from isthmus.demo.question import Question, Refused, read_question
from isthmus.demo.schema_sample import sample
from isthmus.demo.supply import Supply
from isthmus.demo.thoughts import think
from isthmus.demo.tokens import count_prompt, split_tokens
from isthmus.demo.words import read_words
from isthmus.protocol.json import JsonObject

MODELS: Final = ("demo", "demo-paced", "demo-thinking")
HUMAN_PACE: Final = 35.0
"""Tokens per second of `demo-paced`: about as fast as people read."""

_CODES: Final = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    404: "model_not_found",
    413: "context_length_exceeded",
    429: "rate_limit_exceeded",
    503: "server_is_overloaded",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of one part of the answer. A call opens with its `id` and `name`, and no text."""

    kind: Literal["reasoning_content", "content", "refusal", "call"]
    text: str = ""
    index: int = 0
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    id: str
    model: str
    pieces: tuple[Piece, ...]
    finish: Literal["stop", "length", "tool_calls"]
    usage: JsonObject
    wait: float = 0.0
    pace: float | None = None
    """Tokens per second when streamed; `None` is at once."""
    breaks: Break | None = None


def answer(body: Mapping[str, Any]) -> Reply:
    """What the model replies; raises `Refused` for an HTTP error."""
    model = body.get("model")
    if model not in MODELS:
        raise Refused(404, f"there is no demo model `{model}`; ask for one of {', '.join(MODELS)}", "model_not_found")
    question = read_question(body)
    orders = question.directives
    if orders.error:
        code = _CODES.get(orders.error, "server_error" if orders.error >= 500 else "invalid_request_error")
        raise Refused(orders.error, f"the demo model was asked for HTTP {orders.error}", code)
    id = _digest(body)
    pieces, finish = _limited(_compose(question, id), body, half=orders.length)
    return Reply(
        id=f"chatcmpl-{id[:24]}",
        model=question.model,
        pieces=pieces,
        finish=finish,
        usage=_usage(body, pieces),
        wait=orders.wait,
        pace=orders.pace or (HUMAN_PACE if model == "demo-paced" else None),
        breaks=orders.breaks,
    )


def _digest(body: Mapping[str, Any]) -> str:
    """The request's own id; streamed or not, it is the same request."""
    asked = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def _compose(question: Question, id: str) -> list[Piece]:
    orders = question.directives
    calls = [] if orders.refuse else choose_calls(question)
    if orders.bad_json:
        calls = [replace(call, arguments=_broken(call.arguments)) for call in calls]
    thoughts = think(question, calls, always=question.model == "demo-thinking")
    pieces = [Piece("reasoning_content", token) for token in split_tokens(thoughts)]
    if orders.refuse:
        words = "I was asked to refuse this, so I do: I cannot help with that."
        return [*pieces, *(Piece("refusal", token) for token in split_tokens(words))]
    if calls:
        return [*pieces, *_call_pieces(calls, id)]
    return [*pieces, *(Piece("content", token) for token in split_tokens(_words(question)))]


def _call_pieces(calls: Sequence[Call], id: str) -> Iterator[Piece]:
    for index, call in enumerate(calls):
        unique = hashlib.sha256(f"{id}/{index}".encode()).hexdigest()
        yield Piece("call", "", index, f"call_{unique[:24]}", call.name)
        yield from (Piece("call", token, index) for token in split_tokens(call.arguments))


def _words(question: Question) -> str:
    if question.format in ("json_schema", "json_object"):
        question = replace(question, verbosity="low")
    said = compose_answer(question)
    match question.format:
        case "json_schema":
            told = "\n".join([question.text, *(result.text for result in question.results)])
            value = sample(question.schema, lambda: Supply(read_words(told), said))
            said = msgspec.json.encode(value).decode()
        case "json_object":
            said = msgspec.json.encode({"answer": said}).decode()
        case _ if not question.directives.bad_json or question.results:
            return said
    return _broken(said) if question.directives.bad_json else said


def _broken(json: str) -> str:
    """JSON that nobody closes: wrong for every parser, and for every schema once it is mended."""
    return '{"broken": ' + json


def _limited(
    pieces: list[Piece], body: Mapping[str, Any], *, half: bool
) -> tuple[tuple[Piece, ...], Literal["stop", "length", "tool_calls"]]:
    """The pieces up to the first stop sequence, within the number of tokens that was asked for."""
    pieces = _stopped(pieces, body.get("stop"))
    finish: Literal["stop", "tool_calls"] = "tool_calls" if any(piece.kind == "call" for piece in pieces) else "stop"
    asked = [body.get("max_completion_tokens"), body.get("max_tokens")]
    limits = [limit for limit in asked if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0]
    if half:
        thoughts = sum(piece.kind == "reasoning_content" for piece in pieces)
        limits.append(thoughts + max(1, (len(pieces) - thoughts) // 2))
    if limits and len(pieces) > min(limits):
        return tuple(pieces[: min(limits)]), "length"
    return tuple(pieces), "length" if half else finish


def _stopped(pieces: list[Piece], stop: object) -> list[Piece]:
    stops = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    text = "".join(piece.text for piece in pieces if piece.kind == "content")
    ends = [text.find(sign) for sign in stops if isinstance(sign, str) and sign and sign in text]
    if not ends:
        return pieces
    thoughts = [piece for piece in pieces if piece.kind == "reasoning_content"]
    return thoughts + [Piece("content", token) for token in split_tokens(text[: min(ends)])]


def _usage(body: Mapping[str, Any], pieces: Sequence[Piece]) -> JsonObject:
    prompt, cached = count_prompt(body["messages"], body.get("tools"))
    thoughts = sum(piece.kind == "reasoning_content" for piece in pieces)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": len(pieces),
        "total_tokens": prompt + len(pieces),
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }
