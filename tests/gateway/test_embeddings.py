"""One request for embeddings: planned, asked once, and ended by whoever has a reason to."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from gateway.house import Heard, Upstream
from isthmus.bridge.embeddings.answer import Embedded
from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.conduct.aside import Aside
from isthmus.errors import IsthmusError, RequestRefused, UpstreamFailed
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.embeddings import Embeddings
from isthmus.gateway.runs import RunLimits, Runs
from isthmus.gateway.settings import Settings
from isthmus.gateway.words import Words
from isthmus.ports import Accepted, AttemptFailed, Ended, Planned, Sent
from isthmus.providers import load_provider
from isthmus.store.memory import MemoryStore


class Vectors:
    """An upstream that answers when it is let, with what it is told."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.answer: Embedded | Exception = Embedded([msgspec.Raw(b"[1]")], 7)

    async def embed(self, plan: Any, trail: Any = None, behalf: Any = None) -> Embedded:
        await self.let.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class House:
    def __init__(self, total: float | None = None) -> None:
        self.vectors, self.heard, store = Vectors(), Heard(), MemoryStore()
        served = {
            "openai": Served("openai", load_provider("openai"), Upstream(), total, embedder=self.vectors),
            "deepseek": Served("deepseek", load_provider("deepseek"), Upstream()),
        }
        directory = Directory(served, default="deepseek/deepseek-v4-pro", fallbacks={"*": ["openai/gpt-5"]})
        words = Words(served, store, refresh=0, keep=0, now=lambda: 0.0)
        self.runs = Runs(store, "gw", RunLimits(), Aside())
        self.embeddings = Embeddings(
            directory,
            words,
            self.runs,
            Settings(),
            now=lambda: 0.0,
            new_id=lambda kind: f"{kind}_1",
            observer=self.heard,
        )

    async def create(self, **body: Any) -> Any:
        asked = {"model": "openai/text-embedding-3-small", "input": "a", **body}
        return await self.embeddings.create(Caller("ann"), read_embedding_request(msgspec.json.encode(asked)))


async def test_its_life_is_told_like_that_of_a_run() -> None:
    house = House()
    house.vectors.let.set()
    embedding = await house.create()
    assert (await embedding.answer()).tokens == 7
    planned, sent, accepted, ended = house.heard.facts
    assert isinstance(planned, Planned)
    assert (planned.id, planned.plan) == (embedding.id, embedding.plan)
    assert planned.asked == {"model": "openai/text-embedding-3-small", "input": "a"}
    assert isinstance(accepted, Accepted)
    assert isinstance(sent, Sent)
    assert isinstance(ended, Ended)
    assert (sent.id, sent.model, ended.owner) == ("emb_1", "text-embedding-3-small", "ann")
    assert (ended.outcome, ended.usage) == ("completed", {"input_tokens": 7, "output_tokens": 0, "total_tokens": 7})


async def test_a_failure_is_told_and_no_other_model_takes_its_place() -> None:
    house = House()
    house.vectors.let.set()
    house.vectors.answer = UpstreamFailed("it is full", code="server_is_overloaded")
    with pytest.raises(UpstreamFailed, match="it is full"):
        await (await house.create()).answer()
    _, _, failed, ended = house.heard.facts
    assert isinstance(failed, AttemptFailed)
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.attempts, ended.failure) == ("refused", 1, house.vectors.answer)


async def test_a_shutdown_waits_for_it_and_then_tells_its_client() -> None:
    house = House()
    asking = asyncio.create_task((await house.create()).answer())
    await asyncio.sleep(0)
    assert len(house.runs) == 1
    waiting = asyncio.create_task(house.runs.none())
    house.runs.stop_all("shutdown")
    with pytest.raises(IsthmusError, match="shutting down") as told:
        await asking
    assert told.value.code == "server_is_overloaded"
    await waiting
    assert len(house.runs) == 0


async def test_whose_client_is_gone_is_ended_without_a_word() -> None:
    house = House()
    embedding = await house.create()
    asking = asyncio.create_task(embedding.answer())
    await asyncio.sleep(0)
    embedding.stop("left")
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert embedding.ended().outcome == "cancelled"
    assert len(house.runs) == 0


async def test_it_may_not_take_longer_than_all_attempts_together_may() -> None:
    with pytest.raises(UpstreamFailed, match="longer than allowed") as told:
        await (await House(total=0.001).create()).answer()
    assert told.value.code == "upstream_timeout"


async def test_who_has_none_is_refused_with_the_names_of_those_that_have() -> None:
    with pytest.raises(RequestRefused, match="`openai/text-embedding-3-small`") as refused:
        await House().create(model="deepseek/deepseek-v4-pro")
    assert (refused.value.code, refused.value.param) == ("embeddings_not_supported", "model")
