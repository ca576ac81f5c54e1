"""Turns and changes by hand of many processes, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.errors import RequestRefused
from isthmus.ports import StoredConversation
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.store import PostgresStore
from stored import ids, message, turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_items_that_are_put_in_at_once_all_have_a_place_of_their_own(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        await one.start_conversation(StoredConversation("c", 1.0))
        await asyncio.gather(
            *(
                store.add_items("c", [message(f"{number}", f"{name}_{number}")], most=100)
                for number in range(10)
                for name, store in (("one", one), ("two", two))
            )
        )
        page = await one.conversation_items("c", limit=100, order="asc")
        assert page is not None
        assert len(set(ids(page.items))) == 20
        assert (await one.stats()).conversation_items == 20

    asked(ask)


def test_of_two_turns_from_one_place_one_is_said(asked: Asked) -> None:
    from msgspec.structs import replace

    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        await one.start_conversation(StoredConversation("c", 1.0))
        turns = [replace(turn(id), conversation="c") for id in ("a", "b")]
        answers = await asyncio.gather(one.save(turns[0]), two.save(turns[1]), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, RequestRefused)]
        assert [each.code for each in refused] == ["conversation_moved"]
        said = await one.conversation_turns("c", most=100)
        assert said is not None
        assert len(said.items) == 2

    asked(ask)


def test_an_id_that_was_said_already_gets_another_name(asked: Asked, connection: Connection) -> None:
    from msgspec.structs import replace

    async def ask(store: PostgresStore) -> None:
        await store.start_conversation(StoredConversation("c", 1.0), [message("hi", "mine")])
        items = (message("again", "mine"), message("unnamed"), message("long", "x" * 3000))
        await store.save(replace(turn("resp_r", input=items), conversation="c", conversation_at=1))
        page = await store.conversation_items("c", limit=100, order="asc")
        assert page is not None
        assert ids(page.items) == ["mine", "msg_r_i0", "msg_r_i1", "x" * 3000, "msg_resp_r"]
        assert await store.remove_item("c", "mine")
        assert await store.end_conversation("c")
        assert connection.execute("SELECT count(*) FROM conversation_items").fetchone() == (0,)

    asked(ask)
