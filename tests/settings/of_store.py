"""Proofs for `[store]`, `[background]` and `[lessons]`: what is kept, for how long, and how much at a time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import Lesson
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL
from isthmus.gateway.gateway import Gateway
from isthmus.ports import EventBatch, Pruned, StoredConversation
from isthmus.store.memory import MemoryStore
from isthmus.store.open import open_store
from isthmus.store.sqlite.store import SqliteStore
from isthmus.testing import Gate, ScriptedUpstream, chat, reply
from isthmus.testing.replies import chat_reply
from isthmus.wiring_bridge import Bridge
from own_time import turns
from settings.proving import PATIENCE, Scene, ask, proves, refusal
from stored import turn

FILE = {"store.url": '"sqlite:kept.db"'}
UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
DAY = 86_400


@proves("store.url", '"sqlite:kept.db"', instead='"memory:"')
async def responses_are_kept_in_this_file(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            made = await ask(gateway)
    assert (scene.folder / "kept.db").is_file()
    store = open_store(f"sqlite:{scene.folder / 'kept.db'}")
    try:
        assert await store.load(made["id"]) is not None
    finally:
        await store.aclose()


@proves("store.url", '"sqlite:kept.db"', instead='"memory:"')
async def the_key_of_the_envelopes_lies_beside_it_for_its_owner_only(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        first = gateway.settings.envelope_key
    key = scene.folder / "kept.db.key"
    assert key.is_file()
    assert key.stat().st_mode & 0o777 == 0o600
    async with scene.gateway() as gateway:
        assert gateway.settings.envelope_key == first == key.read_bytes()


async def _after_pruning(scene: Scene, *, days: int) -> list[str]:
    """Which of two responses, one of now and one older by so many days, outlive the gateway's start."""
    store = open_store(f"sqlite:{scene.folder / 'kept.db'}")
    await store.save(turn("old", at=time.time() - days * DAY))
    await store.save(turn("new", at=time.time()))
    await store.aclose()
    pruned = asyncio.Event()
    prune = SqliteStore.prune

    async def told(self: SqliteStore, **limits: Any) -> Pruned:
        done = await prune(self, **limits)
        pruned.set()
        return done

    scene.monkeypatch.setattr(SqliteStore, "prune", told)
    async with scene.gateway() as gateway:
        async with asyncio.timeout(PATIENCE):
            await pruned.wait()
        return [id for id in ("old", "new") if await gateway.store.load(id) is not None]


@proves("store.keep_days", "5", beside=FILE)
async def older_ones_are_forgotten_at_the_start(scene: Scene) -> None:
    assert await _after_pruning(scene, days=6) == ["new"]


@proves("store.max_bytes", "1", beside=FILE)
async def what_is_above_the_size_is_forgotten_at_the_start(scene: Scene) -> None:
    assert await _after_pruning(scene, days=1) == []


async def _nothing_prunes(scene: Scene) -> None:
    async with scene.gateway():
        assert "prune the store" not in {task.get_name() for task in asyncio.all_tasks()}


@proves("store.keep_days", "0", beside={"store.max_bytes": "0", "usage.keep_days": "0"})
async def none_is_ever_too_old(scene: Scene) -> None:
    await _nothing_prunes(scene)


@proves("store.max_bytes", "0", beside={"store.keep_days": "0", "usage.keep_days": "0"})
async def there_are_never_too_many(scene: Scene) -> None:
    await _nothing_prunes(scene)


async def _conversations_left(scene: Scene, *, days: int) -> list[str]:
    """Which of two conversations, one of now and one older by so many days, outlive the gateway's start."""
    store = open_store(f"sqlite:{scene.folder / 'kept.db'}")
    for id, at in (("old", time.time() - days * DAY), ("new", time.time())):
        await store.start_conversation(StoredConversation(id, at))
    await store.aclose()
    await _after_pruning(scene, days=0)
    store = open_store(f"sqlite:{scene.folder / 'kept.db'}")
    try:
        return [id for id in ("old", "new") if await store.conversation(id) is not None]
    finally:
        await store.aclose()


@proves("store.keep_conversation_days", "5", beside=FILE)
async def conversations_that_nobody_used_are_forgotten_at_the_start(scene: Scene) -> None:
    assert await _conversations_left(scene, days=6) == ["new"]


@proves("store.durability", '"power"', beside=FILE)
async def the_disk_is_waited_for(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert isinstance(gateway.store, SqliteStore)
        level = await gateway.store.writer.run(lambda file: file.execute("PRAGMA synchronous").fetchone()[0])
    assert level == 2


@proves("store.max_chain", "2")
async def a_longer_chain_is_refused(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            last = None
            for _ in range(3):
                last = (await ask(gateway, previous_response_id=last))["id"]
            refused = await refusal(ask(gateway, previous_response_id=last))
    assert refused.code == "previous_response_chain_too_long"


@proves("store.idempotency", "7")
async def a_name_is_remembered_for_so_long(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.named.keep == 7


@proves("store.idempotency", "0")
async def no_name_is_remembered(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.named.keep == 0


async def _begin(gateway: Gateway) -> str:
    request = parse_request({"model": "main/some-model", "input": "hi", "background": True})
    run = await gateway.create(LOCAL, request)
    return str((await gateway.create_in_background(LOCAL, run, request))["id"])


@proves("background.max_running", "1")
async def a_second_one_waits(scene: Scene) -> None:
    gate = Gate()
    with ScriptedUpstream.running(default=reply(chat_reply("held"), after=gate)) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            await _begin(gateway)
            await upstream.received(1)
            second = await _begin(gateway)
            await turns()
            try:
                assert [entry.run.id for entry in gateway.runs._queue] == [second]
            finally:
                gate.open()
                await gateway.runs.none()
            assert len(upstream.requests) == 2


@proves("background.max_queued", "0", beside={"background.max_running": "1"})
async def none_may_wait(scene: Scene) -> None:
    gate = Gate()
    with ScriptedUpstream.running(default=reply(chat_reply("held"), after=gate)) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            await _begin(gateway)
            try:
                refused = await refusal(_begin(gateway))
            finally:
                gate.open()
                await gateway.runs.none()
    assert refused.code == "server_is_overloaded"


@proves("background.lease", "7")
async def its_claims_last_so_long(scene: Scene) -> None:
    seconds: set[float] = set()
    renewed = asyncio.Event()

    class Watched(MemoryStore):
        async def claim(self, *names: Any, **options: Any) -> Any:
            seconds.add(options["seconds"])
            return await super().claim(*names, **options)

        async def renew(self, *names: Any, **options: Any) -> Any:
            seconds.add(options["seconds"])
            renewed.set()
            return await super().renew(*names, **options)

    scene.monkeypatch.setattr("isthmus.store.memory.MemoryStore", Watched)
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            await _begin(gateway)
            async with asyncio.timeout(PATIENCE):
                await renewed.wait()
            await gateway.runs.none()
    assert seconds == {7.0}


@proves("background.keep_events", '"1h"', beside={**FILE, "store.keep_days": "0", "store.max_bytes": "0"})
async def events_of_old_ones_are_forgotten_at_the_start(scene: Scene) -> None:
    store = open_store(f"sqlite:{scene.folder / 'kept.db'}")
    for id, age in (("old", 4000), ("young", 3000)):
        await store.save(turn(id, at=time.time() - age), events=EventBatch(0, (b"{}",)))
    await store.aclose()
    async with scene.gateway() as gateway:
        for _ in range(200):
            if not await _can_be_streamed(gateway, "old"):
                break
            await asyncio.sleep(0.01)
        assert [await _can_be_streamed(gateway, id) for id in ("old", "young")] == [False, True]
        assert await gateway.store.load("old") is not None


async def _can_be_streamed(gateway: Gateway, id: str) -> bool:
    try:
        return await gateway.store.events(id) == [b"{}"]
    except RequestRefused:
        return False


@proves("background.max_events", "100", beside=FILE)
async def of_a_long_stream_the_first_events_go(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        await gateway.store.save(turn("long", at=time.time()), events=EventBatch(0, (b'"%b"' % (b"x" * 60),)))
        await gateway.store.append_events("long", EventBatch(1, (b'"%b"' % (b"y" * 60),)))
        refused = await refusal(gateway.store.events("long"))
        assert len(await gateway.store.events("long", after=0)) == 1
    assert refused.code == "events_expired"


@proves("lessons.keep", '"1h"')
async def a_lesson_is_known_so_long(scene: Scene) -> None:
    now = time.time()
    async with scene.gateway() as gateway:
        for model, age in (("young", 3000), ("old", 4000)):
            await gateway.store.learn(Lesson("main", model, "tool_choice", "required", now - age), since=0.0)
        taught = {
            model: (await gateway.lessons.taught(gateway.directory.find(f"main/{model}").target)).lessons
            for model in ("young", "old")
        }
    assert (len(taught["young"]), len(taught["old"])) == (1, 0)


@proves("lessons.keep", '"1h"')
async def the_library_knows_it_so_long(scene: Scene) -> None:
    scene.load()
    async with Bridge.from_env(config_file=scene.folder / "isthmus.toml", environ={}) as bridge:
        line: Any = (await bridge._connect.find("main/m")).line
        for model, age in (("young", 3000), ("old", 4000)):
            line._lessons[model] = (Lesson("main", model, "tool_choice", "required", time.time() - age),)
        assert [len(line._target(model).lessons) for model in ("young", "old")] == [1, 0]
