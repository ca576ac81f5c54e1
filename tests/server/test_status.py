"""`/health`, `/ready` and the root, over HTTP: what they say is so."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from flowing import PLAIN, Flow
from isthmus import __version__
from isthmus.errors import ConfigError
from isthmus.testing import ScriptedUpstream
from one_provider import one_provider
from serving import GatewayThread, running_gateway_server
from talking import Talk


def test_health_says_that_the_process_answers(flow: Flow) -> None:
    assert flow.get("/health").json == {"status": "ok", "version": __version__}


def test_ready_says_how_each_part_is(flow: Flow) -> None:
    answer = flow.get("/ready")
    body = answer.json
    assert (answer.status, body["status"], body["gateway"], body["store"]) == (200, "ready", "ok", "ok")
    assert body["providers"] == dict.fromkeys(("full", "deepseek", "plain", "zhipu"), "ok")
    assert body["running"] == 0
    assert body["tasks"] > 0
    assert body["checked_seconds_ago"] >= 0


def test_the_root_says_what_this_is(flow: Flow) -> None:
    body = flow.get("/").json
    assert (body["name"], body["default_model"]) == ("isthmus", PLAIN)


def nobody_there() -> str:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def test_a_provider_that_cannot_be_reached_is_told_so() -> None:
    with one_provider(nobody_there()) as (talk, _):
        answer = talk.get("/ready")
    assert (answer.status, answer.json["status"]) == (503, "not ready")
    assert "cannot be reached" in answer.json["providers"]["main"]


def test_with_another_one_there_it_goes_on_and_says_so() -> None:
    with ScriptedUpstream.running() as upstream:
        other = f'[providers.other]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\n'
        with one_provider(nobody_there(), other) as (talk, gateway):
            body = talk.get("/ready")
            assert (body.status, body.json["status"]) == (200, "degraded")
            assert body.json["providers"]["other"] == "ok"
            assert gateway.gateway.draining is False
    assert upstream.requests == [], "it is connected to, and asked nothing"


def test_it_is_found_out_when_the_provider_comes_back() -> None:
    with ScriptedUpstream.running() as upstream, socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        with one_provider(f"http://127.0.0.1:{place.getsockname()[1]}/v1") as (talk, gateway):
            assert talk.get("/ready").status == 503
            place.listen()
            gateway.skip(31)
            assert talk.get("/ready").status == 200
        del upstream


def test_a_provider_without_the_key_that_it_needs_is_told_so() -> None:
    with ScriptedUpstream.running() as upstream, one_provider(upstream, "[providers.deepseek]") as (talk, _):
        answer = talk.get("/ready").json
    assert answer["status"] == "degraded"
    assert "DEEPSEEK_API_KEY" in answer["providers"]["deepseek"]
    assert answer["providers"]["main"] == "ok"


def test_several_keys_at_a_place_that_cannot_be_reached() -> None:
    with one_provider(nobody_there(), 'api_keys = ["k1", "k2"]') as (talk, _):
        assert "no place can be used" in talk.get("/ready").json["providers"]["main"]


@pytest.fixture
def stored(tmp_path: Path) -> str:
    return f'[server]\nport = 0\n[store]\nurl = "sqlite:{tmp_path / "x.db"}"\n[log]\nlevel = "error"\n'


def test_a_store_that_takes_nothing_is_told_so(stored: str) -> None:
    with running_gateway_server(stored) as gateway:

        async def full(*_: object, **__: object) -> bool:
            raise ConfigError("database or disk is full", code="store_unavailable")

        gateway.gateway.store.claim = full  # type: ignore[method-assign]
        answer = Talk(gateway.url).get("/ready")
    assert (answer.status, answer.json["store"]) == (503, "database or disk is full")


def test_forty_that_ask_at_once_cost_one_small_write_and_no_table_is_read(stored: str) -> None:
    with running_gateway_server(stored) as gateway:
        store, written = gateway.gateway.store, []
        claim = store.claim

        async def counted(name: str, **more: object) -> bool:
            written.append(name)
            return await claim(name, **more)  # type: ignore[arg-type]

        async def forbidden() -> None:
            raise AssertionError("it counts rows")

        store.claim = counted  # type: ignore[method-assign]
        store.stats = forbidden  # type: ignore[method-assign,assignment]
        assert _at_once(gateway, 40) == [200] * 40
        assert len(written) == 1


def test_nothing_of_it_is_left_in_the_store(stored: str, tmp_path: Path) -> None:
    with running_gateway_server(stored) as gateway:
        Talk(gateway.url).get("/ready")
        flow = Flow(gateway, ScriptedUpstream(), tmp_path / "x.db")
        assert flow.rows()["leases"] == 0


def _at_once(gateway: GatewayThread, count: int) -> list[int]:
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(Talk(gateway.url).get("/ready").status)) for _ in range(count)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return statuses
