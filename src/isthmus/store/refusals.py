"""What every store refuses, in the same words."""

from __future__ import annotations

from typing import Final

from isthmus.errors import RequestRefused, StoreDamaged

QUEUE_FULL: Final = "as many as may (`webhooks.max_queued`) were waiting already"
NO_RECEIVER: Final = "no gateway has a receiver of this name any more"
"""Why a notice was given up without having been sent."""


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


def damaged(id: str, what: str, asked: str | None = None) -> StoreDamaged:
    """`what` of the response `id` is not as it was written; `asked` is the one that the caller wanted to continue."""
    message = f"the stored response `{id}` is damaged: {what}"
    if asked is not None and asked != id:
        message = f"previous response `{asked}` cannot be continued: its earlier turn `{id}` is damaged: {what}"
    return StoreDamaged(
        f"{message}; `isthmus store check --repair` sets it aside, a backup brings it back", metadata={"id": id}
    )


def no_such_chat(after: str) -> RequestRefused:
    message = f"`after` names no stored chat completion: `{after}`; use an id from the list"
    return RequestRefused(message, code="invalid_value", param="after")


def events_expired(id: str, after: int) -> RequestRefused:
    kept = "from its beginning" if after < 0 else f"back to event {after}"
    return RequestRefused(
        f"the stream of `{id}` is no longer kept {kept}; fetch the response without `stream`",
        code="events_expired",
        param="starting_after",
    )


def conversation_moved(id: str) -> RequestRefused:
    return RequestRefused(
        f"conversation `{id}` was changed while this turn was made, for it took longer than it was waited for; "
        "ask again",
        code="conversation_moved",
        param="conversation",
    )


def taken_id(item_id: str, position: int) -> RequestRefused:
    return RequestRefused(
        f"`items[{position}].id` is `{item_id}`, and the conversation has such an item already; leave the `id` out",
        code="duplicate_item",
        param=f"items[{position}].id",
    )


def too_many_items(id: str, most: int) -> RequestRefused:
    return RequestRefused(
        f"conversation `{id}` would have more than {most:,} items (`limits.max_items`), and no turn could go on from "
        "it; begin another one, or delete items",
        code="conversation_too_long",
        param="items",
    )


def unknown_after(after: str) -> RequestRefused:
    return RequestRefused(
        f"`after` names no item of this conversation: `{after}`; use an id from the list", param="after"
    )


def damaged_conversation(id: str, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"the stored conversation `{id}` is damaged: {what}; `isthmus store check --repair` sets aside what is, a "
        "backup brings it back",
        metadata={"id": id},
    )


def name_taken(name: str) -> RequestRefused:
    return RequestRefused(
        f"there is a key in force that is called `{name}`; choose another name, or revoke or rotate that one",
        code="key_exists",
        param="name",
    )


def damaged_key(id: str) -> StoreDamaged:
    return StoreDamaged(
        f"the stored key `{id}` is not as it was written; `isthmus store check --repair` revokes it, a backup brings "
        "it back",
        metadata={"id": id},
    )
