"""Whether somebody is there: found out by a connection on which nothing is said."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream
from isthmus.upstream.reach import reach
from own_time import clock, run_in_own_time, turns


def test_who_listens_can_be_reached_and_hears_nothing() -> None:
    with ScriptedUpstream.running() as upstream:
        assert asyncio.run(reach(upstream.base_url, 10)) is None
        assert upstream.requests == []


def test_where_nobody_listens_it_is_said_without_secrets() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        words = asyncio.run(reach(f"http://me:secret@127.0.0.1:{port}/v1?key=secret", 10))
    assert words is not None
    assert words.startswith(f"cannot be reached: 127.0.0.1:{port}")
    assert "secret" not in words


def test_a_name_that_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> str | None:
        async def unknown(*_: Any, **__: Any) -> Any:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
        return await reach("https://nobody.invalid/v1", 10)

    assert asyncio.run(ask()) == "cannot be reached: nobody.invalid:443: Name or service not known"


def test_it_is_not_waited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> str | None:
        clock().stop_clock()

        async def silent(*_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", silent)
        asking = asyncio.create_task(reach("http://slow.invalid/v1", 10))
        await turns()
        clock().skip(10)
        return await asking

    assert run_in_own_time(ask()) == "cannot be reached: no connection to slow.invalid:80 within 10 s"
