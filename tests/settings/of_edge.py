"""Proofs for the part of `[server]` that stands before the first handler: sockets, heads, bodies, proxies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isthmus.config.schema import Server
from isthmus.errors import ConfigError
from isthmus.server.app import App
from isthmus.server.options import ServerOptions
from isthmus.server.reload import Board
from isthmus.server.serve import _make_app, _uvicorn_config
from settings.proving import Scene, proves

CERTIFICATE = Path(__file__).parents[1] / "upstream" / "self_signed.pem"


@proves("server.unix_socket", '"@FOLDER@/gateway.sock"')
async def it_listens_on_this_file(scene: Scene) -> None:
    async with scene.served() as server:
        assert server.url == f"unix:{scene.folder}/gateway.sock"
        assert (scene.folder / "gateway.sock").is_socket()


async def _speaks_https(scene: Scene) -> None:
    try:
        async with scene.served() as server:
            assert server.url.startswith("https://")
            async with server.session.get(f"{server.url}/health", ssl=False) as answer:
                assert answer.status == 200
    except ConfigError as refused:
        raise AssertionError("half of it is missing") from refused


@proves("server.tls_cert", f'"{CERTIFICATE}"', beside={"server.tls_key": f'"{CERTIFICATE}"'})
async def it_shows_this_certificate(scene: Scene) -> None:
    await _speaks_https(scene)


@proves("server.tls_key", f'"{CERTIFICATE}"', beside={"server.tls_cert": f'"{CERTIFICATE}"'})
async def it_proves_it_with_this_key(scene: Scene) -> None:
    await _speaks_https(scene)


@proves("server.path_prefix", '"/below"')
async def it_is_served_below_it(scene: Scene) -> None:
    async with scene.served() as server:
        assert await server.status("GET", "/below/health") == 200


@proves("server.trusted_proxies", '["127.0.0.0/8"]')
async def what_it_says_of_the_client_is_believed(scene: Scene) -> None:
    async with scene.served() as server:
        told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        async with server.session.get(f"{server.url}/nowhere", headers=told) as answer:
            assert server.url.replace("http:", "https:") in (await answer.json())["error"]["message"]


@proves("server.max_head", "400")
async def a_larger_head_is_refused(scene: Scene) -> None:
    async with scene.served() as server:
        assert await server.status("GET", "/health") == 200
        assert await server.status("GET", "/health", X="x" * 500) == 431


async def _limits(scene: Scene) -> tuple[Server, Server, App]:
    config = scene.load()
    async with scene.gateway() as gateway:
        app = _make_app(gateway, config, ServerOptions())
        http: Any = _uvicorn_config(Board(app), config).http
        return http.limits, app._bodies._limits, app


@proves("server.head_timeout", "7")
async def heads_have_so_long(scene: Scene) -> None:
    limits, _, _ = await _limits(scene)
    assert limits.head_timeout == 7.0


@proves("server.max_connections", "7")
async def so_many_connections_are_open(scene: Scene) -> None:
    limits, _, _ = await _limits(scene)
    assert limits.max_connections == 7


@proves("server.body_timeout", "7")
async def bodies_have_so_long(scene: Scene) -> None:
    _, bodies, _ = await _limits(scene)
    assert bodies.body_timeout == 7.0


@proves("server.min_body_rate", "7")
async def bodies_come_so_fast(scene: Scene) -> None:
    _, bodies, _ = await _limits(scene)
    assert bodies.min_body_rate == 7


@proves("server.max_bodies", "7")
async def bodies_take_so_much(scene: Scene) -> None:
    _, bodies, _ = await _limits(scene)
    assert bodies.max_bodies == 7


@proves("server.ready_interval", "7")
async def what_was_found_out_holds_so_long(scene: Scene) -> None:
    _, _, app = await _limits(scene)
    status: Any = app._exact["/ready"]["GET"]
    assert status.__self__._readiness._interval == 7.0
