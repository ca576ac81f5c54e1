"""Proofs for `[providers.NAME.codex]`: what the program is started with, what it is told, what it is answered.

The program is a stand-in that writes down everything: its arguments, folder and variables, and each message that it
gets. In each turn it asks for an approval first.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from codex_program import heard, install
from isthmus.errors import IsthmusError
from isthmus.upstream.codex.backend import CodexBackend
from settings.proving import Scene, ask, proves

CODEX = {"providers.main.uses": '"codex"'}
BINARY = {**CODEX, "providers.main.codex.binary": '"@FOLDER@/codex"'}
OWN = {**BINARY, "providers.main.codex.own_tools": "true"}


def _seen(scene: Scene, name: str = "codex") -> list[dict[str, Any]]:
    return heard(scene.folder / name)


@asynccontextmanager
async def _started(scene: Scene) -> AsyncIterator[CodexBackend]:
    """The provider, when its program runs."""
    install(scene.folder)
    async with scene.gateway() as gateway:
        backend = gateway.directory.served["main"].backend
        assert isinstance(backend, CodexBackend)
        with suppress(IsthmusError):
            await backend._supervisor.process()
        yield backend


async def _thread(scene: Scene) -> dict[str, Any]:
    """What a conversation is begun with."""
    return await _told(scene, "thread/start")


async def _told(scene: Scene, method: str | None, id: str | None = None) -> dict[str, Any]:
    install(scene.folder)
    async with scene.gateway() as gateway:
        assert (await ask(gateway))["output_text"] == "ok"
    found = [each for each in _seen(scene) if each.get("method") == method and id in (None, each.get("id"))]
    assert len(found) == 1
    return dict(found[0].get("params") or found[0]["result"])


@proves("providers.NAME.codex.binary", '"@FOLDER@/mine"', beside=CODEX)
async def this_program_is_started(scene: Scene) -> None:
    install(scene.folder, "mine")
    install(scene.folder)
    scene.monkeypatch.setenv("PATH", str(scene.folder), prepend=":")
    scene.monkeypatch.setitem(sys.modules, "codex_cli_bin", None)
    async with _started(scene):
        assert (len(_seen(scene, "mine")) > 0, _seen(scene)) == (True, [])


@proves("providers.NAME.codex.home", '"@FOLDER@/home"', beside=BINARY)
async def it_is_told_where_its_home_is(scene: Scene) -> None:
    async with _started(scene):
        assert _seen(scene)[0]["env"].get("CODEX_HOME") == str(scene.folder / "home")
        assert (scene.folder / "home").is_dir()


@proves("providers.NAME.codex.environment", '{ MY_KEY = "sk-1" }', beside=BINARY)
async def it_gets_these_variables(scene: Scene) -> None:
    async with _started(scene):
        assert _seen(scene)[0]["env"].get("MY_KEY") == "sk-1"


@proves("providers.NAME.codex.own_tools", "true", beside=BINARY)
async def it_keeps_its_own_tools(scene: Scene) -> None:
    told = await _thread(scene)
    assert told["approvalPolicy"] == "on-request"
    assert told["cwd"] == str(Path.cwd())
    assert "baseInstructions" not in told


@proves("providers.NAME.codex.folder", '"@FOLDER@/work"', beside=OWN)
async def its_own_tools_work_there(scene: Scene) -> None:
    (scene.folder / "work").mkdir(exist_ok=True)
    told = await _thread(scene)
    assert told["cwd"] == _seen(scene)[0]["cwd"] == str(scene.folder / "work")


@proves("providers.NAME.codex.sandbox", '"workspace-write"', beside=OWN)
async def its_own_tools_may_change_so_much(scene: Scene) -> None:
    assert (await _thread(scene))["sandbox"] == "workspace-write"


@proves("providers.NAME.codex.approvals", '"allow"', beside=OWN)
async def it_hears_yes(scene: Scene) -> None:
    assert await _told(scene, None, "may I") == {"decision": "accept"}


@proves("providers.NAME.codex.approvals", '"decline"', beside=OWN, instead='"allow"')
async def it_hears_no(scene: Scene) -> None:
    assert await _told(scene, None, "may I") == {"decision": "decline"}


@proves("providers.NAME.codex.max_threads", "7", beside=BINARY)
async def so_many_conversations_are_open(scene: Scene) -> None:
    async with _started(scene) as backend:
        assert backend._threads._options.max_threads == 7


@proves("providers.NAME.codex.handshake", "7", beside=BINARY)
async def it_may_take_so_long_to_start(scene: Scene) -> None:
    async with _started(scene) as backend:
        assert (await backend._supervisor.process())._options.handshake_timeout == 7.0


@proves("providers.NAME.codex.hold", "7", beside=BINARY)
async def a_turn_waits_so_long_for_results(scene: Scene) -> None:
    async with _started(scene) as backend:
        assert backend._threads._options.hold == 7.0


@proves("providers.NAME.codex.idle", "7", beside=BINARY)
async def a_conversation_is_kept_so_long(scene: Scene) -> None:
    async with _started(scene) as backend:
        assert backend._threads._options.idle == 7.0


@proves("providers.NAME.timeouts.first_byte", "7", beside={**BINARY, "providers.main.timeouts.idle": "5"})
async def codex_may_be_silent_so_long_before_it_answers(scene: Scene) -> None:
    async with _started(scene) as backend:
        assert backend._options.silence == 7.0


@proves("providers.NAME.timeouts.idle", "7", beside={**BINARY, "providers.main.timeouts.first_byte": "5"})
async def codex_may_be_silent_so_long(scene: Scene) -> None:
    async with _started(scene) as backend:
        assert backend._options.silence == 7.0
