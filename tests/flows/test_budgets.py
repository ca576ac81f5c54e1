"""Budgets and usage, from a key in the store to the bill: each run is settled once, whatever becomes of it."""

from __future__ import annotations

import asyncio
import csv
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from isthmus.ports.keys import Budget, Grant
from isthmus.ports.spending import NANO
from isthmus.store.sqlite.store import SqliteStore
from isthmus.testing import CUT, HANG, ScriptedUpstream, chat, chat_chunks, chat_reply, error, stream
from keyed import stored_key
from limited import TOKEN, TOKENS, Limited, bearer, dollars, house_toml, keep_keys, limited, store_url
from postgres import database_of
from serving import running_gateway_process
from talking import Talk
from waiting import until

TODAY = datetime.now(UTC).strftime("%Y-%m-%d")


def key(name: str = "ann", team: str = "", tokens: float = 0, **more: Any) -> Any:
    return stored_key(name, team=team, grant=Grant(budget=Budget(day=dollars(tokens)), **more))


def spent(house: Limited, **asked: Any) -> tuple[int, int, int]:
    """Requests, tokens, nano-dollars."""
    found = house.uses(by=(), **asked)
    if not found:
        return 0, 0, 0
    return found[0].requests, found[0].input_tokens + found[0].output_tokens, found[0].nanos


def test_64_clients_on_one_small_budget_overshoot_by_no_more_than_what_runs(tmp_path: Path) -> None:
    """Each is held as more than it takes: then nothing is overdrawn at all."""
    with limited(tmp_path, key(tokens=1000)) as house, ThreadPoolExecutor(64) as clients:
        statuses = list(clients.map(lambda _: house.ask("ann").status, range(256)))
        assert set(statuses) == {200, 429}
        assert spent(house) == (statuses.count(200), statuses.count(200) * TOKENS, statuses.count(200) * TOKENS * TOKEN)
        assert spent(house)[2] <= 1000 * TOKEN
        assert house.held(f"key:{key().id}") == 0
        refused = house.ask("ann", {"max_output_tokens": 5000})
        assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
        assert "has a daily budget of $0.001" in refused.error["message"]
        assert "begins anew at" in refused.error["message"]
        assert refused.headers["x-should-retry"] == "false"
        assert len(house.upstream.requests) == statuses.count(200)


def test_64_clients_that_use_more_than_was_set_aside_overshoot_by_what_ran(tmp_path: Path) -> None:
    big = chat("Hello.", usage=(500, 500))
    with limited(tmp_path, key(tokens=20_000), upstream=big) as house, ThreadPoolExecutor(64) as clients:
        list(clients.map(lambda _: house.ask("ann").status, range(256)))
        assert spent(house)[1] <= 20_000 + 64 * 1000


def test_a_team_pays_for_all_its_keys(tmp_path: Path) -> None:
    toml = f"[teams.t]\nmonthly_budget = {dollars(250)}\n"
    with limited(tmp_path, key("ann", "t"), key("bob", "t"), key("cid"), toml=toml) as house:
        statuses = [house.ask(name).status for name in ("ann", "bob") * 20]
        assert statuses.count(200) >= 5
        assert statuses[-1] == 429
        assert "team `t` has a monthly budget" in house.ask("ann").error["message"]
        assert house.ask("cid").status == 200
        assert spent(house, team="t")[0] == statuses.count(200)


def test_each_model_is_paid_at_its_own_price_and_a_fallback_as_well(tmp_path: Path) -> None:
    toml = """
[providers.other]
uses = "openai-compatible"
base_url = "{url}"
retries = 0
[providers.other.models."*"]
cost = { input = 3.0, output = 5.0 }
[models.fallbacks]
"main/some-model" = ["other/large"]
"""
    with (
        ScriptedUpstream.running(default=chat("Hello.", usage=(100, 10))) as other,
        limited(tmp_path, key(tokens=1e6), toml=toml.replace("{url}", other.base_url)) as house,
    ):
        house.upstream.push(error(500, "broken"))
        assert house.ask("ann", {"stream": True}).status == 200
        told = {(use.provider, use.model): use for use in house.uses()}
    assert told["main", "some-model"].nanos == 0
    paid = told["other", "large"]
    assert (paid.requests, paid.input_tokens, paid.output_tokens, paid.nanos) == (1, 100, 10, 350 * TOKEN)


def test_what_breaks_off_is_paid_for_as_far_as_it_came(tmp_path: Path) -> None:
    with limited(tmp_path, key(tokens=1e6)) as house:
        house.upstream.push(stream([*chat_chunks("", usage=(70, 0))[-1:], CUT], done=False))
        assert house.ask("ann", {"stream": True}).status == 200
        assert spent(house) == (1, 70, 70 * TOKEN)
        assert house.held(f"key:{key().id}") == 0


def test_what_nobody_accepted_costs_nothing(tmp_path: Path) -> None:
    with limited(tmp_path, key(tokens=1000)) as house:
        house.upstream.push(error(500, "broken"))
        assert house.ask("ann").status == 502
        assert spent(house) == (1, 0, 0)
        assert house.held(f"key:{key().id}") == 0


def test_a_repair_is_paid_for(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}}
    with limited(tmp_path, key(tokens=1e6)) as house:
        house.upstream.push(chat("no JSON"), chat('{"a": 1}'))
        assert house.ask("ann", form).json["output_text"] == '{"a": 1}'
        assert spent(house) == (1, 2 * TOKENS, 2 * TOKENS * TOKEN)


def test_where_a_provider_tells_no_usage_it_is_estimated(tmp_path: Path) -> None:
    with limited(tmp_path, key(tokens=1e6), upstream=chat("Hello. " * 40, usage=None)) as house:
        assert house.ask("ann").status == 200
        (use,) = house.uses()
        assert use.output_tokens == 70
        assert use.input_tokens > 5
        assert use.nanos == (use.input_tokens + use.output_tokens) * TOKEN


def test_a_client_that_leaves_in_the_middle_pays_for_what_it_had(tmp_path: Path) -> None:
    slow = stream([*chat_chunks("Hello. " * 40, pieces=3)[:3], HANG])
    with limited(tmp_path, key(tokens=1e6)) as house:
        house.upstream.push(slow)
        with house.talk.streaming("/v1/responses", {"input": "hi", "stream": True}, headers=bearer("ann")) as told:
            told.until("response.output_text.delta")
            assert house.held(f"key:{key().id}") > 0
        until(lambda: house.held(f"key:{key().id}") == 0)
        (use,) = house.uses()
        assert use.requests == 1
        assert 0 < use.output_tokens <= 70
        assert use.nanos == (use.input_tokens + use.output_tokens) * TOKEN


def test_background_runs_and_compaction_are_settled_once(tmp_path: Path) -> None:
    with limited(tmp_path, key(tokens=1e6)) as house:
        made = house.ask("ann", {"background": True, "store": True}).json["id"]
        with house.talk.streaming(f"/v1/responses/{made}?stream=true", headers=bearer("ann"), method="GET") as told:
            assert list(told)[-1]["type"] == "response.completed"
        assert spent(house) == (1, TOKENS, TOKENS * TOKEN)
        said = {"input": "hi", "model": "main/some-model"}
        assert house.ask("ann", said, "/v1/responses/compact").status == 200
        assert spent(house) == (2, 2 * TOKENS, 2 * TOKENS * TOKEN)


def test_a_background_run_without_money_fails_and_says_so(tmp_path: Path) -> None:
    with limited(tmp_path, key(tokens=1)) as house:
        made = house.ask("ann", {"background": True, "store": True}).json["id"]
        with house.talk.streaming(f"/v1/responses/{made}?stream=true", headers=bearer("ann"), method="GET") as told:
            last = list(told)[-1]
        assert last["response"]["error"]["code"] == "insufficient_quota"
        assert spent(house) == (0, 0, 0)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/messages", "/v1/chat/completions"])
def test_every_door_pays(tmp_path: Path, path: str) -> None:
    user = [{"role": "user", "content": "hi"}]
    bodies: dict[str, dict[str, Any]] = {
        "/v1/embeddings": {"input": "hi", "model": "main/vectors"},
        "/v1/messages": {"messages": user, "max_tokens": 16, "model": "main/some-model"},
        "/v1/chat/completions": {"messages": user},
    }
    vectors = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
    vectors |= {"model": "vectors", "usage": {"prompt_tokens": 9, "total_tokens": 9}}
    with limited(tmp_path, key(tokens=1e6), key("poor", tokens=0.001)) as house:
        house.upstream.push(vectors if "embed" in path else chat_reply("Hello."))
        assert house.ask("ann", bodies[path], path).status == 200
        assert spent(house)[1] == (9 if "embed" in path else TOKENS)
        refused = house.ask("poor", bodies[path], path)
        assert refused.status == 429
        assert b"budget" in refused.body


def test_usage_is_told_to_operators_whole_and_to_others_their_own(tmp_path: Path) -> None:
    boss = stored_key("boss", grant=Grant(admin=True))
    with limited(tmp_path, key("ann"), key("bob", "t"), boss) as house:
        for name in ("ann", "ann", "bob"):
            assert house.ask(name).status == 200

        def ask(name: str, query: str = "") -> Any:
            return house.talk.request("GET", f"/v1/isthmus/usage{query}", None, bearer(name))

        assert ask("boss").json["total"]["requests"] == 3
        assert ask("ann").json["total"] == {
            "requests": 2,
            "input_tokens": 20,
            "cached_tokens": 0,
            "output_tokens": 10,
            "cost": pytest.approx(2 * TOKENS * TOKEN / NANO),
            "unpriced_requests": 0,
        }
        assert [row["key"] for row in ask("bob").json["data"]] == [key("bob", "t").id]
        assert ask("ann", f"?key={key('bob', 't').id}").json["data"] == []
        by = ask("boss", "?by=team,model&since=0d").json
        assert [(row["team"], row["model"], row["requests"]) for row in by["data"]] == [
            *(("", "some-model", 2), ("t", "some-model", 1))
        ]
        told = ask("boss", "?format=csv")
        assert told.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(StringIO(told.body.decode())))
        assert {row["day"] for row in rows} == {TODAY}
        assert sum(float(row["cost"]) for row in rows) == pytest.approx(3 * TOKENS * TOKEN / NANO)
        for query, param in (("?since=soon", "since"), ("?by=colour", "by"), ("?format=xml", "format")):
            refused = ask("ann", query)
            assert (refused.status, refused.error["param"]) == (400, param)


def test_a_process_that_is_killed_leaves_a_hold_that_runs_out(tmp_path: Path) -> None:
    """What it used is the loss; what it had set aside is free again after a while."""
    purse, database = f"key:{key().id}", tmp_path / "limited.db"
    keep_keys(database, key(tokens=1000))
    with ScriptedUpstream.running(default=stream([*chat_chunks("Hello.", pieces=3)[:2], HANG])) as upstream:
        toml = house_toml(upstream, database, '[limits]\nhold = "600s"\n')
        with running_gateway_process(toml, tmp_path) as gateway:
            body = {"input": "hi", "stream": True, "max_output_tokens": 800}
            with Talk(gateway.url).streaming("/v1/responses", body, headers=bearer("ann")) as told:
                told.until("response.output_text.delta")
                gateway.kill()
    assert held_at(database, purse, 0.0) > 800 * TOKEN
    assert held_at(database, purse, 601.0) == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_gateways_on_one_store_spend_one_budget_and_tell_one_sum(tmp_path: Path, kind: str) -> None:
    database = tmp_path / "limited.db" if kind == "sqlite" else database_of(tmp_path)
    keep_keys(database, key(tokens=1000))
    with ScriptedUpstream.running(default=chat("Hello.")) as upstream, ExitStack() as stack:
        talks = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            process = stack.enter_context(running_gateway_process(house_toml(upstream, database), folder))
            talks.append(Talk(process.url))
        body = {"input": "hi", "max_output_tokens": 20, "store": False}

        def ask(number: int) -> int:
            return talks[number % 2].post("/v1/responses", body, bearer("ann")).status

        assert [ask(0), ask(1)] == [200, 200]
        with ThreadPoolExecutor(32) as clients:
            statuses = [200, 200, *clients.map(ask, range(128))]
        served = statuses.count(200)
        assert set(statuses) == {200, 429}
        assert len(upstream.requests) == served
        assert served * TOKENS <= 1000, "both together spent more than there was"
        # What was set aside is free again: whoever still finds room for one is served, and nobody else.
        until(lambda: {ask(0), ask(1)} == {429})
        served = len(upstream.requests)
        assert 1000 - 60 < served * TOKENS <= 1000

        def told(talk: Talk) -> list[tuple[int, int]]:
            rows = talk.request("GET", "/v1/isthmus/usage?by=key", None, bearer("ann")).json["data"]
            return [(row["requests"], row["input_tokens"] + row["output_tokens"]) for row in rows]

        until(lambda: all(told(talk) == [(served, served * TOKENS)] for talk in talks))
    command = [sys.executable, "-m", "isthmus", "usage", "--by", "key", "--json", "--store", store_url(database)]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout)
    assert (row["key"], row["requests"], row["cost"]) == (key().id, served, pytest.approx(dollars(served * TOKENS)))


def held_at(database: Path, purse: str, later: float) -> int:
    """What is set aside so many seconds from now."""

    async def look() -> int:
        store = SqliteStore(database, now=lambda: time.time() + later)
        try:
            return await store.held(purse)
        finally:
            await store.aclose()

    return asyncio.run(look())
