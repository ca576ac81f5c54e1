"""The memory store's conversations are bounded, and give back what they took."""

from __future__ import annotations

from msgspec.structs import replace

from isthmus.ports import StoredConversation, conversation_lease
from isthmus.store.memory import MemoryStore
from stored import message, turn


async def begin(store: MemoryStore, *ids: str, words: str = "x") -> None:
    for id in ids:
        await store.start_conversation(StoredConversation(id, 0.0), [message(f"{words} {id}", f"msg_{id}")])


async def left(store: MemoryStore, *ids: str) -> list[str]:
    return [id for id in ids if await store.conversation(id) is not None]


async def test_the_longest_unused_goes_first() -> None:
    store = MemoryStore(max_conversations=2)
    await begin(store, "a", "b")
    await store.conversation_turns("a", most=10)
    await begin(store, "c")
    assert await left(store, "a", "b", "c") == ["a", "c"]
    await store.save(replace(turn("r1"), conversation="a", conversation_at=1))
    await begin(store, "d")
    assert await left(store, "a", "c", "d") == ["a", "d"]


async def test_one_in_which_a_turn_is_under_way_stays() -> None:
    store = MemoryStore(max_conversations=2)
    await begin(store, "a", "b")
    await store.claim(conversation_lease("a"), holder="a turn", seconds=30)
    await begin(store, "c")
    assert await left(store, "a", "b", "c") == ["a", "c"]


async def test_their_bytes_count_and_responses_go_before_them() -> None:
    store = MemoryStore(max_bytes=10_000)
    await store.save(turn("r1"))
    await begin(store, "a", words="w" * 4_000)
    await begin(store, "b", words="w" * 4_000)
    await store.save(turn("r2"))
    assert await left(store, "a", "b") == ["a", "b"]
    await begin(store, "c", words="w" * 4_000)
    assert await store.load("r1") is None
    assert await left(store, "a", "b", "c") == ["b", "c"]
    assert (await store.stats()).bytes <= 10_000


async def test_what_is_ended_takes_no_room() -> None:
    store = MemoryStore()
    empty = (await store.stats()).bytes
    await begin(store, "a", "b")
    await store.add_items("a", [message("more", "msg_more")], most=10)
    await store.describe_conversation("a", b'{"a":"' + b"b" * 500 + b'"}')
    await store.remove_item("a", "msg_a")
    for id in ("a", "b"):
        assert await store.end_conversation(id)
    stats = await store.stats()
    assert (stats.bytes, stats.pieces, stats.conversations, stats.conversation_items) == (empty, 0, 0, 0)
