"""Proofs for `[providers.NAME]`: where requests go, what they carry, how long they may take."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from isthmus.bridge.parse import parse_request
from isthmus.gateway.caller import LOCAL
from isthmus.testing import RecordedRequest, ScriptedUpstream, chat
from isthmus.testing.replies import chat_reply
from isthmus.upstream.retry import RetryingBackend
from settings.proving import Scene, ask, http_places, proves

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
CERTIFICATE = Path(__file__).parents[1] / "upstream" / "self_signed.pem"
PROXIES = [name for word in ("http", "https", "no", "all") for name in (f"{word}_proxy", f"{word.upper()}_PROXY")]


async def _sent(scene: Scene, count: int = 1, beside: dict[str, str] | None = None) -> list[RecordedRequest]:
    """What the provider was sent for so many requests."""
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM if beside is None else beside, UPSTREAM=upstream.base_url) as gateway:
            for _ in range(count):
                await ask(gateway)
        return list(upstream.requests)


def _keys(requests: list[RecordedRequest]) -> list[str | None]:
    return [request.headers.get("authorization") for request in requests]


# ── where to ───────────────────────────────────────────────────────────────────────────────────────


@proves("providers.NAME.uses", '"deepseek"', at="providers.vllm.uses", beside={"providers.vllm.api_key": '"sk-1"'})
async def its_facts_are_those_of_that_file(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.directory.served["vllm"].provider.name == "deepseek"
        assert "deepseek" in http_places(gateway, "vllm")[0].wire.endpoint.url


@proves("providers.NAME.base_url", '"http://127.0.0.9:9/v2"')
async def requests_go_there(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert http_places(gateway)[0].wire.endpoint.url == "http://127.0.0.9:9/v2/chat/completions"


KIMI = {"providers.kimi.api_key": '"sk-1"'}


@proves("providers.NAME.endpoint", '"china"', at="providers.kimi.endpoint", beside=KIMI)
async def requests_go_to_the_other_address_of_the_file(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert http_places(gateway, "kimi")[0].wire.endpoint.url.startswith("https://api.moonshot.cn/v1/")


@proves(
    "providers.NAME.variables",
    '{ AZURE_RESOURCE_NAME = "acme" }',
    at="providers.azure.variables",
    beside={"providers.azure.api_key": '"k"'},
    instead='{ AZURE_RESOURCE_NAME = "other" }',
)
async def the_address_is_filled_with_them(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        url = http_places(gateway, "azure")[0].wire.endpoint.url
    assert url == "https://acme.openai.azure.com/openai/v1/responses"


@proves("providers.NAME.dialect", '"chat"', at="providers.openai.dialect", beside={"providers.openai.api_key": '"k"'})
async def it_is_spoken(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert http_places(gateway, "openai")[0].wire.endpoint.url.endswith("/chat/completions")
        assert gateway.directory.find("openai/gpt-4o").target.capabilities.dialect == "chat"


@proves(
    "providers.NAME.endpoints.base_url",
    '[{ base_url = "http://127.0.0.8:9/v2" }, { base_url = "http://127.0.0.9:9/v2" }]',
    at="providers.main.endpoints",
    instead="[{}, {}]",
)
async def requests_go_to_every_place(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        urls = [place.wire.endpoint.url for place in http_places(gateway)]
    assert urls == [f"http://127.0.0.{number}:9/v2/chat/completions" for number in (8, 9)]


@proves(
    "providers.NAME.endpoints.api_key",
    '[{ base_url = "@UPSTREAM@", api_key = "sk-place" }]',
    at="providers.main.endpoints",
    beside={"providers.main.api_key": '"sk-all"'},
    instead='[{ base_url = "@UPSTREAM@" }]',
)
async def the_place_is_shown_its_own_key(scene: Scene) -> None:
    assert _keys(await _sent(scene, beside={})) == ["Bearer sk-place"]


@proves(
    "providers.NAME.endpoints.api_key_file",
    '[{ base_url = "@UPSTREAM@", api_key_file = "secret" }]',
    at="providers.main.endpoints",
    beside={"providers.main.api_key": '"sk-all"'},
    instead='[{ base_url = "@UPSTREAM@" }]',
)
async def the_place_is_shown_what_its_own_file_holds(scene: Scene) -> None:
    (scene.folder / "secret").write_text("sk-file\n")
    assert _keys(await _sent(scene, beside={})) == ["Bearer sk-file"]


@proves(
    "providers.NAME.endpoints.headers",
    '[{ base_url = "@UPSTREAM@", headers = { x-place = "here" } }]',
    at="providers.main.endpoints",
    beside={"providers.main.headers": '{ x-all = "yes" }'},
    instead='[{ base_url = "@UPSTREAM@" }]',
)
async def the_place_is_sent_its_own_headers_too(scene: Scene) -> None:
    (request,) = await _sent(scene, beside={})
    assert (request.headers.get("x-place"), request.headers.get("x-all")) == ("here", "yes")


# ── what they carry ────────────────────────────────────────────────────────────────────────────────


@proves("providers.NAME.api_key", '"sk-mine"')
async def it_is_shown(scene: Scene) -> None:
    assert _keys(await _sent(scene)) == ["Bearer sk-mine"]


@proves("providers.NAME.api_key_file", '"secret"')
async def what_the_file_holds_is_shown(scene: Scene) -> None:
    (scene.folder / "secret").write_text("sk-file\n")
    assert _keys(await _sent(scene)) == ["Bearer sk-file"]


@proves("providers.NAME.api_keys", '["sk-one", "sk-two"]')
async def they_are_shown_in_turn(scene: Scene) -> None:
    assert _keys(await _sent(scene, 3)) == ["Bearer sk-one", "Bearer sk-two", "Bearer sk-one"]


@proves("providers.NAME.headers", '{ x-mine = "yes" }')
async def they_are_sent(scene: Scene) -> None:
    (request,) = await _sent(scene)
    assert request.headers.get("x-mine") == "yes"


@proves("providers.NAME.query", '{ version = "7" }')
async def it_is_added_to_the_address(scene: Scene) -> None:
    (request,) = await _sent(scene)
    assert request.query == {"version": ["7"]}


@proves("providers.NAME.models", '{ "some-*" = { limits = { context = 4321 } } }')
async def the_facts_are_known(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.directory.find("main/some-model").target.capabilities.limits.context == 4321


# ── how ────────────────────────────────────────────────────────────────────────────────────────────


async def _ways(scene: Scene, environment_names_one: bool) -> tuple[int, int]:
    """How many of one request went straight to the provider, and through a proxy."""
    for name in PROXIES:
        scene.monkeypatch.delenv(name, raising=False)
    with (
        ScriptedUpstream.running(default=chat("straight")) as upstream,
        ScriptedUpstream.running(default=chat("round")) as proxy,
    ):
        if environment_names_one:
            scene.monkeypatch.setenv("http_proxy", proxy.url)
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url, PROXY=proxy.url) as gateway:
            await ask(gateway)
        return len(upstream.requests), len(proxy.requests)


@proves("providers.NAME.proxy", '"direct"')
async def the_environment_names_no_proxy(scene: Scene) -> None:
    assert await _ways(scene, environment_names_one=True) == (1, 0)


@proves("providers.NAME.proxy", '"@PROXY@"')
async def requests_go_through_it(scene: Scene) -> None:
    assert await _ways(scene, environment_names_one=False) == (0, 1)


@asynccontextmanager
async def _self_signed() -> AsyncIterator[str]:
    """A TLS server whose certificate nobody vouches for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().splitlines() if b"content-length:" in line)
        await reader.readexactly(length)
        body = msgspec.json.encode(chat_reply("over TLS"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
        writer.write(b"content-length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@proves("providers.NAME.verify_tls", "false")
async def any_certificate_will_do(scene: Scene) -> None:
    async with _self_signed() as address, scene.gateway(UPSTREAM, UPSTREAM=address) as gateway:
        assert (await ask(gateway))["output_text"] == "over TLS"


@proves("providers.NAME.max_connections", "1")
async def one_more_has_to_wait(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        (place,) = http_places(gateway)
        assert place.queue == 0
        await place.wire._take_place("")
        assert place.queue == 1


@proves("providers.NAME.max_queued", "0")
async def nobody_may_wait(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert [place.wire.endpoint.max_queued for place in http_places(gateway)] == [0]


@proves("providers.NAME.retries", "7", instead="0")
async def it_is_asked_again_so_often(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        backend = gateway.directory.served["main"].backend
        assert isinstance(backend, RetryingBackend)
        assert backend._rule.retries == 7


@proves("providers.NAME.retries", "0")
async def it_is_not_asked_again(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.directory.served["main"].backend is http_places(gateway)[0]


@proves("providers.NAME.timeouts.connect", "7")
async def a_connection_may_take_so_long(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert [place.wire.endpoint.patience.connect for place in http_places(gateway)] == [7.0]


@proves("providers.NAME.timeouts.first_byte", "7")
async def an_answer_may_take_so_long(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert [place.wire.endpoint.patience.first_byte for place in http_places(gateway)] == [7.0]


@proves("providers.NAME.timeouts.idle", "7")
async def an_answer_may_be_silent_so_long(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert [place.wire.endpoint.patience.idle for place in http_places(gateway)] == [7.0]


@proves("providers.NAME.timeouts.total", "7")
async def a_run_may_take_so_long(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        run: Any = await gateway.create(LOCAL, parse_request({"model": "main/some-model", "input": "hi"}))
        assert run._total == 7.0
