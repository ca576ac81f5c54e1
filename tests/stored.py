"""Records for store tests: short to write, real in shape."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from isthmus.ports import LOCAL, StoredResponse
from isthmus.store.sqlite.migrations import migrate


def message(text: str, id: str | None = None, role: str = "user") -> bytes:
    item: dict[str, Any] = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    return msgspec.json.encode({"id": id, **item} if id else item)


def turn(
    id: str,
    previous: str | None = None,
    *,
    at: float = 0.0,
    status: str = "completed",
    input: tuple[bytes, ...] | None = None,
    output: tuple[bytes, ...] | None = None,
    owner: str = LOCAL,
    **fields: Any,
) -> StoredResponse:
    """One turn that asks `ask <id>` and answers `answer <id>` in an item `msg_<id>`, unless told otherwise."""
    made = (message(f"answer {id}", f"msg_{id}", "assistant"),) if output is None else output
    response = {
        "id": id,
        "object": "response",
        "status": status,
        "output": [msgspec.Raw(item) for item in made],
        "previous_response_id": previous,
        "error": None,
        **fields,
    }
    return StoredResponse(
        id=id,
        response=msgspec.json.encode(response),
        input=(message(f"ask {id}"),) if input is None else input,
        previous_response_id=previous,
        created_at=at,
        status=status,
        model="a-model",
        provider="a-provider",
        owner=owner,
    )


def texts(items: tuple[bytes, ...]) -> list[str]:
    return [msgspec.json.decode(item)["content"][0]["text"] for item in items]


def ids(items: tuple[bytes, ...]) -> list[str]:
    return [msgspec.json.decode(item)["id"] for item in items]


def new_database() -> sqlite3.Connection:
    """A database as ours are, nowhere on disk."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path(":memory:"))
    return connection
