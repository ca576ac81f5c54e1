"""What every store answers about conversations: items in their order, turns added whole, nothing of somebody else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from every_store import Clock, every_shared_store, every_store
from isthmus.errors import RequestRefused
from isthmus.ports import Store, StoredConversation, StoredResponse, conversation_lease
from stored import ids, message, texts, turn

ANN = "ann"
MOST = 1000


def numbered(*numbers: int) -> list[bytes]:
    return [message(f"{number}", f"msg_{number}") for number in numbers]


async def begin(store: Store, *numbers: int, id: str = "conv_1", owner: str = ANN, at: float = 0.0) -> None:
    await store.start_conversation(StoredConversation(id, at, b'{"a":"b"}', owner), numbered(*numbers))


async def said(store: Store, id: str = "conv_1", owner: str = ANN) -> list[str]:
    found = await store.conversation_turns(id, owner=owner, most=MOST)
    assert found is not None
    return texts(tuple(item for item, _ in found.items))


async def stands(store: Store, id: str = "conv_1") -> int:
    found = await store.conversation_turns(id, owner=ANN, most=MOST)
    assert found is not None
    return found.at


async def within(store: Store, id: str, **fields: Any) -> StoredResponse:
    return replace(turn(id, owner=ANN, **fields), conversation="conv_1", conversation_at=await stands(store))


@every_store()
async def test_a_conversation_is_kept_described_and_ended(store: Store) -> None:
    await begin(store, 1, at=12.0)
    assert await store.conversation("conv_1", owner=ANN) == StoredConversation("conv_1", 12.0, b'{"a":"b"}', ANN)
    changed = await store.describe_conversation("conv_1", b"{}", owner=ANN)
    assert changed == StoredConversation("conv_1", 12.0, b"{}", ANN) == await store.conversation("conv_1", owner=ANN)
    assert (await store.stats()).conversations == 1
    assert await store.end_conversation("conv_1", owner=ANN)
    assert not await store.end_conversation("conv_1", owner=ANN)
    assert await store.conversation("conv_1", owner=ANN) is None
    assert (await store.stats()).pieces == 0


@every_store()
async def test_nobody_else_has_one(store: Store) -> None:
    await begin(store, 1)
    for owner, id in (("bob", "conv_1"), (ANN, "conv_2"), (ANN, "\ud800"), (ANN, "x" * 100_000), (ANN, "")):
        assert await store.conversation(id, owner=owner) is None
        assert await store.describe_conversation(id, b"{}", owner=owner) is None
        assert not await store.end_conversation(id, owner=owner)
        assert not await store.add_items(id, numbered(2), owner=owner, most=MOST)
        assert not await store.remove_item(id, "msg_1", owner=owner)
        assert await store.conversation_item(id, "msg_1", owner=owner) is None
        assert await store.conversation_items(id, owner=owner) is None
        assert await store.conversation_turns(id, owner=owner, most=MOST) is None
    assert await store.items(["msg_1"], owner="bob") == {}
    foreign = replace(await within(store, "r1"), owner="bob")
    assert await store.save(foreign)
    assert await said(store) == ["1"], "a response of somebody else says nothing in it"


@every_store()
async def test_items_are_put_in_and_taken_out(store: Store) -> None:
    await begin(store, 1)
    assert await store.add_items("conv_1", numbered(2, 3), owner=ANN, most=MOST)
    assert await store.remove_item("conv_1", "msg_2", owner=ANN)
    assert not await store.remove_item("conv_1", "msg_2", owner=ANN)
    assert await store.add_items("conv_1", numbered(2), owner=ANN, most=MOST)
    assert await said(store) == ["1", "3", "2"]
    assert await store.conversation_item("conv_1", "msg_3", owner=ANN) == numbered(3)[0]
    assert await store.conversation_item("conv_1", "msg_4", owner=ANN) is None
    assert (await store.stats()).conversation_items == 3
    assert (await store.stats()).pieces == 3


@every_store()
async def test_an_id_that_is_taken_and_too_many_items_are_refused_whole(store: Store) -> None:
    await begin(store, 1)
    for items, most, code in (
        (numbered(2, 1), MOST, "duplicate_item"),
        (numbered(2, 2), MOST, "duplicate_item"),
        (numbered(2, 3), 2, "conversation_too_long"),
    ):
        with pytest.raises(RequestRefused) as refused:
            await store.add_items("conv_1", items, owner=ANN, most=most)
        assert refused.value.code == code
    with pytest.raises(RequestRefused):
        await store.start_conversation(StoredConversation("conv_2", 0.0, owner=ANN), numbered(1, 1))
    assert await store.conversation("conv_2", owner=ANN) is None
    assert await said(store) == ["1"]
    assert (await store.stats()).pieces == 1


@every_store()
async def test_pages_go_on_after_an_item(store: Store) -> None:
    await begin(store, *range(7))
    await store.remove_item("conv_1", "msg_3", owner=ANN)
    for order, expected in (("asc", [0, 1, 2, 4, 5, 6]), ("desc", [6, 5, 4, 2, 1, 0])):
        for limit in (1, 2, 5, 6, 7):
            seen: list[str] = []
            after: str | None = None
            more = True
            while more:
                page = await store.conversation_items("conv_1", owner=ANN, limit=limit, after=after, order=order)  # type: ignore[arg-type]
                assert page is not None
                assert len(page.items) <= limit
                assert (page.first_id, page.last_id) == (ids(page.items)[0], ids(page.items)[-1])
                seen += texts(page.items)
                after, more = page.last_id, page.has_more
            assert seen == [str(number) for number in expected]
    for after in ("msg_3", "nothing", "\ud800"):
        with pytest.raises(RequestRefused, match="after"):
            await store.conversation_items("conv_1", owner=ANN, after=after)


@every_store()
async def test_a_turn_adds_its_input_and_its_output(store: Store) -> None:
    await begin(store, 1)
    await store.save(await within(store, "resp_r1"))
    await store.save(await within(store, "resp_r2", status="incomplete"))
    assert await said(store) == ["1", "ask resp_r1", "answer resp_r1", "ask resp_r2", "answer resp_r2"]
    page = await store.conversation_items("conv_1", owner=ANN, order="asc")
    assert page is not None
    assert ids(page.items) == ["msg_1", "msg_r1_i0", "msg_resp_r1", "msg_r2_i0", "msg_resp_r2"]
    found = await store.conversation_turns("conv_1", owner=ANN, most=MOST)
    assert found is not None
    assert [ours for _, ours in found.items] == [False, False, True, False, True]
    named = await store.items(["msg_r1_i0", "msg_resp_r1"], owner=ANN)
    assert texts(tuple(named.values())) == ["ask resp_r1", "answer resp_r1"]
    loaded = await store.load("resp_r1", owner=ANN)
    assert loaded is not None
    assert (loaded.conversation, loaded.conversation_at) == ("conv_1", 1)


@every_store()
async def test_only_what_ended_well_is_added(store: Store) -> None:
    await begin(store)
    for status in ("queued", "in_progress", "failed", "cancelled"):
        await store.save(await within(store, f"r_{status}", status=status))
    assert await said(store) == []
    await store.save(await within(store, "r_queued"))
    assert await said(store) == ["ask r_queued", "answer r_queued"]
    assert await store.update_status("r_in_progress", "failed", owner=ANN)
    assert await said(store) == ["ask r_queued", "answer r_queued"]


@every_store()
async def test_what_was_said_again_gets_another_id(store: Store) -> None:
    await begin(store, 1)
    again = (message("other words", "msg_1"), message("1", "msg_1"), message("made", "msg_r1_i0"))
    await store.save(await within(store, "resp_r1", input=again, output=(message("out", "msg_1", "assistant"),)))
    page = await store.conversation_items("conv_1", owner=ANN, order="asc")
    assert page is not None
    assert texts(page.items) == ["1", "other words", "1", "made", "out"]
    assert ids(page.items) == ["msg_1", "msg_r1_i0", "msg_r1_i1", "msg_r1_i2", "msg_r1_o0"]
    assert texts(tuple((await store.items(["msg_r1_i1"], owner=ANN)).values())) == ["1"]
    assert msgspec.json.decode((await store.items(["msg_r1_o0"], owner=ANN))["msg_r1_o0"])["id"] == "msg_r1_o0"


@every_store()
async def test_a_wish_of_the_moment_is_not_kept(store: Store) -> None:
    await begin(store)
    await store.save(await within(store, "r1", input=(message("hi"), b'{"type":"compaction_trigger"}')))
    assert await said(store) == ["hi", "answer r1"]


@every_store()
async def test_a_turn_that_began_elsewhere_adds_nothing_and_is_not_kept(store: Store) -> None:
    await begin(store, 1)
    late, later = await within(store, "r1"), await within(store, "r2")
    await store.save(later)
    with pytest.raises(RequestRefused) as moved:
        await store.save(late)
    assert moved.value.code == "conversation_moved"
    assert await store.load("r1", owner=ANN) is None
    removed = await within(store, "r3")
    await store.remove_item("conv_1", "msg_1", owner=ANN)
    with pytest.raises(RequestRefused):
        await store.save(removed)
    assert await said(store) == ["ask r2", "answer r2"]
    assert await store.save(replace(late, status="failed"))


@every_store()
async def test_a_response_outlives_its_conversation_and_the_other_way_round(store: Store) -> None:
    await begin(store, 1)
    await store.save(await within(store, "r1"))
    under_way = await within(store, "r2")
    await store.delete("r1", owner=ANN)
    assert await said(store) == ["1", "ask r1", "answer r1"]
    await store.end_conversation("conv_1", owner=ANN)
    assert await store.save(under_way)
    assert await store.load("r2", owner=ANN) == under_way
    assert (await store.stats()).pieces == 2


@every_store()
async def test_pruning_responses_leaves_what_they_said(store: Store) -> None:
    await begin(store, 1, at=1.0)
    await store.save(await within(store, "r1", at=2.0))
    pruned = await store.prune(older_than=100.0, max_bytes=1)
    assert (pruned.responses, pruned.conversations) == (1, 0)
    assert await said(store) == ["1", "ask r1", "answer r1"]
    assert texts(tuple((await store.items(["msg_r1"], owner=ANN)).values())) == ["answer r1"]


@every_shared_store
async def test_those_that_nobody_used_are_forgotten_by_a_time_of_their_own(
    one: Store, two: Store, clock: Clock
) -> None:
    for id, at in (("conv_1", 1.0), ("conv_2", 1.0), ("conv_3", 3.0), ("conv_4", 1.0)):
        await begin(one, id=id, at=at)
    await two.save(await within(one, "r1", at=5.0))
    await one.add_items("conv_2", numbered(1), owner=ANN, most=MOST, at=1.5)
    await one.claim(conversation_lease("conv_4"), owner=ANN, holder="a turn", seconds=30)
    pruned = await two.prune(conversations_older_than=3.0)
    assert (pruned.responses, pruned.conversations) == (0, 1)
    left = [id for id in ("conv_1", "conv_2", "conv_3", "conv_4") if await one.conversation(id, owner=ANN)]
    assert left == ["conv_1", "conv_3", "conv_4"]
    clock.at += 31
    assert (await two.prune(conversations_older_than=3.0)).conversations == 1


@every_shared_store
async def test_while_a_turn_is_under_way_nobody_else_changes_its_items(one: Store, two: Store, clock: Clock) -> None:
    await begin(one, 1)
    assert await one.claim(conversation_lease("conv_1"), owner=ANN, holder="a turn", seconds=30)
    for store in (one, two):
        with pytest.raises(RequestRefused) as locked:
            await store.add_items("conv_1", numbered(2), owner=ANN, most=MOST)
        assert (locked.value.code, locked.value.param) == ("conversation_locked", "conversation")
        with pytest.raises(RequestRefused):
            await store.remove_item("conv_1", "msg_1", owner=ANN)
    assert await two.describe_conversation("conv_1", b"{}", owner=ANN) is not None
    assert await said(two) == ["1"]
    assert await two.save(await within(two, "r1")), "a turn itself is not kept from it"
    clock.at += 31
    assert await two.add_items("conv_1", numbered(2), owner=ANN, most=MOST), "a lease that ended holds nothing"


@every_store()
async def test_a_chain_says_where_it_began(store: Store) -> None:
    await begin(store, 1, 2)
    await store.save(await within(store, "r1"))
    await store.save(turn("r2", "r1", owner=ANN))
    first, second = await store.chain("r2", owner=ANN)
    assert (first.conversation, first.conversation_at) == ("conv_1", 2)
    assert second.conversation is None
    await store.add_items("conv_1", numbered(3), owner=ANN, most=MOST)
    before = await store.conversation_turns("conv_1", owner=ANN, most=MOST, before=2)
    assert before is not None
    assert texts(tuple(item for item, _ in before.items)) == ["1", "2"]


@every_store()
async def test_no_more_is_read_than_is_asked_for(store: Store) -> None:
    await begin(store, *range(5))
    found = await store.conversation_turns("conv_1", owner=ANN, most=2)
    assert found is not None
    assert len(found.items) == 3


@every_store()
async def test_an_export_has_each_with_its_items(store: Store) -> None:
    await begin(store, 1, at=7.0)
    await begin(store, id="conv_2", owner="bob", at=8.0)
    await store.save(await within(store, "r1"))
    lines = [msgspec.json.decode(line) async for line in store.export_conversations()]
    assert [(line["conversation"], line["owner"], line["created_at"]) for line in lines] == [
        ("conv_1", ANN, 7.0),
        ("conv_2", "bob", 8.0),
    ]
    assert lines[0]["metadata"] == {"a": "b"}
    assert [item["id"] for item in lines[0]["items"]] == ["msg_1", "msg_r1_i0", "msg_r1"]
    assert lines[1]["items"] == []
