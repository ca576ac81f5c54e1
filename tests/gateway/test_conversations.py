"""Conversations at the gateway: whose they are, what their items are called, and what becomes of turns in trouble."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gateway.house import asking, start, start_in_background
from gateway.world import ANN, LEASE, Process, World, sleep, wake
from isthmus.bridge.parse import parse_items
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.caller import Caller

BOB = Caller("bob")


def begin(world: World, process: Process, *texts: str) -> str:
    items = parse_items([{"role": "user", "content": text} for text in texts], "items")
    made: str = world.spawn(process, process.gateway.conversations.create(ANN, items, {})).result().id
    return made


def listed(world: World, id: str) -> list[Any]:
    page = world.look(world.store.conversation_items(id, owner="ann", limit=100, order="asc"))
    return [msgspec.json.decode(item) for item in page.items]


def said(world: World, id: str) -> list[str]:
    texts = [item["content"] for item in listed(world, id)]
    return [text if isinstance(text, str) else text[0]["text"] for text in texts]


def read(world: World, process: Process, run: Any) -> Any:
    """What came of a run, as its client was told."""

    async def end() -> Any:
        async for batch in run.events():
            last = batch[-1]
        return last["response"]

    return world.spawn(process, end())


def test_nobody_touches_another_owners(world: World) -> None:
    process = world.begin()
    id = begin(world, process, "hers")
    item = listed(world, id)[0]["id"]
    conversations = process.gateway.conversations
    hi = parse_items([{"role": "user", "content": "hi"}], "items")
    for deed in (
        lambda: conversations.retrieve(BOB, id),
        lambda: conversations.update(BOB, id, {}),
        lambda: conversations.delete(BOB, id),
        lambda: conversations.add(BOB, id, hi),
        lambda: conversations.items(BOB, id),
        lambda: conversations.item(BOB, id, item),
        lambda: conversations.remove(BOB, id, item),
        lambda: process.gateway.create(BOB, asking(conversation=id)),
        lambda: process.gateway.plan_only(BOB, asking(conversation=id)),
        lambda: process.gateway.compact(BOB, asking(conversation=id)),
    ):
        error = world.spawn(process, deed()).exception()  # type: ignore[no-untyped-call]
        assert isinstance(error, RequestRefused)
        assert (error.code, error.meaning.status) == ("conversation_not_found", 404)
    named = parse_items([{"type": "item_reference", "id": item}], "items")
    error = world.spawn(process, conversations.create(BOB, named, {})).exception()
    assert isinstance(error, RequestRefused)
    assert (error.code, error.param) == ("item_not_found", "items[0].id")
    assert said(world, id) == ["hers"]
    assert world.spawn(process, start(process.gateway, ANN, conversation=id)).result(), "and it is not locked"


def test_every_item_gets_an_id_that_tells_its_kind(world: World) -> None:
    process = world.begin()
    items = parse_items(
        [
            {"role": "user", "content": "x"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": ""},
            {"type": "reasoning", "summary": []},
            {"type": "something_new"},
            {"role": "user", "content": "x", "id": "own"},
            {"role": "user", "content": "x", "id": ""},
        ],
        "items",
    )
    id = world.spawn(process, process.gateway.conversations.create(ANN, items, {})).result().id
    prefixes = [item["id"].split("_")[0] for item in listed(world, id)]
    assert prefixes == ["msg", "fc", "fco", "rs", "item", "own", "msg"]


def test_a_gateway_that_dies_leaves_it_locked_for_a_lease_and_no_longer(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = begin(world, one, "before")
    run = world.spawn(one, start(one.gateway, ANN, conversation=id)).result()
    read(world, one, run)
    world.flow(2 * LEASE)
    error = world.spawn(two, start(two.gateway, ANN, conversation=id)).exception()
    assert isinstance(error, IsthmusError)
    assert error.code == "conversation_locked", "it is extended for as long as the turn takes"
    world.kill(one)
    assert world.spawn(two, start(two.gateway, ANN, conversation=id)).exception() is not None
    world.flow(LEASE + 1)
    run = world.spawn(two, start(two.gateway, ANN, conversation=id)).result()
    ended = read(world, two, run)
    world.upstream.open[-1].end("ok")
    world.quiet()
    assert ended.result()["status"] == "completed"
    assert said(world, id) == ["before", "hi", "ok"]


def test_a_background_turn_whose_gateway_died_is_made_again_in_its_conversation(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = begin(world, one, "before")
    made = world.spawn(one, start_in_background(one.gateway, ANN, conversation=id)).result()
    world.kill(one)
    world.flow(LEASE * 0.7)
    for _ in range(4):  # the lock and the run may run out at different moments
        world.spawn(two, two.gateway.orphans.look())
        world.flow(LEASE / 4)
    assert [message["content"] for message in world.upstream.open[-1].body["messages"]] == ["before", "hi"]
    world.upstream.open[-1].end("at last")
    world.quiet()
    found = world.look(world.store.load(made, owner="ann"))
    assert found.status == "completed"
    assert said(world, id) == ["before", "hi", "at last"]


@pytest.mark.parametrize("mode", ["streamed", "background"])
def test_a_turn_that_slept_while_the_conversation_went_on_is_told_as_failed(world: World, mode: str) -> None:
    one, two = world.begin(), world.begin()
    id = begin(world, one, "before")
    if mode == "streamed":
        run = world.spawn(one, start(one.gateway, ANN, conversation=id)).result()
        ended, made = read(world, one, run), run.id
    else:
        made = world.spawn(one, start_in_background(one.gateway, ANN, conversation=id)).result()
    sleep(one)
    world.upstream.open[-1].end("too late")
    world.flow(LEASE + 1)
    more = parse_items([{"role": "user", "content": "meanwhile"}], "items")
    world.spawn(two, two.gateway.conversations.add(ANN, id, more)).result()
    wake(world, one)
    stored = json.loads(world.look(world.store.load(made, owner="ann")).response)
    assert (stored["status"], stored["error"]["code"]) == ("failed", "conversation_moved")
    if mode == "streamed":
        assert ended.result() == stored
    assert said(world, id) == ["before", "meanwhile"]


def test_a_turn_that_is_never_made_holds_nothing_for_long(world: World) -> None:
    process = world.begin()
    id = begin(world, process)
    world.spawn(process, start(process.gateway, ANN, conversation=id)).result()  # and nobody reads it
    assert world.spawn(process, start(process.gateway, ANN, conversation=id)).exception() is not None
    world.flow(2 * LEASE)
    assert world.spawn(process, start(process.gateway, ANN, conversation=id)).exception() is None


def test_one_that_finds_no_room_in_the_background_leaves_it_free(world: World) -> None:
    process = world.begin()
    for _ in range(4):
        world.spawn(process, start_in_background(process.gateway, ANN)).result()
    id = begin(world, process)
    error = world.spawn(process, start_in_background(process.gateway, ANN, conversation=id)).exception()
    assert isinstance(error, IsthmusError)
    assert error.code == "server_is_overloaded"
    assert world.spawn(process, start(process.gateway, ANN, conversation=id)).exception() is None


def test_a_store_that_fails_at_the_end_of_a_turn_adds_nothing(world: World) -> None:
    process = world.begin()
    id = begin(world, process, "before")
    run = world.spawn(process, start(process.gateway, ANN, conversation=id)).result()
    ended = read(world, process, run)
    process.wire.failing = "writes"
    world.upstream.open[-1].end("lost")
    world.quiet()
    assert ended.result()["status"] == "failed"
    assert said(world, id) == ["before"]
