"""What is kept of a chat completion, and what is not."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from isthmus.bridge.turn import Done
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.chats import AsChat, StoredChats, is_chat
from isthmus.store.memory import MemoryStore

MESSAGES = [{"role": "user", "content": "hi"}]


class _Plan:
    class target:
        provider = "mine"


def done(status: str, metadata: Any = None) -> Done:
    response: Any = {
        "id": "resp_1",
        "status": status,
        "model": "m",
        "metadata": metadata,
        "output": [],
        "instructions": None,
    }
    return Done(response, [], None)


async def kept(status: str, metadata: Any = None) -> MemoryStore:
    store = MemoryStore()
    chats = StoredChats(store, Aside())
    chat = AsChat(MESSAGES, lambda response: {"id": "chatcmpl-1", "object": "chat.completion", "said": "x"})
    ended = done(status, metadata)
    assert await chats.saver(chat, "local", 5.0, heavy=False)(ended, cast(Any, _Plan)) is ended
    return store


def test_ids_tell_completions_from_responses() -> None:
    assert is_chat("chatcmpl-1")
    assert not is_chat("resp_1")


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_it_is_kept_with_its_messages_and_metadata(status: str) -> None:
    async def ask() -> None:
        chats = StoredChats(await kept(status, {"a": "b"}), Aside())
        found = await chats.retrieve(LOCAL, "chatcmpl-1")
        assert msgspec.json.decode(found.response) == {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "said": "x",
            "metadata": {"a": "b"},
        }
        assert (found.created_at, found.model, found.provider) == (5.0, "m", "mine")
        assert await chats.messages(LOCAL, "chatcmpl-1") == MESSAGES
        assert [each.id for each in (await chats.find(LOCAL, metadata={"a": "b"})).chats] == ["chatcmpl-1"]

    asyncio.run(ask())


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_did_not_end_well_is_not_kept(status: str) -> None:
    async def ask() -> None:
        assert (await (await kept(status)).list_chats()).chats == ()

    asyncio.run(ask())


def test_another_owner_finds_nothing() -> None:
    async def ask() -> None:
        chats, ann = StoredChats(await kept("completed"), Aside()), Caller("ann")
        for asking in (
            chats.retrieve(ann, "chatcmpl-1"),
            chats.update(ann, "chatcmpl-1", {}),
            chats.delete(ann, "chatcmpl-1"),
            chats.messages(ann, "chatcmpl-1"),
            chats.retrieve(LOCAL, "resp_1"),
            chats.delete(LOCAL, "resp_1"),
        ):
            with pytest.raises(RequestRefused) as refused:
                await asking
            assert refused.value.code == "not_found"
        assert (await chats.find(ann)).chats == ()
        await chats.delete(LOCAL, "chatcmpl-1")
        assert (await chats.find(LOCAL)).chats == ()

    asyncio.run(ask())
