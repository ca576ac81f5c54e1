"""One owner with 500 requests and another with a few, over real HTTP, before an upstream with few places.

Asserted by order and by counts: what the upstream was asked, one after the other.
"""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from isthmus.gateway.caller import Caller
from isthmus.server import callers
from isthmus.testing import Gate, RecordedRequest, ScriptedUpstream, reply
from isthmus.testing.replies import chat_reply
from one_provider import one_provider
from waiting import until

NOISY, ANN = "key-of-noisy", "key-of-ann"
CROWD = 500
PLACES = 3


@pytest.fixture(autouse=True)
def _keys_are_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key an owner of its own."""
    monkeypatch.setattr(callers, "Caller", lambda key, scopes: Caller(owner=key, key=key, scopes=scopes))


async def _ask(session: aiohttp.ClientSession, url: str, key: str, number: int) -> tuple[int, str]:
    body = {"input": f"{key} {number}", "store": False}
    async with session.post(f"{url}/v1/responses", json=body, headers={"x-api-key": key}) as answer:
        told = (await answer.json())["error"]
        return answer.status, "ok" if told is None else str(told["code"])


def _who(request: RecordedRequest) -> str:
    text = json.dumps(request.json["messages"])
    return NOISY if NOISY in text else ANN


class Scene:
    """A crowd of one owner that waits, and who comes behind it."""

    def __init__(self, settings: str) -> None:
        self.gate = Gate()
        self.settings = f"retries = 0\nmax_connections = {PLACES}\n{settings}"
        self.order: list[str] = []
        self.statuses: dict[str, list[tuple[int, str]]] = {}

    def play(self, ann: int, waiting: int, then: int) -> None:
        """`waiting`: how many of the crowd find a place to wait; `then`: how many wait when the other has come. All the
        others of the crowd are refused by then."""
        with ScriptedUpstream.running(default=reply(chat_reply("ok"), after=self.gate)) as upstream:
            server = f'api_keys = ["{NOISY}", "{ANN}"]\nmax_concurrent = 2000'
            with one_provider(upstream, self.settings, server=server) as (_, gateway):
                load = gateway.gateway.directory.served["main"].load

                async def main() -> None:
                    connector = aiohttp.TCPConnector(limit=0)
                    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
                        noisy = [asyncio.ensure_future(_ask(session, gateway.url, NOISY, n)) for n in range(CROWD)]

                        def stands(queued: int, come: int) -> bool:
                            """Whether all who have come are sent, waiting or refused."""
                            refused = sum(each.done() for each in noisy)
                            return load().waiting == queued and PLACES + queued + refused == come

                        await asyncio.to_thread(until, lambda: stands(waiting, CROWD), "the crowd did not come")
                        others = [asyncio.ensure_future(_ask(session, gateway.url, ANN, n)) for n in range(ann)]
                        await asyncio.to_thread(until, lambda: stands(then, CROWD + ann), "the other did not come")
                        self.gate.open()
                        self.statuses = {NOISY: await asyncio.gather(*noisy), ANN: await asyncio.gather(*others)}

                asyncio.run(main())
                assert load().sent == load().waiting == 0
            self.order = [_who(request) for request in upstream.requests if request.method == "POST"]


def test_a_noisy_owner_delays_another_by_one_request_for_each_of_theirs() -> None:
    scene, ann = Scene("max_queued = 1000\n"), 10
    scene.play(ann, waiting=CROWD - PLACES, then=CROWD - PLACES + ann)
    assert all(status == 200 for each in scene.statuses.values() for status, _ in each)
    assert len(scene.order) == CROWD + ann
    places = [index for index, who in enumerate(scene.order) if who == ANN]
    # Those that had been sent, then in turn: at most one of the crowd's before each (and what overtakes on the way).
    assert all(place <= PLACES + 2 * (number + 1) + PLACES for number, place in enumerate(places)), places


def test_a_crowd_that_fills_the_queue_gives_way_to_who_comes_later() -> None:
    scene, ann = Scene("max_queued = 50\n"), 4
    scene.play(ann, waiting=50, then=50)
    assert scene.statuses[ANN] == [(200, "ok")] * ann
    told = [code for _, code in scene.statuses[NOISY]]
    assert (told.count("ok"), told.count("upstream_busy")) == (PLACES + 50 - ann, CROWD - PLACES - 50 + ann)


def test_one_owner_may_be_held_to_fewer_than_all() -> None:
    scene, ann = Scene("max_queued = 1000\nmax_queued_per_owner = 20\n"), 4
    scene.play(ann, waiting=20, then=20 + ann)
    assert scene.statuses[ANN] == [(200, "ok")] * ann
    assert [code for _, code in scene.statuses[NOISY]].count("ok") == PLACES + 20


def test_without_owners_who_comes_last_is_served_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same crowd where both are one owner: what the queue above is measured against."""
    monkeypatch.setattr(callers, "Caller", lambda key, scopes: Caller(key=key, scopes=scopes))
    scene = Scene("max_queued = 1000\n")
    scene.play(3, waiting=CROWD - PLACES, then=CROWD - PLACES + 3)
    assert next(index for index, who in enumerate(scene.order) if who == ANN) >= CROWD - 2 * PLACES
