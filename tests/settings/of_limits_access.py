"""Proofs for how much callers, teams and models may have, and for what is kept of their use."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from isthmus.bridge.parse import parse_request
from isthmus.errors import IsthmusError, StoreUnavailable
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.gateway import Gateway
from isthmus.ports.keys import Budget, Grant
from isthmus.ports.spending import Use
from isthmus.store.memory import MemoryStore
from isthmus.testing import HANG, ScriptedUpstream, chat, chat_chunks, stream
from settings.proving import Scene, proves

UPSTREAM = {
    "providers.main.base_url": '"@UPSTREAM@"',
    'providers.main.models."*".cost': "{ input = 1.0, output = 1.0 }",
}
TEAM = Caller("team:main", key="key_a", team="main")
DEAR = {"max_output_tokens": 1_000_000}
"""Two dollars, at the most, with what is sent."""


async def _ask(gateway: Gateway, caller: Caller = LOCAL, **more: Any) -> str:
    body = {"model": "main/some-model", "input": "hi", "store": False, **more}
    try:
        run = await gateway.create(caller, parse_request(body))
        return (await run.fold())["status"]
    except IsthmusError as refused:
        return refused.code


async def _asked(scene: Scene, caller: Caller = LOCAL, *bodies: dict[str, Any]) -> list[str]:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            return [await _ask(gateway, caller, **body) for body in bodies or ({}, {})]


async def _at_once(scene: Scene, caller: Caller = LOCAL, **more: Any) -> str:
    """What becomes of a second one while a first one runs."""
    slow = stream([*chat_chunks("Hello.", pieces=3)[:2], HANG])
    with ScriptedUpstream.running([slow], default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            first = asyncio.create_task(_ask(gateway, caller, stream=True))
            await upstream.received(1)
            second = await _ask(gateway, caller, **more)
            gateway.runs.stop_all("shutdown")
            await first
            return second


REFUSED = ["completed", "rate_limit_exceeded"]


@proves("limits.requests_per_minute", "1")
@proves("limits.models.NAME.requests_per_minute", "1", at='limits.models."main/*".requests_per_minute')
async def more_requests_are_refused(scene: Scene) -> None:
    assert await _asked(scene) == REFUSED


@proves("limits.tokens_per_minute", "1100")
@proves("limits.models.NAME.tokens_per_minute", "1100", at='limits.models."main/*".tokens_per_minute')
async def more_tokens_are_refused(scene: Scene) -> None:
    assert await _asked(scene, LOCAL, {"max_output_tokens": 16}, {"max_output_tokens": 1090}) == REFUSED


@proves("limits.concurrent_requests", "1")
@proves("limits.models.NAME.concurrent_requests", "1", at='limits.models."main/*".concurrent_requests')
async def more_at_the_same_time_are_refused(scene: Scene) -> None:
    assert await _at_once(scene) == "rate_limit_exceeded"


@proves("limits.concurrent_streams", "1")
@proves("limits.models.NAME.concurrent_streams", "1", at='limits.models."main/*".concurrent_streams')
async def more_streams_are_refused(scene: Scene) -> None:
    assert await _at_once(scene, stream=True) == "rate_limit_exceeded"


@proves("teams.NAME.requests_per_minute", "1")
async def a_team_gets_so_many_requests(scene: Scene) -> None:
    assert await _asked(scene, TEAM) == REFUSED


@proves("teams.NAME.tokens_per_minute", "1100")
async def a_team_gets_so_many_tokens(scene: Scene) -> None:
    assert await _asked(scene, TEAM, {"max_output_tokens": 16}, {"max_output_tokens": 1090}) == REFUSED


@proves("teams.NAME.concurrent_requests", "1")
async def a_team_gets_so_many_at_a_time(scene: Scene) -> None:
    assert await _at_once(scene, TEAM) == "rate_limit_exceeded"


@proves("teams.NAME.concurrent_streams", "1")
async def a_team_gets_so_many_streams(scene: Scene) -> None:
    assert await _at_once(scene, TEAM, stream=True) == "rate_limit_exceeded"


@proves("teams.NAME.daily_budget", "0.5")
@proves("teams.NAME.monthly_budget", "0.5")
async def a_team_has_so_much_money(scene: Scene) -> None:
    assert await _asked(scene, TEAM, {}, DEAR) == ["completed", "insufficient_quota"]


@proves("teams.NAME.models", '["main/small"]')
async def a_team_has_these_models(scene: Scene) -> None:
    """A key of the team is refused another model; that of nobody's team is not."""
    with ScriptedUpstream.running(default=chat("ok"), strict=False) as upstream:
        places = {**UPSTREAM, "server.admin_key": '"chief-key-0123456789"'}
        async with scene.served(places, UPSTREAM=upstream.base_url) as served:
            secrets, chief = list[str](), {"x-api-key": "chief-key-0123456789"}
            for wish in ({"name": "ann", "team": "main"}, {"name": "bob"}):
                async with served.session.post(f"{served.url}/v1/isthmus/keys", json=wish, headers=chief) as made:
                    secrets.append((await made.json())["key"])
            asked = [
                await served.status("POST", "/v1/responses", {"model": model, "input": "hi"}, x_api_key=secret)
                for secret in secrets
                for model in ("main/small", "main/large")
            ]
            assert asked == [200, 403, 200, 200]


@proves("teams.NAME.upstream_keys", '{ main = "sk-team" }')
async def a_team_has_keys_of_its_own(scene: Scene) -> None:
    """Who sends them is the provider's own."""
    assert [team.upstream_keys for team in scene.load().teams.values()] == [{"main": "sk-team"}]


def _away() -> str:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        return f"redis://127.0.0.1:{gone.getsockname()[1]}/0"


@proves(
    "limits.redis",
    '"redis://127.0.0.1:1/0"',
    beside={"limits.requests_per_minute": "5", "limits.redis_down": '"refuse"'},
)
async def limits_are_counted_there(scene: Scene) -> None:
    assert await _asked(scene) == ["limits_unavailable", "limits_unavailable"]


@proves("limits.redis_down", '"refuse"', beside={"limits.requests_per_minute": "5"})
async def while_it_is_away_nobody_is_let_through(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        beside = {**UPSTREAM, "limits.redis": f'"{_away()}"'}
        async with scene.gateway(beside, UPSTREAM=upstream.base_url) as gateway:
            assert await _ask(gateway) == "limits_unavailable"


@proves("limits.redis_timeout", '"50ms"', beside={"limits.requests_per_minute": "5"})
async def it_has_so_long_to_answer(scene: Scene) -> None:
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
    ):
        beside = {**UPSTREAM, "limits.redis": f'"redis://127.0.0.1:{silent.getsockname()[1]}/0"'}
        async with scene.gateway(beside, UPSTREAM=upstream.base_url) as gateway:
            assert await _ask(gateway) == "completed"
            gate: Any = gateway.gates.admission
            assert gate._limiter._counters.places._within._seconds == 0.05


@proves("limits.assumed_output", "1_000_000")
async def so_much_is_set_aside_for_an_answer(scene: Scene) -> None:
    poor = replace(TEAM, team="", grant=Grant(budget=Budget(day=0.5)))
    assert await _asked(scene, poor, {}) == ["insufficient_quota"]


@proves("limits.unpriced", '"refuse"')
async def a_model_without_a_price_is_refused(scene: Scene) -> None:
    rich = replace(TEAM, team="", grant=Grant(budget=Budget(day=0.5)))
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        beside = {"providers.main.base_url": '"@UPSTREAM@"'}
        async with scene.gateway(beside, UPSTREAM=upstream.base_url) as gateway:
            assert await _ask(gateway, rich) == "model_unpriced"


@proves("limits.hold", '"7s"')
async def so_long_it_is_missed(scene: Scene) -> None:
    held: list[float] = []

    async def hold(self: MemoryStore, id: str, holds: Any, *, seconds: float) -> None:
        held.append(seconds)

    scene.monkeypatch.setattr(MemoryStore, "hold", hold)
    rich = replace(TEAM, team="", grant=Grant(budget=Budget(day=0.5)))
    assert await _asked(scene, rich, {}) == ["completed"]
    assert held == [7.0]


@proves("usage.keep_days", "3")
async def so_long_it_is_kept(scene: Scene) -> None:
    pruned: asyncio.Queue[str] = asyncio.Queue()

    async def prune(self: MemoryStore, *, before: str) -> int:
        pruned.put_nowait(before)
        return 0

    scene.monkeypatch.setattr(MemoryStore, "prune_uses", prune)
    async with scene.gateway():
        before = await pruned.get()
    days = {(datetime.now(UTC) - timedelta(days=3, minutes=late)).strftime("%Y-%m-%d") for late in (0, 10)}
    assert before in days


@proves("usage.max_waiting", "2")
async def so_much_may_wait(scene: Scene) -> None:
    async def away(self: MemoryStore, uses: Any) -> None:
        raise StoreUnavailable("gone")

    scene.monkeypatch.setattr(MemoryStore, "note_uses", away)
    async with scene.gateway() as gateway:
        gate: Any = gateway.gates.admission
        for number in range(3):
            gate.ledger.note([Use("2026-11-17", "o", "k", "", "p", f"m{number}", 1)])
        assert gate.ledger.lost == 1
