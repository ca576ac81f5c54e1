"""What every store answers about one response: save, load, delete, chain, items, pages, status, events."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from every_store import every_store
from isthmus.errors import RequestRefused
from isthmus.ports import UNFINISHED, EventBatch, Store
from stored import ids, message, texts, turn


@every_store()
async def test_a_saved_response_loads_byte_for_byte(store: Store) -> None:
    tools = [{"type": "function", "name": "t" * 600, "parameters": {"type": "object"}}]
    record = replace(
        turn("r1", at=12.5, tools=tools, instructions="long " * 500, metadata={"é": '\u2028 "quoted"'}),
        conversation="conv_1",
    )
    assert await store.save(record)
    assert await store.load("r1") == record


@every_store()
async def test_a_response_without_items_loads_as_it_was(store: Store) -> None:
    record = turn("r1", input=(), output=())
    await store.save(record)
    assert await store.load("r1") == record


@every_store()
async def test_unknown_and_strange_ids_are_simply_not_there(store: Store) -> None:
    await store.save(turn("r1"))
    for id in ("", "nothing", "\x00", "r1\x00", "\ud800", "R1", "' OR 1=1 --", "x" * 100_000, "in0_", "in1_r1", "🧵"):
        assert await store.load(id) is None
        assert not await store.delete(id)
        assert await store.list_input_items(id) is None
        assert await store.items([id]) == {}
        assert await store.events(id) == []
        assert not await store.update_status(id, "failed")
        with pytest.raises(RequestRefused):
            await store.chain(id)


@every_store()
async def test_saving_again_overwrites_and_forgets_the_old_items(store: Store) -> None:
    await store.save(turn("r1", status="in_progress", output=(message("par", "msg_1"),)))
    final = turn("r1", output=(message("partial no more", "msg_1"),))
    await store.save(final)
    assert await store.load("r1") == final
    assert texts(tuple((await store.items(["msg_1"])).values())) == ["partial no more"]
    assert (await store.stats()).pieces == 2


@every_store()
async def test_an_id_keeps_its_owner_and_its_parent(store: Store) -> None:
    await store.save(turn("r1"))
    await store.save(turn("r2", "r1"))
    for changed in (turn("r2", "r1", owner="mallory"), turn("r2"), turn("r2", "r9")):
        with pytest.raises(ValueError, match="another owner or parent"):
            await store.save(changed)
    assert await store.load("r2") == turn("r2", "r1")


@every_store()
async def test_a_record_that_is_not_json_is_refused_whole(store: Store) -> None:
    await store.save(turn("r1"))
    for broken in (
        replace(turn("r2"), response=b'{"output": ['),
        turn("r3", input=(b"[1]",)),
        turn("r4", input=(b"{",)),
    ):
        with pytest.raises(ValueError):
            await store.save(broken)
    assert (await store.stats()).responses == 1
    assert (await store.stats()).pieces == 2


@every_store()
async def test_deleted_content_is_gone_and_cannot_come_back(store: Store) -> None:
    await store.save(turn("r1"), events=EventBatch(0, (b'{"a":1}',)))
    assert await store.delete("r1")
    assert not await store.delete("r1")
    assert await store.load("r1") is None
    assert await store.items(["msg_r1", "in0_r1"]) == {}
    assert await store.events("r1") == []
    assert not await store.save(turn("r1"))
    assert not await store.append_events("r1", EventBatch(1, (b"{}",)))
    assert not await store.update_status("r1", "completed")
    stats = await store.stats()
    assert (stats.responses, stats.deleted, stats.pieces) == (0, 1, 0)


@every_store()
async def test_deleting_one_turn_leaves_what_others_share(store: Store) -> None:
    shared = message("the same words")
    await store.save(turn("r1", input=(shared,)))
    await store.save(turn("r2", input=(shared, shared)))
    await store.delete("r1")
    loaded = await store.load("r2")
    assert loaded is not None
    assert loaded.input == (shared, shared)


@every_store()
async def test_a_chain_is_prior_input_prior_output_oldest_first(store: Store) -> None:
    await store.save(turn("r1"))
    await store.save(turn("r2", "r1", status="incomplete"))
    await store.save(turn("r3", "r2"))
    turns = await store.chain("r3")
    assert [(turn.id, turn.status) for turn in turns] == [
        ("r1", "completed"),
        ("r2", "incomplete"),
        ("r3", "completed"),
    ]
    assert [texts(turn.input + turn.output) for turn in turns] == [[f"ask r{n}", f"answer r{n}"] for n in (1, 2, 3)]
    assert (turns[0].provider, turns[0].model) == ("a-provider", "a-model")


@every_store()
async def test_items_keep_their_order_within_a_turn(store: Store) -> None:
    many = tuple(message(str(number)) for number in range(40))
    await store.save(turn("r1", input=many, output=tuple(reversed(many))))
    (only,) = await store.chain("r1")
    assert only.input == many
    assert only.output == tuple(reversed(many))


@every_store()
async def test_forks_share_their_past_and_not_their_future(store: Store) -> None:
    await store.save(turn("root"))
    await store.save(turn("left", "root"))
    await store.save(turn("right", "root"))
    assert [turn.id for turn in await store.chain("left")] == ["root", "left"]
    assert [turn.id for turn in await store.chain("right")] == ["root", "right"]


@every_store()
async def test_a_missing_or_deleted_turn_breaks_the_chain_by_name(store: Store) -> None:
    await store.save(turn("r1"))
    await store.save(turn("r2", "r1"))
    await store.save(turn("r3", "r2"))
    await store.save(turn("orphan", "never_stored"))
    await store.delete("r1")
    for asked, named in (("r3", "r1"), ("r1", "r1"), ("orphan", "never_stored"), ("unknown", "unknown")):
        with pytest.raises(RequestRefused, match=f"`{named}` was not found") as refused:
            await store.chain(asked)
        assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")


@every_store()
async def test_a_chain_of_the_allowed_depth_works_and_one_more_is_refused(store: Store) -> None:
    for number in range(6):
        await store.save(turn(f"r{number}", f"r{number - 1}" if number else None))
    assert len(await store.chain("r4", max_depth=5)) == 5
    with pytest.raises(RequestRefused) as refused:
        await store.chain("r5", max_depth=5)
    assert refused.value.code == "previous_response_chain_too_long"
    assert len(await store.chain("r5", max_depth=10**30)) == 6


@every_store()
async def test_responses_that_name_each_other_end_in_a_refusal_not_in_a_loop(store: Store) -> None:
    await store.save(turn("a", "b"))
    await store.save(turn("b", "a"))
    with pytest.raises(RequestRefused) as refused:
        await store.chain("a", max_depth=100)
    assert refused.value.code == "previous_response_chain_too_long"
    assert await store.list_input_items("a") is not None
    assert (await store.prune(older_than=1.0)).responses in (0, 1, 2)


@every_store()
async def test_every_owner_sees_only_its_own(store: Store) -> None:
    await store.save(turn("r1", owner="ann"), events=EventBatch(0, (b"{}",)))
    await store.save(turn("r2", "r1", owner="bob"))
    assert await store.load("r1", owner="ann") == turn("r1", owner="ann")
    for other in ("local", "", "bob"):
        assert await store.load("r1", owner=other) is None
        assert await store.items(["msg_r1", "in0_r1"], owner=other) == {}
        assert await store.list_input_items("r1", owner=other) is None
        assert await store.events("r1", owner=other) == []
        assert not await store.append_events("r1", EventBatch(1, (b"{}",)), owner=other)
        assert not await store.update_status("r1", "failed", owner=other)
        assert not await store.delete("r1", owner=other)
    with pytest.raises(RequestRefused, match="`r1` was not found"):
        await store.chain("r2", owner="bob")
    page = await store.list_input_items("r2", owner="bob")
    assert page is not None
    assert texts(page.items) == ["ask r2"]


@every_store()
async def test_item_references_resolve_input_and_output_in_the_order_asked(store: Store) -> None:
    await store.save(turn("r1", input=(message("named", "msg_in"), message("unnamed"))))
    found = await store.items(["msg_r1", "nothing", "msg_in", "in1_r1", "in0_r1"])
    assert list(found) == ["msg_r1", "msg_in", "in1_r1"]
    assert texts(tuple(found.values())) == ["answer r1", "named", "unnamed"]


@every_store()
async def test_no_more_items_are_read_than_what_they_may_take_together(store: Store) -> None:
    items = [message("x" * 5000 + str(number), f"msg_{number}") for number in range(4)]
    await store.save(turn("r1", input=(*items, message("unnamed"))))
    names = [*(f"msg_{number}" for number in range(4)), "in4_r1"]
    assert list(await store.items(names, max_bytes=2 * len(items[0]))) == names[:3], "the one that is too much is told"
    assert list(await store.items(names, max_bytes=len(items[0]) - 1)) == names[:1]
    assert list(await store.items(names)) == names


@every_store()
async def test_an_item_id_used_twice_names_the_first_until_that_is_gone(store: Store) -> None:
    await store.save(turn("r1", output=(message("original", "msg_x"),)))
    await store.save(turn("r2", input=(message("edited by the client", "msg_x"),)))
    assert texts(tuple((await store.items(["msg_x"])).values())) == ["original"]
    await store.delete("r1")
    assert texts(tuple((await store.items(["msg_x"])).values())) == ["edited by the client"]


@every_store()
async def test_a_field_equal_to_an_item_does_not_hide_the_item(store: Store) -> None:
    item = message("x" * 600, "msg_same")
    await store.save(turn("r1", echo=msgspec.Raw(item)))
    await store.save(turn("r2", input=(item,)))
    assert await store.items(["msg_same"]) == {"msg_same": item}


@every_store()
async def test_input_items_are_what_the_response_was_made_from_newest_first(store: Store) -> None:
    await store.save(turn("r1"))
    await store.save(turn("r2", "r1"))
    page = await store.list_input_items("r2")
    assert page is not None
    assert texts(page.items) == ["ask r2", "answer r1", "ask r1"]
    assert ids(page.items) == ["in0_r2", "msg_r1", "in0_r1"]
    assert (page.first_id, page.last_id, page.has_more) == ("in0_r2", "in0_r1", False)


@every_store()
async def test_input_items_page_through_everything_once_in_both_orders(store: Store) -> None:
    for number in range(5):
        resent = (message("again", "msg_again"), message("again", "msg_again"), message(f"new {number}"))
        await store.save(turn(f"r{number}", f"r{number - 1}" if number else None, input=resent))
    whole = await store.list_input_items("r4", limit=100, order="asc")
    assert whole is not None
    assert ids(whole.items)[:3] == ["msg_again", "in2_r0", "msg_r0"]
    for order in ("asc", "desc"):
        seen: list[str] = []
        more = True
        while more:
            page = await store.list_input_items("r4", limit=3, after=seen[-1] if seen else None, order=order)
            assert page is not None
            assert (page.first_id, page.last_id) == (ids(page.items)[0], ids(page.items)[-1])
            seen += ids(page.items)
            more = page.has_more
        assert seen == (ids(whole.items) if order == "asc" else ids(whole.items)[::-1])


@every_store()
async def test_a_page_after_an_unknown_item_is_refused_and_an_empty_list_is_a_page(store: Store) -> None:
    await store.save(turn("r1", input=()))
    page = await store.list_input_items("r1")
    assert page is not None
    assert (page.items, page.first_id, page.last_id, page.has_more) == ((), None, None, False)
    with pytest.raises(RequestRefused) as refused:
        await store.list_input_items("r1", after="nothing")
    assert refused.value.param == "after"


@every_store()
async def test_input_items_survive_a_deleted_ancestor(store: Store) -> None:
    await store.save(turn("r1"))
    await store.save(turn("r2", "r1"))
    await store.delete("r1")
    page = await store.list_input_items("r2")
    assert page is not None
    assert texts(page.items) == ["ask r2"]


@every_store()
async def test_a_listed_item_with_a_null_id_gets_one_and_keeps_the_rest(store: Store) -> None:
    await store.save(turn("r1", input=(b'{"id":null,"type":"new_kind","n":1.50}', b"{}")))
    page = await store.list_input_items("r1", order="asc")
    assert page is not None
    assert page.items == (b'{"id":"in0_r1","type":"new_kind","n":1.50}', b'{"id":"in1_r1"}')


@every_store()
async def test_a_status_change_shows_in_the_response_object_too(store: Store) -> None:
    await store.save(turn("r1", status="in_progress", big="x" * 2000))
    assert not await store.update_status("r1", "cancelled", only_from=("queued",))
    error = {"code": "server_error", "message": "stopped"}
    assert await store.update_status(
        "r1", "failed", only_from=("queued", "in_progress"), fields={"error": error, "big": 1}
    )
    loaded = await store.load("r1")
    assert loaded is not None
    body = msgspec.json.decode(loaded.response)
    assert (loaded.status, body["status"], body["error"], body["big"]) == ("failed", "failed", error, 1)
    assert texts(loaded.input) == ["ask r1"]
    assert not await store.update_status("r1", "cancelled", only_from=UNFINISHED)


@every_store()
async def test_events_are_read_after_any_number(store: Store) -> None:
    events = tuple(msgspec.json.encode({"sequence_number": number, "delta": "é\n"}) for number in range(7))
    await store.save(turn("r1", status="in_progress"))
    assert await store.events("r1") == []
    assert await store.append_events("r1", EventBatch(0, events[:3]))
    assert await store.append_events("r1", EventBatch(3, events[3:4]))
    assert await store.append_events("r1", EventBatch(4, ()))
    assert await store.save(turn("r1"), events=EventBatch(4, events[4:]))
    for after in (-1, 0, 2, 3, 5, 6, 7, 10**30):
        assert await store.events("r1", after=after) == list(events[max(0, after + 1) :])
    assert await store.events("r1", after=-(10**30)) == list(events)


@every_store()
async def test_events_out_of_line_are_a_bug_and_change_nothing(store: Store) -> None:
    await store.save(turn("r1", status="in_progress"), events=EventBatch(0, (b"{}", b"{}")))
    for first in (0, 1, 3):
        with pytest.raises(ValueError, match="expected 2"):
            await store.append_events("r1", EventBatch(first, (b"[]",)))
    with pytest.raises(ValueError, match="expected 2"):
        await store.save(turn("r1"), events=EventBatch(9, (b"[]",)))
    loaded = await store.load("r1")
    assert loaded is not None
    assert loaded.status == "in_progress"
    assert await store.events("r1") == [b"{}", b"{}"]


@every_store(max_event_bytes=100)
async def test_events_are_bounded_and_a_resume_from_before_is_refused(store: Store) -> None:
    await store.save(turn("r1", status="in_progress"))
    event = b'{"x":"' + b"x" * 32 + b'"}'
    for number in range(0, 10, 2):
        await store.append_events("r1", EventBatch(number, (event, event)))
    assert await store.events("r1", after=7) == [event, event]
    with pytest.raises(RequestRefused) as refused:
        await store.events("r1", after=6)
    assert (refused.value.code, refused.value.param) == ("events_expired", "starting_after")
    large = b'"' + b"x" * 500 + b'"'
    await store.append_events("r1", EventBatch(10, (large,)))
    assert await store.events("r1", after=9) == [large]


@every_store()
async def test_events_of_finished_responses_go_by_age_and_how_far_they_went_is_known(store: Store) -> None:
    for id, status, at in (("old", "completed", 10.0), ("running", "in_progress", 10.0), ("young", "failed", 30.0)):
        await store.save(turn(id, status=status, at=at), events=EventBatch(0, (b"0", b"1", b"2")))
    before = (await store.stats()).bytes
    assert (await store.prune(events_older_than=20.0)).responses == 0
    for id in ("running", "young"):
        assert await store.events(id, after=0) == [b"1", b"2"]
    for after in (-1, 0, 1):
        with pytest.raises(RequestRefused) as refused:
            await store.events("old", after=after)
        assert (refused.value.code, refused.value.param) == ("events_expired", "starting_after")
    assert await store.events("old", after=2) == [], "whoever saw the end is told nothing more"
    assert await store.load("old") == turn("old", at=10.0)
    assert (await store.stats()).bytes <= before
    await store.prune(events_older_than=20.0)
    await store.prune()
    assert await store.events("young") == [b"0", b"1", b"2"], "nobody asked for that"


@every_store(max_event_bytes=100)
async def test_no_more_events_are_dropped_than_the_bound_asks(store: Store) -> None:
    await store.save(turn("r1", status="in_progress"))
    event = b'"' + b"x" * 48 + b'"'
    for number in range(3):
        await store.append_events("r1", EventBatch(number, (event,)))
    assert await store.events("r1", after=0) == [event, event]
