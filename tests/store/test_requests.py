"""Requests that were named, kept by every store in the same way."""

from __future__ import annotations

from every_store import every_store
from isthmus.ports import NamedRequest, Store


def asked(id: str = "resp_1", *, digest: bytes = b"\x00d", at: float = 5.0) -> NamedRequest:
    return NamedRequest(digest, id, at)


@every_store()
async def test_a_name_leads_to_what_was_kept_under_it_last(store: Store) -> None:
    assert await store.named_request("k") is None
    await store.name_request("k", asked())
    assert await store.named_request("k") == asked()
    await store.name_request("k", asked("resp_2", at=6.0))
    assert await store.named_request("k") == asked("resp_2", at=6.0)


@every_store()
async def test_names_belong_to_owners(store: Store) -> None:
    await store.name_request("k", asked("resp_1"), owner="ann")
    await store.name_request("k", asked("resp_2"), owner="bob")
    assert await store.named_request("k", owner="ann") == asked("resp_1")
    assert await store.named_request("k", owner="bob") == asked("resp_2")
    assert await store.named_request("k") is None


@every_store()
async def test_old_names_are_not_told_and_go_with_new_ones(store: Store) -> None:
    for number in range(20):
        await store.name_request(f"k{number}", asked(at=float(number)))
    assert await store.named_request("k9", since=9.5) is None
    assert await store.named_request("k10", since=9.5) == asked(at=10.0)
    await store.name_request("new", asked(at=50.0), since=15.0)
    kept = [number for number in range(20) if await store.named_request(f"k{number}")]
    assert kept == [15, 16, 17, 18, 19]
    await store.name_request("old", asked(at=1.0), since=100.0)
    assert await store.named_request("k19") is None


@every_store()
async def test_any_text_is_a_name(store: Store) -> None:
    for name in ("", "\ud800", "'; --", "ü" * 300):
        await store.name_request(name, asked(name.encode("utf-8", "replace").decode()))
        found = await store.named_request(name)
        assert found is not None
