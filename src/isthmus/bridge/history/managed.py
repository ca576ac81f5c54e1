"""Past calls that ran here, and approvals: each is a call with its own result, wherever its parts stand.

In: items, and what the host runs. Out: whether an item is one of these, what the model was told of it, and to which
reply it belongs. What was told comes, in this order, from the response that is under way, from the envelope that the
item carries for us, from the item's own fields, and at last from words about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.envelope import unseal
from isthmus.bridge.tools.managed import ITEM_TYPES, describe_result, recall
from isthmus.bridge.types.managed import ManagedKind, Output
from isthmus.protocol.json import NOT_JSON, JsonObject, read_json

_KINDS: Final[Mapping[str, ManagedKind]] = {type: kind for kind, type in ITEM_TYPES.items()}
_OF_SERVERS: Final = ("mcp_call", "mcp_approval_request")
UNANSWERED: Final = "[not carried out: the user has not approved it]"
UNCALLED: Final = "[approved, but not carried out yet]"


class Here(msgspec.Struct, frozen=True):
    """What runs here, for the eyes of the history."""

    kinds: frozenset[ManagedKind] = frozenset()
    labels: frozenset[str] = frozenset()
    """Of MCP servers."""
    results: Mapping[str, Output] = {}
    """By the id of an item: what came of calls of this very response."""

    def __bool__(self) -> bool:
        return bool(self.kinds or self.labels)


NOWHERE: Final = Here()


class Approvals(msgspec.Struct, frozen=True):
    """Which calls wait for the user, which were approved, and which of those were carried out."""

    asked: Mapping[str, JsonObject] = {}
    """Requests to servers that are called from here, by their id."""
    answers: Mapping[str, JsonObject] = {}
    """By the id of the request."""
    called: Mapping[str, JsonObject] = {}
    """Calls that were approved, likewise."""

    @property
    def pending(self) -> list[JsonObject]:
        """Requests that were approved, and that nobody has carried out."""
        wanted = (id for id, answer in self.answers.items() if answer.get("approve") is True)
        return [self.asked[id] for id in wanted if id not in self.called]


def read_approvals(items: Sequence[JsonObject], here: Here) -> Approvals:
    if not here.labels:
        return Approvals()
    asked: dict[str, JsonObject] = {}
    answers: dict[str, JsonObject] = {}
    called: dict[str, JsonObject] = {}
    for item in items:
        match item["type"]:
            case "mcp_approval_request" if item.get("server_label") in here.labels and isinstance(item.get("id"), str):
                asked[item["id"]] = item
            case "mcp_approval_response" if item.get("approval_request_id") in asked:
                answers[item["approval_request_id"]] = item
            case "mcp_call" if item.get("approval_request_id") in asked:
                called[item["approval_request_id"]] = item
    return Approvals(asked, answers, called)


def is_call(item: JsonObject, here: Here) -> bool:
    """Whether an item is a call that runs, or ran, here."""
    if item["type"] in _OF_SERVERS:
        return item.get("server_label") in here.labels
    return _KINDS.get(item["type"]) in here.kinds


def mark_of(item: JsonObject) -> str:
    """What the items of one reply have in common in their ids (see `assemble.output`); empty: nothing is known."""
    id = item.get("id")
    head = id.rpartition("_")[0] if isinstance(id, str) else ""
    return head.partition("_")[2]


def result_of(
    item: JsonObject, here: Here, approvals: Approvals, key: bytes | None, owner: str
) -> tuple[Output, bool, JsonObject]:
    """What the model is told of a call, whether it failed, and the item that says so."""
    id = item.get("id")
    if item["type"] == "mcp_approval_request":
        call = approvals.called.get(str(id))
        if call is None:
            return _refusal(approvals.answers.get(str(id))), True, item
        item, id = call, call.get("id")
    failed = item.get("status") == "failed" or bool(item.get("error"))
    if isinstance(id, str) and id in here.results:
        return here.results[id], failed, item
    sealed = item.get("encrypted_content")
    opened = unseal(sealed, key, owner=owner, kind="tool_result") if isinstance(sealed, str) and key else None
    if opened is not None and (kept := _parts(read_json(opened.text))) is not None:
        return kept, failed, item
    told = recall(item)
    return describe_result(item) if told is None else told, failed, item


def _parts(value: Any) -> Output | None:
    if value is NOT_JSON or not isinstance(value, str | list):
        return None
    return value


def _refusal(answer: JsonObject | None) -> str:
    if answer is None:
        return UNANSWERED
    if answer.get("approve") is True:
        return UNCALLED
    why = answer.get("reason")
    return f"[not carried out: the user denied it: {why}]" if isinstance(why, str) and why else "[the user denied it]"
