"""Proofs for `[server]` and `[log]`: what the listening side does with them."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from isthmus.cli.serve_command import serve as serve_command
from isthmus.errors import ConfigError
from isthmus.log import tell
from isthmus.server.app import create_app
from isthmus.server.listen import listen
from isthmus.server.options import ServerOptions
from isthmus.server.reload import Board, Reloading
from isthmus.server.serve import _make_app
from isthmus.server.supervise import Supervisor
from isthmus.testing import Gate, ScriptedUpstream, chat, reply
from isthmus.testing.replies import chat_reply
from isthmus.wiring import open_house
from settings.proving import Scene, proves
from waiting import until_soon

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
HELLO = {"model": "main/some-model", "input": "hi"}


@proves("server.host", '"127.0.0.2"')
async def it_listens_there(scene: Scene) -> None:
    async with scene.served() as server:
        assert server.url.startswith("http://127.0.0.2:")
        assert await server.status("GET", "/health") == 200


@proves("server.port", "@PORT@", instead="0")
async def it_listens_on_it(scene: Scene) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with scene.served(PORT=port) as server:
        assert server.url == f"http://127.0.0.1:{port}"


@proves("server.grace", "7")
async def what_runs_has_so_long(scene: Scene) -> None:
    graces: list[float] = []
    async with scene.served() as server:
        drain = server.gateway.drain

        async def spy(grace: float, **options: Any) -> None:
            graces.append(grace)
            await drain(grace, **options)

        server.gateway.drain = spy  # type: ignore[method-assign]
    assert graces == [7.0]


@proves("server.workers", "3")
async def so_many_are_started(scene: Scene) -> None:
    assert await _supervised(scene, lambda supervisor: supervisor._count) == 3


@proves("server.stuck_worker", "7")
async def one_that_is_silent_for_so_long_is_replaced(scene: Scene) -> None:
    assert await _supervised(scene, lambda supervisor: supervisor._config.server.stuck_worker) == 7.0


@proves("server.reload_grace", "7")
async def whoever_needs_the_old_configuration_is_waited_for_so_long(scene: Scene) -> None:
    config, graces = scene.load(), list[float]()
    async with open_house() as house:
        board = Board(create_app(await house.open(config)))
        before = board.app._gateway
        assert before is house.gateway
        reading: Any = SimpleNamespace(config=config)
        reloading = Reloading(
            config,
            house,
            board,
            read=lambda: reading,
            check=lambda config: None,
            adopt=lambda gateway, config, reading, old: create_app(gateway, ServerOptions(), old),
        )

        async def leave(runs: object, patience: float) -> None:
            graces.append(patience)

        before.users = SimpleNamespace(leave=leave)  # type: ignore[assignment]
        reloading.ask()
        await until_soon(lambda: graces)
        await until_soon(lambda: not reloading._leaving)
        await reloading.aclose()
        await board.app.aclose()
    assert graces == [7.0]


async def _supervised(scene: Scene, look: Callable[[Supervisor], float]) -> float:
    config = scene.load()
    listening = listen(config.server)
    try:
        return look(Supervisor(config, [], listening))
    finally:
        listening.close()


@proves("server.max_body", "100")
async def a_longer_body_is_refused(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            assert await server.status("POST", "/v1/responses", HELLO) == 200
            assert await server.status("POST", "/v1/responses", {**HELLO, "input": "x" * 200}) == 413


async def _pulses(scene: Scene) -> list[Any]:
    config = scene.load()
    async with scene.gateway() as gateway:
        app: Any = _make_app(gateway, config, ServerOptions())
        paths = ("/v1/responses", "/v1/chat/completions", "/v1/messages")
        return [_door(app._exact[path]["POST"])._options.server for path in paths]


def _door(handler: Any) -> Any:
    """Whose it is, also where that is loaded with its first client."""
    if hasattr(handler, "__self__"):
        return handler.__self__
    return inspect.getclosurevars(handler).nonlocals["self"]._load()


@proves("server.heartbeat", "7")
async def all_doors_tell_of_life_at_this_pace(scene: Scene) -> None:
    assert [pulse.heartbeat for pulse in await _pulses(scene)] == [7.0] * 3


@proves("server.ping", "7")
async def all_doors_ping_at_this_pace(scene: Scene) -> None:
    assert [pulse.ping for pulse in await _pulses(scene)] == [7.0] * 3


@proves("server.allow_origins", '["https://pages.example"]')
async def this_page_may_call(scene: Scene) -> None:
    async with scene.served() as server:
        assert await server.status("GET", "/v1/models", Origin="https://other.example") == 403
        assert await server.status("GET", "/v1/models", Origin="https://pages.example") == 200


@proves("server.max_concurrent", "1")
async def one_more_is_refused(scene: Scene) -> None:
    gate = Gate()
    with ScriptedUpstream.running([reply(chat_reply("held"), after=gate), chat("ok")], strict=False) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            first = asyncio.create_task(server.status("POST", "/v1/responses", HELLO))
            await upstream.received(1)
            try:
                assert await server.status("POST", "/v1/responses", HELLO) == 503
            finally:
                gate.open()
                assert await first == 200


@proves("server.api_keys", '["sk-one", "sk-two"]')
async def a_key_is_asked_for(scene: Scene) -> None:
    async with scene.served() as server:
        assert await server.status("GET", "/v1/models") == 401
        assert await server.status("GET", "/v1/models", Authorization="Bearer sk-three") == 401
        assert await server.status("GET", "/v1/models", Authorization="Bearer sk-one") == 200
        assert await server.status("GET", "/v1/models", x_api_key="sk-two") == 200


@proves("server.admin_key", '"sk-chief"', beside={"server.api_keys": '["sk-one"]'})
async def the_operator_is_known_as_one(scene: Scene) -> None:
    config = scene.load()
    async with scene.served() as server:
        assert await server.status("GET", "/v1/models", x_api_key="sk-chief") == 200
        keys = _make_app(server.gateway, config, ServerOptions())._options.keys
    asked = {"path": "/v1/models", "headers": [(b"x-api-key", b"sk-chief")]}
    assert keys.identify(asked).scopes == {"admin"}


@proves("server.api_keys_file", '"clients"')
async def the_keys_in_it_are_asked_for(scene: Scene) -> None:
    (scene.folder / "clients").write_text("sk-one\nsk-two\n")
    async with scene.served() as server:
        assert await server.status("GET", "/v1/models") == 401
        assert await server.status("GET", "/v1/models", x_api_key="sk-two") == 200


@proves("server.admin_key_file", '"chief"', beside={"server.api_keys": '["sk-one"]'})
async def the_key_in_it_opens_the_door(scene: Scene) -> None:
    (scene.folder / "chief").write_text("sk-chief\n")
    async with scene.served() as server:
        assert await server.status("GET", "/v1/models", x_api_key="sk-chief") == 200


@proves("server.open", "true", beside={"server.host": '"0.0.0.0"'})
async def it_starts_without_keys(scene: Scene) -> None:
    try:
        async with scene.served() as server:
            assert server.url.startswith("http://0.0.0.0:")
    except ConfigError as refused:
        raise AssertionError("it did not start") from refused


@contextmanager
def _written_log(scene: Scene) -> Iterator[io.StringIO]:
    root = logging.getLogger("isthmus")
    before = (root.handlers[:], root.level, root.propagate)
    written = io.StringIO()
    scene.monkeypatch.setattr("sys.stderr", written)
    try:
        yield written
    finally:
        root.handlers[:], root.level, root.propagate = before


async def _tell_from_inside(scene: Scene) -> str:
    """What `isthmus serve` writes while it runs: its own server is replaced by one that only tells two events."""

    async def serve(config: object, **options: object) -> None:
        tell(logging.getLogger("isthmus.server"), "info", "something.small", n=1)
        tell(logging.getLogger("isthmus.server"), "error", "something.large", n=2)

    scene.monkeypatch.setattr("isthmus.server.serve.serve", serve)
    file = scene.write()
    with _written_log(scene) as written:
        await asyncio.to_thread(serve_command, config=file, host=None, port=None, store=None, model=None)
    return written.getvalue()


@proves("log.level", '"error"')
async def lesser_events_are_not_written(scene: Scene) -> None:
    written = await _tell_from_inside(scene)
    assert "something.large" in written
    assert "something.small" not in written


@proves("log.format", '"json"')
async def every_line_is_an_object(scene: Scene) -> None:
    lines = (await _tell_from_inside(scene)).splitlines()
    assert all(line.startswith("{") for line in lines), lines
    assert [(line["event"], line["n"]) for line in map(json.loads, lines)] == [
        ("something.small", 1),
        ("something.large", 2),
    ]


@proves("server.thinking", '"summary"', beside=UPSTREAM)
async def all_thinking_is_told_as_a_summary(scene: Scene) -> None:
    assert await _told_thought(scene) == "summary"


@proves("server.summary_readers", '["mine/"]', beside=UPSTREAM)
async def it_is_for_a_client_that_is_named(scene: Scene) -> None:
    assert await _told_thought(scene) == "summary"


async def _told_thought(scene: Scene) -> str:
    with ScriptedUpstream.running([chat("So.", reasoning="Hm.")]) as upstream:
        async with scene.served(UPSTREAM=upstream.base_url) as server:
            asked = server.session.post(f"{server.url}/v1/responses", json=HELLO, headers={"user-agent": "mine/1"})
            async with asked as answer:
                [item, *_] = (await answer.json())["output"]
    return "summary" if item["summary"] else "content"


@proves("server.compat", '"open-responses"')
async def errors_have_the_types_of_the_specification(scene: Scene) -> None:
    async with scene.served() as server, server.session.get(f"{server.url}/v1/responses/resp_none") as answer:
        assert (await answer.json())["error"]["type"] == "not_found"
