"""What every store refuses, in the same words."""

from __future__ import annotations

from isthmus.errors import RequestRefused


def not_found(id: str, asked: str) -> RequestRefused:
    """`id` is missing or deleted; `asked` is the response that the caller wanted to continue."""
    message = f"previous response `{id}` was not found"
    if id != asked:
        message = f"previous response `{asked}` cannot be continued: its earlier turn `{id}` was not found"
    return RequestRefused(
        f"{message}; it was deleted, expired or never stored: send the whole history in `input` instead",
        code="previous_response_not_found",
        param="previous_response_id",
    )


def too_long(asked: str, max_depth: int) -> RequestRefused:
    return RequestRefused(
        f"the chain that ends in `{asked}` has over {max_depth} turns; start a new one with the history in `input`",
        code="previous_response_chain_too_long",
        param="previous_response_id",
    )


def events_expired(id: str, after: int) -> RequestRefused:
    return RequestRefused(
        f"the stream of `{id}` is no longer kept back to event {after}; fetch the response without `stream`",
        code="events_expired",
        param="starting_after",
    )
