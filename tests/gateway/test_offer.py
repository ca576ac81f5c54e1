"""Which models a client may name: asked, remembered, and with the names of the user's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.house import Upstream
from isthmus.errors import RequestRefused
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.offer import Offer
from isthmus.gateway.words import Words
from isthmus.providers import load_provider
from isthmus.providers.word.told import Told
from isthmus.store.memory import MemoryStore


class Server:
    """A vendor that lists its models when it is let."""

    own = False
    place = "here"

    def __init__(self, *models: str) -> None:
        self.models = models
        self.asked = 0
        self.let = asyncio.Event()

    async def ask(self) -> Told:
        self.asked += 1
        await self.let.wait()
        return Told(at=50.0, models=self.models)


def offer(server: Server, **names: Any) -> tuple[Offer, Words]:
    served = Served("deepseek", load_provider("deepseek"), Upstream(), asking=server)
    directory = Directory({"deepseek": served}, default="deepseek/deepseek-v4-pro", **names)
    words = Words(directory.served, MemoryStore(), refresh=60.0, keep=600.0, now=lambda: 50.0)
    return Offer(directory, words), words


async def test_a_server_that_was_never_heard_is_waited_for_once_and_then_remembered() -> None:
    server = Server("deepseek-v4-pro", "deepseek-next")
    server.let.set()
    offered, _ = offer(server)
    for _ in range(2):
        assert list(await offered.models()) == ["deepseek/deepseek-v4-pro", "deepseek/deepseek-next"]
    assert server.asked == 1


async def test_nobody_waits_longer_than_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.gateway.offer._PATIENCE", 0.0)
    server = Server("deepseek-next")
    offered, words = offer(server)
    assert {each.source for each in (await offered.models()).values()} == {"file"}
    server.let.set()
    await asyncio.gather(*words._asking.values())
    found = await offered.models()
    assert found["deepseek/deepseek-next"].heard_at == 50.0
    assert found["deepseek/deepseek-v4-pro"].served is False  # the default, which is gone
    await words.aclose()


async def test_an_alias_is_shown_first_and_describes_what_it_leads_to() -> None:
    server = Server("deepseek-v4-pro")
    server.let.set()
    offered, _ = offer(server, aliases={"fast": "deepseek/deepseek-v4-pro", "*": "deepseek/deepseek-v4-pro"})
    assert list(await offered.models()) == ["deepseek/deepseek-v4-pro", "fast"]
    assert (await offered.describe("fast")).source == "configuration"
    assert (await offered.describe("anything")).model.model == "deepseek-v4-pro"
    with pytest.raises(RequestRefused, match="does not list `deepseek-old`") as refused:
        await offered.describe("deepseek/deepseek-old")
    assert refused.value.code == "model_not_found"
