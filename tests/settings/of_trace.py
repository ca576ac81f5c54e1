"""Proofs for `[trace]`: what is remembered of requests, of whose, how much, and for how long."""

from __future__ import annotations

import time
from typing import Any

from isthmus.bridge.parse import parse_request
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.observe.traces.recorder import Recorder
from isthmus.observe.traces.tracer import Tracer
from isthmus.ports.traced import Trace
from isthmus.store.traces.sqlite import SqliteTraces
from isthmus.testing import ScriptedUpstream, chat
from settings.proving import Scene, ask, proves
from traced import keep_in, traced

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
FILE = {"store.url": '"sqlite:kept.db"'}
FULL = {"trace.capture": '"full"'}


async def _trace(scene: Scene, caller: Caller | None = None, **fields: Any) -> Trace | None:
    """What is remembered of one request."""
    with ScriptedUpstream.running(default=chat("told")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            if gateway.tracing is None:
                return None
            asked = {"model": "main/some-model", "input": "said 4711", **fields}
            run = await gateway.create(caller or Caller(), parse_request(asked))
            await run.fold()
            await gateway.tracing.settle()
            return await gateway.tracing.store.find(None, run.id)


@proves("trace.capture", '"off"')
async def nothing_is_remembered(scene: Scene) -> None:
    assert await _trace(scene) is None


@proves("trace.capture", '"full"')
async def all_of_it_is_remembered(scene: Scene) -> None:
    found = await _trace(scene)
    assert found is not None
    assert b"told" in bytes(found.answer.content)
    assert b"said 4711" in bytes(found.request.content)


@proves("trace.full_for", '["ann"]')
async def all_of_it_is_remembered_of_this_owner(scene: Scene) -> None:
    found = await _trace(scene, Caller("ann"))
    assert found is not None
    assert b"told" in bytes(found.answer.content)


@proves("trace.unstored", "true", beside=FULL)
async def also_of_what_its_client_does_not_store(scene: Scene) -> None:
    found = await _trace(scene, store=False)
    assert found is not None
    assert b"told" in bytes(found.answer.content)


@proves("trace.max_content", "20", beside=FULL)
async def what_is_longer_is_left_out(scene: Scene) -> None:
    found = await _trace(scene)
    assert found is not None
    assert bytes(found.answer.content) == b""
    assert "20 bytes" in found.answer.cut


@proves("trace.scrub", r"['\d+']", beside=FULL)
async def what_a_pattern_finds_is_hidden(scene: Scene) -> None:
    found = await _trace(scene)
    assert found is not None
    assert b"said <redacted>" in bytes(found.request.content)


def _recorder(gateway: Gateway) -> Recorder:
    assert isinstance(gateway.tracing, Tracer)
    return gateway.tracing._recorder


async def _left(scene: Scene, *, age: float) -> list[str]:
    """Which of two traces, one of now and one older by so many seconds, outlive a look of the gateway."""
    store = SqliteTraces(scene.folder / "kept.traces.db")
    keep_in(store, [traced("old", time.time() - age)])
    keep_in(store, [traced("new", time.time())])
    store.close()
    async with scene.gateway() as gateway:
        recorder = _recorder(gateway)
        recorder._tidy()
        while recorder._more:
            recorder._tidy()
        assert gateway.tracing is not None
        return [each.id for each in (await gateway.tracing.store.list(None)).traces]


@proves("trace.max_age", '"1h"', beside=FILE)
async def older_ones_are_forgotten(scene: Scene) -> None:
    assert await _left(scene, age=4000) == ["req_new"]


@proves("trace.max_age", "0", beside=FILE)
async def none_is_ever_too_old(scene: Scene) -> None:
    assert await _left(scene, age=86_400 * 40) == ["req_new", "req_old"]


@proves("trace.max_bytes", "1", beside=FILE)
async def above_the_size_they_are_forgotten(scene: Scene) -> None:
    assert await _left(scene, age=1) == []


@proves("trace.max_queued", "7")
async def so_many_may_wait(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert _recorder(gateway)._keeping.max_queued == 7


@proves("trace.max_queued_bytes", "7")
async def they_may_hold_on_to_so_much(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert _recorder(gateway)._keeping.max_queued_bytes == 7


@proves("store.url", '"sqlite:kept.db"', instead='"memory:"', beside={"trace.capture": '"metadata"'})
async def traces_lie_in_a_file_beside_it_for_its_owner_only(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            made = await ask(gateway)
    file = scene.folder / "kept.traces.db"
    assert file.is_file()
    assert file.stat().st_mode & 0o777 == 0o600
    store = SqliteTraces(file)
    try:
        assert await store.find("local", made["id"]) is not None
    finally:
        store.close()
