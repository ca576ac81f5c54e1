"""Doors that are loaded when the first client comes to them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

from isthmus.server.routes import Later

LATE = (
    "isthmus.server.messages",
    "isthmus.server.embeddings",
    "isthmus.server.conversations",
    "isthmus.server.openapi",
    "isthmus.server.traces",
)


def test_a_door_is_loaded_once_and_by_whoever_comes_first() -> None:
    loaded: list[str] = []
    asked: list[tuple[str, Any]] = []

    class Door:
        def __init__(self) -> None:
            loaded.append("door")

        async def create(self, scope: Any, receive: Any, send: Any) -> None:
            asked.append(("create", scope))

        async def delete(self, scope: Any, receive: Any, send: Any) -> None:
            asked.append(("delete", scope))

    door = Later(Door)
    create, delete = door("create"), door("delete")
    assert loaded == []

    async def ask() -> None:
        nothing: Any = None
        for handler, scope in ((delete, 1), (create, 2), (delete, 3)):
            given: Any = scope
            await handler(given, nothing, nothing)

    asyncio.run(ask())
    assert loaded == ["door"]
    assert asked == [("delete", 1), ("create", 2), ("delete", 3)]


def test_a_server_starts_without_them() -> None:
    code = "import sys, isthmus.server.app; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code, *LATE], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
