"""Proofs for how upstreams are shared: who waits how long, who is left alone, whose key is shown, who is chosen."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.parse import parse_request
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.testing import ScriptedUpstream, chat
from settings.proving import Scene, http_places, proves

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}


def _reaches_the_wire(name: str, value: str, meant: Any) -> None:
    async def the_queue_is_told(scene: Scene) -> None:
        async with scene.gateway() as gateway:
            assert [getattr(place.wire.endpoint, name) for place in http_places(gateway)] == [meant]

    proves(f"providers.NAME.{name}", value)(the_queue_is_told)


_reaches_the_wire("max_queued_per_owner", "7", 7)
_reaches_the_wire("queue_timeout", '"7s"', 7.0)


def _reaches_the_breaker(name: str, value: str, meant: float) -> None:
    async def the_breaker_is_told(scene: Scene) -> None:
        async with scene.gateway() as gateway:
            assert [getattr(place.wire.breaker._rule, name) for place in http_places(gateway)] == [meant]

    proves(f"providers.NAME.breaker.{name}", value)(the_breaker_is_told)


_reaches_the_breaker("failures", "7", 7)
_reaches_the_breaker("failures", "0", 0)
_reaches_the_breaker("first_rest", '"7s"', 7.0)
_reaches_the_breaker("longest_rest", '"7s"', 7.0)


async def _shown(scene: Scene, caller: Caller) -> str | None:
    """The key that the provider is shown for this caller."""
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            run = await gateway.create(caller, parse_request({"model": "main/some-model", "input": "hi"}))
            await run.fold()
        return upstream.requests[-1].headers.get("authorization")


SALES = Caller(owner="team:sales", key="key_1", team="sales")


@proves("providers.NAME.keys_for", '{ "team:sales" = "sk-sales" }')
async def the_team_goes_with_its_own_key(scene: Scene) -> None:
    assert await _shown(scene, SALES) == "Bearer sk-sales"


@proves("providers.NAME.keys_for", '{ key_1 = "sk-one" }')
async def the_caller_goes_with_their_own_key(scene: Scene) -> None:
    assert await _shown(scene, SALES) == "Bearer sk-one"


@proves("teams.NAME.upstream_keys", '{ main = "sk-sales" }', at="teams.sales.upstream_keys")
async def the_team_goes_with_the_key_that_it_names(scene: Scene) -> None:
    assert await _shown(scene, SALES) == "Bearer sk-sales"


# ── choices ────────────────────────────────────────────────────────────────────────────────────────

OTHER = {"providers.other.uses": '"openai-compatible"', "providers.other.base_url": '"http://127.0.0.9:9/v1"'}
BOTH = {**OTHER, "models.choices.mix.targets": '["main/m", "other/m"]'}
ADDRESS = {"providers.main.base_url": '"http://127.0.0.9:9/v1"'}


async def _taken(scene: Scene, count: int) -> list[str]:
    """Whose turn it is for so many requests."""
    async with scene.gateway(ADDRESS) as gateway:
        asked = parse_request({"model": "mix", "input": "hi"})
        runs = [await gateway.create(LOCAL, asked) for _ in range(count)]
        return [run.plan.target.provider for run in runs]


@proves(
    "models.choices.NAME.targets",
    '["other/m"]',
    at="models.choices.mix.targets",
    beside=OTHER,
    instead='["main/m"]',
)
async def it_is_one_of_them(scene: Scene) -> None:
    assert await _taken(scene, 2) == ["other", "other"]


@proves("models.choices.NAME.weights", "[1, 3]", at="models.choices.mix.weights", beside=BOTH)
async def they_are_taken_so_often(scene: Scene) -> None:
    assert sorted(await _taken(scene, 4)) == ["main", "other", "other", "other"]


@proves("models.choices.NAME.by", '"order"', at="models.choices.mix.by", beside=BOTH)
async def they_are_taken_in_that_way(scene: Scene) -> None:
    assert await _taken(scene, 3) == ["main", "main", "main"]
