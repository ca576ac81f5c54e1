"""Chat completions, kept by every store in the same way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from every_store import every_store
from isthmus.errors import RequestRefused
from isthmus.ports import LOCAL, Store, StoredResponse


def completion(id: str, *, model: str = "m", owner: str = LOCAL, at: float = 1.0, **fields: Any) -> StoredResponse:
    body = {"id": id, "object": "chat.completion", "model": model, "choices": [{"text": "x" * 600}], **fields}
    asked = msgspec.json.encode({"role": "user", "content": f"ask {id}"})
    return StoredResponse(
        id, msgspec.json.encode(body), input=(asked,), created_at=at, model=model, provider="p", owner=owner
    )


async def ids(store: Store, **asked: Any) -> tuple[list[str], bool]:
    page = await store.list_chats(**asked)
    return [chat.id for chat in page.chats], page.has_more


@every_store()
async def test_what_was_kept_comes_back_as_it_was(store: Store) -> None:
    await store.save_chat(completion("c1"), {"a": "b"})
    assert await store.load("c1") == completion("c1")
    assert (await store.list_chats()).chats == (completion("c1"),)


@every_store()
async def test_pages_are_in_the_order_of_making_whatever_is_read_meanwhile(store: Store) -> None:
    for number in range(5):
        await store.save_chat(completion(f"c{number}", at=9.0 - number), {})
    await store.load("c0")
    assert await ids(store) == (["c0", "c1", "c2", "c3", "c4"], False)
    assert await ids(store, limit=2) == (["c0", "c1"], True)
    assert await ids(store, limit=2, after="c2") == (["c3", "c4"], False)
    assert await ids(store, limit=2, order="desc") == (["c4", "c3"], True)
    assert await ids(store, limit=2, order="desc", after="c2") == (["c1", "c0"], False)
    assert await ids(store, after="c4") == ([], False)


@every_store()
async def test_responses_are_not_among_them(store: Store) -> None:
    await store.save(replace(completion("r1"), id="r1"))
    await store.save_chat(completion("c1"), {})
    assert await ids(store) == (["c1"], False)
    assert await store.update_chat("r1", {"a": "b"}) is None


@every_store()
async def test_owners_see_their_own(store: Store) -> None:
    await store.save_chat(completion("c1", owner="ann"), {"a": "b"})
    await store.save_chat(completion("c2", owner="bob"), {"a": "b"})
    assert await ids(store, owner="ann") == (["c1"], False)
    assert await ids(store, owner="ann", metadata={"a": "b"}) == (["c1"], False)
    assert await ids(store) == ([], False)
    assert await store.update_chat("c1", {}, owner="bob") is None
    with pytest.raises(RequestRefused, match="`after` names no stored chat completion"):
        await store.list_chats(owner="ann", after="c2")


@every_store()
async def test_they_are_chosen_by_model_and_by_every_pair(store: Store) -> None:
    await store.save_chat(completion("c1"), {"a": "1", "b": "2"})
    await store.save_chat(completion("c2", model="n"), {"a": "1", '😀."': "$"})
    assert await ids(store, metadata={"a": "1"}) == (["c1", "c2"], False)
    assert await ids(store, metadata={"a": "1", "b": "2"}) == (["c1"], False)
    assert await ids(store, metadata={"a": "2"}) == ([], False)
    assert await ids(store, metadata={'😀."': "$"}) == (["c2"], False)
    assert await ids(store, model="n") == (["c2"], False)
    assert await ids(store, model="\ud800") == ([], False)
    assert await ids(store, limit=1, metadata={"a": "1"}) == (["c1"], True)


@every_store()
async def test_other_metadata_is_told_and_listed_by(store: Store) -> None:
    await store.save_chat(completion("c1", metadata={"a": "1"}), {"a": "1"})
    await store.save_chat(completion("c2"), {})
    changed = await store.update_chat("c1", {"a": "2"})
    assert changed == completion("c1", metadata={"a": "2"})
    assert await store.load("c1") == changed
    assert await ids(store, metadata={"a": "1"}) == ([], False)
    assert await ids(store, metadata={"a": "2"}) == (["c1"], False)
    assert await ids(store) == (["c1", "c2"], False), "its place is that of its making"


@every_store()
async def test_deleted_and_forgotten_ones_are_listed_no_more(store: Store) -> None:
    for number in range(3):
        await store.save_chat(completion(f"c{number}", at=float(number)), {"a": "1"})
    assert await store.delete("c1")
    assert await ids(store, metadata={"a": "1"}) == (["c0", "c2"], False)
    assert await store.update_chat("c1", {}) is None
    await store.save_chat(completion("c1", at=1.0), {"a": "1"})
    assert await ids(store) == (["c0", "c2"], False), "what was deleted does not come back"
    await store.prune(older_than=1.5)
    assert await ids(store) == (["c2"], False)
