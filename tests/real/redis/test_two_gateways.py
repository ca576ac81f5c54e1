"""Two gateways, one Redis, 64 clients: limits hold for both together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from isthmus.ports.keys import Grant, Rates
from isthmus.testing import ScriptedUpstream, chat
from keyed import stored_key
from limited import TOKENS, bearer, house_toml, keep_keys
from real.redis.conftest import Redis
from serving import running_gateway_process
from talking import Talk

pytestmark = pytest.mark.real

CLIENTS = 64


def storm(folder: Path, redis: Redis, rates: Rates, count: int, *, rounds: int = 1) -> list[int]:
    """Statuses of so many requests, half of them to each gateway."""
    database = folder / "limited.db"
    keep_keys(database, stored_key("ann", grant=Grant(rates=rates)))
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream.running(default=chat("Hello.")))
        toml = house_toml(upstream, database, f'[limits]\nredis = "{redis.url}"\nredis_timeout = "20s"\n')
        talks = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            gateway = stack.enter_context(running_gateway_process(toml, folder / name))
            talks.append(Talk(gateway.url))
        body = {"input": "hi", "store": False, "max_output_tokens": 16}

        def ask(number: int) -> int:
            return talks[number % 2].post("/v1/responses", body, bearer("ann")).status

        statuses: list[int] = []
        with ThreadPoolExecutor(CLIENTS) as clients:
            for _ in range(rounds):
                statuses += clients.map(ask, range(count))
        assert len(upstream.requests) == statuses.count(200)
        return statuses


def test_requests_are_exact(tmp_path: Path, redis: Redis) -> None:
    statuses = storm(tmp_path, redis, Rates(requests_per_minute=100), 256)
    assert (statuses.count(200), statuses.count(429)) == (100, 156)


def test_tokens_are_exact_within_one_percent(tmp_path: Path, redis: Redis) -> None:
    most = 150 * TOKENS
    statuses = storm(tmp_path, redis, Rates(tokens_per_minute=most), CLIENTS, rounds=12)
    used = statuses.count(200) * TOKENS
    assert most - 200 <= used <= most * 1.01
