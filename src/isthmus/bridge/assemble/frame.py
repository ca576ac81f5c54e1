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

from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.bridge.deltas import Usage
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.finish import Outcome
from isthmus.bridge.types.plan import Plan
from isthmus.protocol.items import OutputItem
from isthmus.protocol.response import FinishedResponse, Response, ResponseStatus, ResponseUsage


@dataclass(frozen=True, slots=True)
class Frame:
    """What a response says about itself besides its output."""

    plan: Plan
    response_id: str
    created_at: int

    def response(
        self,
        status: ResponseStatus,
        output: Sequence[OutputItem] = (),
        *,
        usage: Usage | None = None,
        completed_at: int | None = None,
        outcome: Outcome | None = None,
    ) -> Response:
        reason = outcome.incomplete_reason if outcome is not None else None
        failed = outcome if status == "failed" else None
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created_at,
            "completed_at": completed_at,
            "status": status,
            "error": {"code": failed.error_code, "message": failed.error_message} if failed is not None else None,
            "incomplete_details": {"reason": reason} if reason is not None else None,
            "model": self.plan.target.model,
            "output": list(output),
            "usage": usage_object(usage) if usage is not None else None,
            **self.plan.echo,
        }

    def finished(self, response: Response, notices: Sequence[CompatibilityDiagnostic]) -> FinishedResponse:
        """The response once it has ended: what it came to, and what was changed on the way."""
        target = self.plan.target
        finished: FinishedResponse = {
            **response,
            "output_text": output_text(response["output"]),
            "isthmus": {
                "provider": target.provider,
                "model": target.model,
                "diagnostics": [diagnostic.to_json() for diagnostic in (*self.plan.diagnostics, *notices)],
            },
        }
        if target.alias is not None:
            finished["isthmus"]["alias"] = target.alias
        return finished


def usage_object(usage: Usage) -> ResponseUsage:
    shape: ResponseUsage = {
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


def output_text(output: Sequence[OutputItem]) -> str:
    """All answer text, as the SDKs compute it."""
    return "".join(
        part["text"]
        for item in output
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
