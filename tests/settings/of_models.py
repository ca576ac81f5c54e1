"""Proofs for `provider_folders`, `[models]`, `[plan]` and `[checks]`: what a name means, and what is made of a request.

What the library (`Bridge`) reads from the same file is shown beside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from isthmus.bridge.parse import parse_request
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL
from isthmus.gateway.gateway import Gateway
from isthmus.testing import ScriptedUpstream, chat, reply
from isthmus.wiring_bridge import Bridge
from isthmus.workers.pool import WorkerPool
from settings.proving import PATIENCE, Scene, ask, http_places, proves, refusal

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
TWO = {"providers.other.uses": '"openai-compatible"'}


@asynccontextmanager
async def _library(scene: Scene) -> AsyncIterator[Bridge]:
    file = scene.write()
    async with Bridge.from_env(config_file=file, environ={"HOME": str(scene.folder)}) as bridge:
        yield bridge


def _meant(gateway: Gateway, name: str | None) -> str:
    try:
        target = gateway.directory.find(name).target
    except RequestRefused as refused:
        return str(refused.code)
    return f"{target.provider}/{target.model}"


# ── names ──────────────────────────────────────────────────────────────────────────────────────────


def _own_file(scene: Scene) -> None:
    (scene.folder / "mine").mkdir(exist_ok=True)
    (scene.folder / "mine" / "openai-compatible.toml").write_text('endpoint = { base_url = "http://127.0.0.9:9/v1" }\n')


@proves("provider_folders", '["mine"]')
async def its_files_override_ours(scene: Scene) -> None:
    _own_file(scene)
    async with scene.gateway() as gateway:
        assert http_places(gateway)[0].wire.endpoint.url.startswith("http://127.0.0.9:9/v1/")


@proves("provider_folders", '["mine"]')
async def its_files_override_ours_in_the_library(scene: Scene) -> None:
    _own_file(scene)
    async with _library(scene) as bridge:
        line: Any = (await bridge._connect.find("main/m")).line
        assert line._backend.wire.endpoint.url.startswith("http://127.0.0.9:9/v1/")


@proves("models.default", '"other/chosen"', beside=TWO)
async def a_request_without_a_model_gets_it(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert _meant(gateway, None) == "other/chosen"
        assert _meant(gateway, "bare") == "other/bare"


@proves("models.default", '"other/chosen"', beside=TWO)
async def a_call_without_a_model_gets_it(scene: Scene) -> None:
    async with _library(scene) as bridge:
        try:
            route = await bridge._connect.find(None)
        except RequestRefused as refused:
            raise AssertionError("no model was found") from refused
        assert (route.line.provider, route.model) == ("other", "chosen")


@proves("models.aliases", '{ quick = "other/small" }', beside=TWO)
async def the_name_means_it(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert _meant(gateway, "quick") == "other/small"


@proves("models.aliases", '{ quick = "other/small" }', beside=TWO)
async def the_name_means_it_in_the_library(scene: Scene) -> None:
    async with _library(scene) as bridge:
        try:
            route = await bridge._connect.find("quick")
        except RequestRefused as refused:
            raise AssertionError("no model was found") from refused
        assert (route.line.provider, route.model) == ("other", "small")


@proves("models.fallbacks", '{ "main/some-model" = ["other/spare"] }', beside=TWO)
async def another_model_takes_its_place(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("spare")) as upstream:
        dead = {"providers.main.base_url": '"http://127.0.0.1:1/v1"', "providers.other.base_url": '"@UPSTREAM@"'}
        async with scene.gateway(dead, UPSTREAM=upstream.base_url) as gateway:
            response = await ask(gateway)
        assert response["status"] == "completed"
        assert [request.json["model"] for request in upstream.requests] == ["spare"]


@proves("models.demo", "false")
async def the_demo_is_not_offered(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert list(gateway.directory.served) == ["main"]


@proves("models.listed", "3", beside={"providers.nebius.api_key": '"k"'})
async def so_many_models_of_a_provider_without_a_file_are_listed(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert len(await gateway.directory.served["nebius"].models()) == 3


# ── plans ──────────────────────────────────────────────────────────────────────────────────────────


async def _planned(gateway: Gateway, **fields: Any) -> Any:
    return await gateway.plan_only(LOCAL, parse_request({"model": "main/some-model", "input": "hi", **fields}))


@proves("plan.strict", "true")
async def what_cannot_be_done_is_refused(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        refused = await refusal(_planned(gateway, top_logprobs=3))
    assert refused.code == "bridge.request.unsupported_parameter"


@proves("plan.repair_budget", "3")
async def a_model_may_be_asked_again_so_often(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert (await _planned(gateway)).repair_budget == 3


async def _planned_in_the_library(scene: Scene, **fields: Any) -> Any:
    async with _library(scene) as bridge:
        line: Any = (await bridge._connect.find("main/m")).line
        request = parse_request({"model": "m", "input": "hi", **fields})
        return line._attempt(request, line._target("m"), "resp_1").plan


@proves("plan.strict", "true")
async def what_cannot_be_done_is_refused_in_the_library(scene: Scene) -> None:
    refused = await refusal(_planned_in_the_library(scene, top_logprobs=3))
    assert refused.code == "bridge.request.unsupported_parameter"


@proves("plan.repair_budget", "3")
async def a_model_may_be_asked_again_so_often_in_the_library(scene: Scene) -> None:
    assert (await _planned_in_the_library(scene)).repair_budget == 3


# ── checks ─────────────────────────────────────────────────────────────────────────────────────────


async def _pools(scene: Scene) -> list[WorkerPool]:
    """The processes of the gateway and those of the library."""
    async with scene.gateway() as gateway, _library(scene) as bridge:
        line: Any = (await bridge._connect.find("main/m")).line
        checkers: list[Any] = [gateway._checker, line._checker]
        return [checker._workers for checker in checkers]


@proves("checks.workers", "3")
async def there_are_so_many_places_for_quick_checks(scene: Scene) -> None:
    assert [pool._quick._value for pool in await _pools(scene)] == [3, 3]


@proves("checks.slow_workers", "3")
async def there_are_so_many_places_for_slow_checks(scene: Scene) -> None:
    assert [pool._slow._value for pool in await _pools(scene)] == [3, 3]


def _reaches_the_pool(name: str, value: str, meant: float) -> None:
    async def the_pool_is_told(scene: Scene) -> None:
        assert [getattr(pool._options, name) for pool in await _pools(scene)] == [meant, meant]

    proves(f"checks.{name}", value)(the_pool_is_told)


_reaches_the_pool("quick", '"250ms"', 0.25)
_reaches_the_pool("deadline", "7", 7.0)
_reaches_the_pool("idle", "7", 7.0)
_reaches_the_pool("memory", '"100MB"', 100_000_000)
_reaches_the_pool("queue", "7", 7)
_reaches_the_pool("wait", "7", 7.0)


@proves("checks.cache", "7")
async def so_much_is_remembered(scene: Scene) -> None:
    async with scene.gateway() as gateway, _library(scene) as bridge:
        line: Any = (await bridge._connect.find("main/m")).line
        checkers: list[Any] = [gateway._checker, line._checker]
        assert [checker._known._most for checker in checkers] == [7, 7]


def _flat(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TWICE = {**_flat(a={"$ref": "#/$defs/n"}, b={"$ref": "#/$defs/n"}), "$defs": {"n": _flat(c={"type": "string"})}}
PATTERNS = _flat(a={"type": "string", "pattern": "^aaaa$"}, b={"type": "string", "pattern": "^bbbb$"})


def _bounds_schemas(name: str, value: str, schema: dict[str, Any]) -> None:
    format = {"type": "json_schema", "name": "s", "schema": schema, "strict": True}

    async def a_larger_schema_is_refused(scene: Scene) -> None:
        async with scene.gateway() as gateway:
            refused = await refusal(_planned(gateway, text={"format": format}))
        assert f"checks.{name}" in refused.message

    async def a_larger_schema_is_refused_in_the_library(scene: Scene) -> None:
        async with _library(scene) as bridge:
            line: Any = (await bridge._connect.find("main/m")).line
            request = {"model": "m", "input": "hi", "text": {"format": format}}
            refused = await refusal(anext(line.events(request)))
        assert f"checks.{name}" in refused.message

    proves(f"checks.{name}", value)(a_larger_schema_is_refused)
    proves(f"checks.{name}", value)(a_larger_schema_is_refused_in_the_library)


_bounds_schemas("max_schema", "10", _flat(a={"type": "string"}))
_bounds_schemas("max_nodes", "2", _flat(a={"type": "string"}))
_bounds_schemas("max_depth", "2", _flat(a=_flat(b={"type": "string"})))
_bounds_schemas("max_expanded", "10", TWICE)
_bounds_schemas("max_patterns", "1", PATTERNS)
_bounds_schemas("max_pattern", "5", PATTERNS)
_bounds_schemas("max_pattern_total", "10", PATTERNS)
_bounds_schemas("max_regex", "1000", _flat(a={"type": "string", "pattern": r"(\w{3}x){20}"}))


# ── what servers say of themselves ─────────────────────────────────────────────────────────────────


async def _asked(scene: Scene, age: float = 0.0) -> int:
    """How often a server is asked about its models: at the start, and when it is used so many seconds later."""
    listing = reply({"data": [{"id": "m", "max_model_len": 4096}]})
    with ScriptedUpstream.running(routes={"/v1/models": listing}) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            await gateway.words.settled(PATIENCE)
            now = gateway.words._now
            scene.monkeypatch.setattr(gateway.words, "_now", lambda: now() + age)
            await gateway.words.settled(PATIENCE)
        return sum(request.path == "/v1/models" for request in upstream.requests)


@proves("models.refresh", '"10s"')
async def a_word_that_is_older_is_heard_anew(scene: Scene) -> None:
    assert await _asked(scene, age=60) == 2


@proves("models.refresh", "0")
async def nobody_is_asked_at_all(scene: Scene) -> None:
    assert await _asked(scene) == 0


@proves("providers.NAME.ask", "false")
async def this_one_is_not_asked(scene: Scene) -> None:
    assert await _asked(scene) == 0
