"""Every field of a request for embeddings meets the model's abilities here, once.

In: a checked request and its target. Out: an `EmbeddingPlan` with the body to send, and one decision for each field.
Worth knowing: vectors go into an index beside others of their kind, so whatever would make them another kind is
refused: a length that cannot be had, tokens of somebody else's vocabulary. How they are packed is our own affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import EmbeddingSupport
from isthmus.bridge.diagnostics import (
    CompatibilityDecision,
    CompatibilityDiagnostic,
    CompatibilityPlan,
    apply_strict,
    refuse_rejected,
)
from isthmus.bridge.embeddings.read import EmbeddingRequest, Encoding
from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.bridge.resolve import nearest_name
from isthmus.bridge.types.plan import Target
from isthmus.protocol.json import JsonObject

_FIELDS: Final = ("model", "input", "encoding_format", "dimensions", "user")


class EmbeddingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decided about one request, for one target."""

    target: Target
    body: JsonObject
    compatibility: CompatibilityPlan
    count: int
    """How many vectors must come back."""
    encoding: Encoding = "float"
    """How the client gets them."""
    dimensions: int | None = None
    """How long each must be; `None`: as long as the model makes them."""
    size: int = 0
    """Bytes of a large request, which is written aside. Else 0."""

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        return self.compatibility.diagnostics


def plan_embeddings(
    request: EmbeddingRequest, target: Target, *, strict: bool = False, noted: Sequence[CompatibilityDecision] = ()
) -> EmbeddingPlan:
    """Raises `RequestRefused` for what cannot be had, in strict mode also for what would be left out. `noted`: what was
    decided before."""
    facts, body = target.capabilities.embeddings, request.body
    decisions = apply_strict((*noted, *_decide(request, facts)), strict)
    refuse_rejected(decisions)
    sends = {name: value for decision in decisions for name, value in decision.sends.items()}
    return EmbeddingPlan(
        target=target,
        body={"model": target.model, **sends},
        compatibility=CompatibilityPlan(decisions),
        count=request.count,
        encoding=body.get("encoding_format") or "float",
        dimensions=body.get("dimensions"),
        size=request.size if request.size > HEAVY_TEXT else 0,
    )


def _decide(request: EmbeddingRequest, facts: EmbeddingSupport) -> Iterator[CompatibilityDecision]:
    for name, value in request.body.items():
        if value is None or name == "model":
            continue
        match name:
            case "input":
                yield _input(request, facts)
            case "encoding_format":
                yield _encoding(value, facts)
            case "dimensions":
                yield _dimensions(value, facts)
            case "user" if facts.user:
                yield _sent(name, value)
            case _ if name in facts.fields:
                yield _sent(name, value)
            case _:
                yield CompatibilityDecision(name, "ignored", _why(name))


def _sent(name: str, value: Any, to: str = "") -> CompatibilityDecision:
    reason = f"sent as `{to}`" if to and to != name else ""
    return CompatibilityDecision(name, "supported", reason, value, {to or name: value})


def _input(request: EmbeddingRequest, facts: EmbeddingSupport) -> CompatibilityDecision:
    if request.tokens and not facts.tokens:
        return CompatibilityDecision(
            "input",
            "rejected",
            "this model takes texts only: tokens would have to be of its own vocabulary; send the texts themselves "
            "(LangChain: `OpenAIEmbeddings(check_embedding_ctx_length=False)`)",
        )
    return _sent("input", request.body["input"])


def _encoding(value: Any, facts: EmbeddingSupport) -> CompatibilityDecision:
    """Numbers are what everybody sends unasked."""
    if value == "base64" and facts.base64:
        return _sent("encoding_format", value)
    reason = "packed by the gateway: the provider sends numbers" if value == "base64" else ""
    return CompatibilityDecision("encoding_format", "supported", reason, value)


def _dimensions(value: Any, facts: EmbeddingSupport) -> CompatibilityDecision:
    if facts.dimensions:
        return _sent("dimensions", value, facts.dimensions)
    reason = "this model's vectors have one length; leave the field out, or choose a model that can shorten them"
    return CompatibilityDecision("dimensions", "rejected", reason)


def _why(name: str) -> str:
    if name in _FIELDS:
        return "the provider has no counterpart for it"
    near = nearest_name(name, _FIELDS, likeness=0.8)
    return f"not a parameter of embeddings{f'; did you mean `{near}`?' if near else ''}"
