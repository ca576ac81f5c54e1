"""Stored turns become the beginning of a new one: in order, of one owner, whole or refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest

from gateway.house import asking
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.bridge.parse import Request
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.history import load_past
from isthmus.ports import Store
from isthmus.store.memory import MemoryStore
from stored import message, turn


async def load_history(store: Store, request: Request, *, owner: str, max_chain: int) -> list[Any]:
    past = await load_past(store, request, owner=owner, max_chain=max_chain, limits=DEFAULT_LIMITS, aside=Aside())
    return past.history


async def resolve_references(
    store: Store, request: Request, *, owner: str, limits: RequestLimits = DEFAULT_LIMITS
) -> Request:
    return (await load_past(store, request, owner=owner, max_chain=10, limits=limits, aside=Aside())).request


async def chain_of(*statuses: str) -> MemoryStore:
    store = MemoryStore()
    for number, status in enumerate(statuses, 1):
        await store.save(turn(f"r{number}", f"r{number - 1}" if number > 1 else None, status=status))
    return store


def words(items: list[Any]) -> list[str]:
    return [item["content"][0]["text"] for item in items]


class Unasked(MemoryStore):
    """Nobody may ask it anything."""

    async def chain(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("asked")

    items = chain


async def test_it_is_prior_input_prior_output_oldest_first() -> None:
    store = await chain_of("completed", "completed")
    found = await load_history(store, asking(previous_response_id="r2"), owner="local", max_chain=10)
    assert words(found) == ["ask r1", "answer r1", "ask r2", "answer r2"]
    assert [item["role"] for item in found] == ["user", "assistant"] * 2


async def test_a_new_conversation_costs_no_read() -> None:
    assert await load_history(Unasked(), asking(), owner="local", max_chain=10) == []
    request = asking(input=[{"role": "user", "content": "hi"}])
    assert await resolve_references(Unasked(), request, owner="local") is request


async def test_earlier_instructions_are_not_replayed() -> None:
    store = MemoryStore()
    await store.save(turn("r1", instructions="Be brief."))
    found = await load_history(store, asking(previous_response_id="r1"), owner="local", max_chain=10)
    assert "Be brief." not in str(found)


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
async def test_what_ended_can_be_continued_however_it_ended(status: str) -> None:
    store = await chain_of(status)
    found = await load_history(store, asking(previous_response_id="r1"), owner="local", max_chain=10)
    assert words(found) == ["ask r1", "answer r1"]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
async def test_what_is_still_being_made_cannot(status: str) -> None:
    store = await chain_of("completed", status)
    with pytest.raises(RequestRefused, match=f"`r2` is still {status}") as refused:
        await load_history(store, asking(previous_response_id="r2"), owner="local", max_chain=10)
    assert (refused.value.code, refused.value.param) == ("previous_response_not_finished", "previous_response_id")


@pytest.mark.parametrize(
    ("owner", "longest", "code"),
    [("local", 1, "previous_response_chain_too_long"), ("ann", 10, "previous_response_not_found")],
)
async def test_it_is_as_long_as_allowed_and_of_its_owner(owner: str, longest: int, code: str) -> None:
    store = await chain_of("completed", "completed")
    with pytest.raises(RequestRefused) as refused:
        await load_history(store, asking(previous_response_id="r2"), owner=owner, max_chain=longest)
    assert refused.value.code == code


async def test_an_item_that_does_not_say_what_it_is_is_a_message() -> None:
    store = MemoryStore()
    bare = msgspec.json.encode({"role": "user", "content": "hi"})
    await store.save(turn("r1", input=(bare,), output=()))
    found = await load_history(store, asking(previous_response_id="r1"), owner="local", max_chain=10)
    assert found == [{"type": "message", "role": "user", "content": "hi"}]


# ── references ─────────────────────────────────────────────────────────────────────────────────────────


def refer(id: str) -> dict[str, str]:
    return {"type": "item_reference", "id": id}


async def resolved(store: Store, *items: Any, owner: str = "local") -> list[Any]:
    return list((await resolve_references(store, asking(input=list(items)), owner=owner)).items)


async def test_a_reference_is_replaced_where_it_stands() -> None:
    store = MemoryStore()
    await store.save(turn("r1", input=(message("named", "msg_in"),)))
    said = {"type": "message", "role": "user", "content": "now"}
    found = await resolved(store, refer("msg_r1"), said, refer("msg_in"), refer("msg_r1"))
    assert words([found[0], found[2], found[3]]) == ["answer r1", "named", "answer r1"]
    assert found[1]["content"] == "now"


async def test_the_rest_of_the_request_stays() -> None:
    store = MemoryStore()
    await store.save(turn("r1"))
    request = asking(input=[refer("msg_r1")], temperature=0.5)
    made = await resolve_references(store, request, owner="local")
    assert made.body == request.body
    assert request.items[0]["type"] == "item_reference", "the request itself is left alone"


@pytest.mark.parametrize("owner", ["local", "ann"])
async def test_a_reference_to_nothing_names_its_place(owner: str) -> None:
    store = MemoryStore()
    await store.save(turn("r1", owner="local" if owner == "ann" else "bob"))
    with pytest.raises(RequestRefused, match=r"`input\[1\]` refers to item `msg_r1`") as refused:
        await resolved(store, {"role": "user", "content": "hi"}, refer("msg_r1"), owner=owner)
    assert (refused.value.code, refused.value.param) == ("item_not_found", "input[1].id")


# ── limits ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_one_item_named_five_hundred_times_counts_five_hundred_times() -> None:
    store = MemoryStore()
    await store.save(turn("r1", input=(message("x" * 1_000_000, "big"),)))
    request = asking(input=[refer("big")] * 500)
    tracemalloc.start()
    try:
        with pytest.raises(
            RequestRefused, match=r"more than 50,000,000 bytes, the limit `limits.max_input`"
        ) as refused:
            await resolve_references(store, request, owner="local")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert (refused.value.param, refused.value.metadata["limit"]) == ("input", 50_000_000)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (RequestLimits(max_items=4), "more than 4 items"),
        (RequestLimits(max_values=20), "more than 20 values"),
        (RequestLimits(max_input=300), "more than 300 bytes"),
    ],
)
async def test_stored_turns_and_references_count_together_with_what_the_request_brings(
    limits: RequestLimits, words: str
) -> None:
    store = await chain_of("completed")
    request = asking(
        previous_response_id="r1", input=[{"role": "user", "content": "hi"}, refer("msg_r1"), refer("msg_r1")]
    )
    with pytest.raises(RequestRefused, match=words):
        await load_past(store, request, owner="local", max_chain=10, limits=limits, aside=Aside())
