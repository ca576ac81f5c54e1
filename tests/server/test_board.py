"""Connections outlive a configuration: what comes next over an old one goes to the newest app."""

from __future__ import annotations

from typing import Any

from isthmus.server.board import Board


async def test_whatever_comes_goes_to_the_app_that_serves_now() -> None:
    told: list[str] = []

    def app(name: str) -> Any:
        async def serve(scope: Any, receive: Any, send: Any) -> None:
            told.append(name)

        return serve

    board, nothing = Board(app("old")), Any
    begun = board({}, nothing, nothing)  # type: ignore[arg-type]
    board.app = app("new")
    await board({}, nothing, nothing)  # type: ignore[arg-type]
    await begun
    assert told == ["new", "old"], "what was begun goes on where it began"
