"""The Response object around the output: every field the client may count on, with its source.

| field | source |
|---|---|
| `id`, `created_at` | given when the turn starts |
| `completed_at` | given when it ends; `null` unless completed |
| `status`, `error`, `incomplete_details` | the finish reason (`finish.py`), or the failure |
| `model` | the resolved model name |
| `output`, `output_text` | the assembler's items; the text of its messages |
| `usage` | the provider's figures, summed over attempts |
| all others | the request, with the values that took effect |

Required-nullable fields are always there (`null` if nothing); optional ones are left out, never `null`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isthmus.bridge.deltas import Usage
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class Frame:
    """What a response says about itself besides its output."""

    response_id: str
    created_at: int
    model: str
    provider: str = ""
    alias: str | None = None
    echo: Mapping[str, Any] = field(default_factory=dict)

    def response(
        self,
        *,
        status: str,
        output: Sequence[JsonObject],
        usage: Usage | None = None,
        completed_at: int | None = None,
        error: JsonObject | None = None,
        incomplete_reason: str | None = None,
        diagnostics: Sequence[CompatibilityDiagnostic] | None = None,
    ) -> JsonObject:
        response: JsonObject = {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created_at,
            "completed_at": completed_at,
            "status": status,
            "error": error,
            "incomplete_details": {"reason": incomplete_reason} if incomplete_reason else None,
            "model": self.model,
            "output": list(output),
            "usage": usage_object(usage) if usage is not None else None,
            **self.echo,
        }
        if diagnostics is not None:
            response["output_text"] = output_text(output)
            response["isthmus"] = self._extension(diagnostics)
        return response

    def _extension(self, diagnostics: Sequence[CompatibilityDiagnostic]) -> JsonObject:
        extension: JsonObject = {"provider": self.provider, "model": self.model}
        if self.alias is not None:
            extension["alias"] = self.alias
        extension["diagnostics"] = [diagnostic.to_json() for diagnostic in diagnostics]
        return extension


def usage_object(usage: Usage) -> JsonObject:
    shape: JsonObject = {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
    if usage.estimated:
        shape["estimated"] = True
    return shape


def output_text(output: Sequence[JsonObject]) -> str:
    """All answer text, as the SDKs compute it."""
    return "".join(
        part["text"]
        for item in output
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """The sum over two upstream calls of one response."""
    if one is None or other is None:
        return one if other is None else other
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.total_tokens + other.total_tokens,
        one.cached_tokens + other.cached_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.estimated or other.estimated,
    )
