"""What every store of traces promises, asked of a file, of memory and of PostgreSQL alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus.errors import RequestRefused
from isthmus.ports.traces import Grouping, TraceFilter, TracePage, TraceStore
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options
from isthmus.store.traces.postgres import PostgresTraces
from isthmus.store.traces.sqlite import SqliteTraces
from postgres import database_of
from traced import keep_in, patterned, traced


@pytest.fixture(params=["file", "memory", "postgres", "file, patterns", "postgres, patterns"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceStore]:
    """And the same of traces that have most of what they say in common."""
    kind, patterns, _ = request.param.partition(", patterns")
    opened = open_traces(kind, tmp_path)
    if patterns:
        keep = opened.keep
        monkeypatch.setattr(opened, "keep", lambda traces: keep(list(map(patterned, traces))))
    yield opened
    opened.close()


def open_traces(kind: str, folder: Path) -> TraceStore:
    if kind == "postgres":
        return PostgresTraces(Options(Address(database_of(folder))))
    return SqliteTraces(folder / "isthmus.traces.db" if kind == "file" else None)


def ids(page: TracePage) -> list[str]:
    return [summary.id.removeprefix("req_") for summary in page.traces]


async def test_what_is_kept_is_found_by_both_of_its_ids_as_it_was(store: TraceStore) -> None:
    trace = traced("1", key="k1", degraded=2)
    keep_in(store, [trace])
    for id in ("req_1", "resp_1"):
        found = await store.find("local", id)
        assert found is not None
        assert msgspec.structs.replace(found, summary=trace.summary) == trace
        assert msgspec.structs.replace(found.summary, seq=0) == trace.summary
    assert await store.find("local", "req_2") is None
    assert await store.find("local", "") is None


async def test_a_long_trace_comes_back_as_it_was(store: TraceStore) -> None:
    trace = msgspec.structs.replace(traced("1"), diagnostics=tuple({"message": "x" * 100} for _ in range(100)))
    keep_in(store, [trace])
    found = await store.find("local", "req_1")
    assert found is not None
    assert found.diagnostics == trace.diagnostics


async def test_owners_see_their_own_and_the_operator_sees_all(store: TraceStore) -> None:
    keep_in(store, [traced("1", owner="ann"), traced("2", owner="ben"), traced("3", owner="", response="")])
    for owner, seen in (("ann", ["1"]), ("ben", ["2"]), ("eve", []), (None, ["3", "2", "1"])):
        assert ids(await store.list(owner)) == seen
        assert [id for id in "321" if await store.find(owner, f"req_{id}") is not None] == seen
        assert [id for id in "321" if await store.walk(owner, f"req_{id}")] == seen
        assert sum(total.requests for total in await store.totals(owner)) == len(seen)
        assert (await store.stats(owner)).traces == len(seen)
        assert [trace.summary.id for trace in [t async for t in store.export(owner)]] == [
            f"req_{id}" for id in reversed(seen)
        ]
        assert [total.group for total in await store.totals(owner, by="key")] == ([""] if seen else [])


async def test_pages_follow_one_another_both_ways_without_a_gap(store: TraceStore) -> None:
    keep_in(store, [traced(str(number), 1_000.0 + number) for number in range(7)])
    for order, expected in (("desc", list("6543210")), ("asc", list("0123456"))):
        seen: list[str] = []
        after: int | None = None
        while True:
            page = await store.list("local", limit=3, after=after, order=order)  # type: ignore[arg-type]
            seen += ids(page)
            if not page.has_more:
                break
            after = page.traces[-1].seq
        assert seen == expected
    last = (await store.stats()).latest
    assert ids(await store.list("local", after=last, order="asc")) == []
    keep_in(store, [traced("7", 1_008.0)])
    assert ids(await store.list("local", after=last, order="asc")) == ["7"]


VARIED: list[dict[str, Any]] = [
    {},
    {"provider": "other", "model": "big"},
    {"outcome": "failed", "code": "upstream_timeout"},
    {"door": "chat", "client": "codex"},
    {"key": "k1", "degraded": 1},
    {"model": "big", "thread": "t"},
]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"provider": "other"}, "1"),
        ({"model": "big"}, "51"),
        ({"model": "big", "provider": "main"}, "5"),
        ({"outcome": "failed"}, "2"),
        ({"code": "upstream_timeout"}, "2"),
        ({"door": "chat"}, "3"),
        ({"client": "codex"}, "3"),
        ({"key": "k1"}, "4"),
        ({"changed": True}, "4"),
        ({"changed": False}, "53210"),
        ({"thread": "t"}, "5"),
        ({"thread": "t", "door": "chat"}, ""),
        ({"since": 1_003.0}, "543"),
        ({"until": 1_003.0}, "210"),
        ({"since": 1_001.0, "until": 1_004.0, "provider": "main"}, "32"),
        ({"since": 2_000.0}, ""),
        ({"provider": "nobody"}, ""),
        ({}, "543210"),
    ],
)
async def test_every_filter_finds_what_it_says(store: TraceStore, filter: dict[str, Any], expected: str) -> None:
    keep_in(store, [traced(str(number), 1_000.0 + number, **varied) for number, varied in enumerate(VARIED)])
    wanted = TraceFilter(**filter)
    assert "".join(ids(await store.list("local", wanted))) == expected
    assert "".join(ids(await store.list("local", wanted, order="asc"))) == expected[::-1]
    one_by_one: list[str] = []
    after: int | None = None
    while True:
        page = await store.list("local", wanted, limit=1, after=after)
        one_by_one += ids(page)
        if not page.has_more:
            break
        after = page.traces[-1].seq
    assert "".join(one_by_one) == expected


async def test_totals_are_the_sums_of_what_was_kept_and_know_the_filters(store: TraceStore) -> None:
    keep_in(
        store,
        [
            traced("1", cost=0.25, cached_tokens=4, retries=1, ignored=2),
            traced("2", cost=0.5, total=2.0),
            traced("3", provider="other", outcome="failed", code="x", cost=None, first_token=None),
        ],
    )
    keep_in(store, [traced("4", 2_000.0, provider="other", cost=0.25)])
    (whole,) = await store.totals("local")
    assert (whole.requests, whole.failed, whole.input_tokens, whole.output_tokens) == (4, 1, 40, 20)
    assert (whole.cost, whole.unpriced, whole.cached_tokens, whole.retries, whole.ignored) == (1.0, 1, 4, 1, 2)
    assert whole.seconds == pytest.approx(3.5)
    assert [(each.group, each.requests) for each in await store.totals("local", by="provider")] == [
        ("main", 2),
        ("other", 2),
    ]
    assert [each.requests for each in await store.totals("local", TraceFilter(provider="other"))] == [2]
    assert [each.requests for each in await store.totals("local", TraceFilter(since=1_500.0))] == [1]
    assert [each.requests for each in await store.totals("local", TraceFilter(until=1_500.0))] == [3]
    assert [(each.group, each.requests) for each in await store.totals("local", by="time", step=300)] == [
        ("900", 3),
        ("1800", 1),
    ]


async def test_the_spread_tells_percentiles_to_within_a_fifth(store: TraceStore) -> None:
    times = [0.010 * number for number in range(1, 101)]
    keep_in(store, [traced(str(index), total=seconds, first_token=None) for index, seconds in enumerate(times)])
    (whole,) = await store.totals("local")
    assert whole.first_token.percentile(0.5) is None
    for share in (0.5, 0.9, 0.99):
        true, told = times[round(share * 100) - 1], whole.total.percentile(share)
        assert told is not None
        assert true <= told * 1.0001 <= true * 1.2


async def test_no_group_of_totals_knows_a_thread_or_an_odd_step(store: TraceStore) -> None:
    for options in ({"filter": TraceFilter(thread="t")}, {"step": 7}):
        with pytest.raises(RequestRefused):
            await store.totals("local", **options)  # type: ignore[arg-type]


async def test_the_turns_of_a_chain_are_one_thread_and_so_are_its_branches(store: TraceStore) -> None:
    keep_in(
        store, [traced("1"), traced("2", previous="resp_1", thread="x"), traced("3", previous="resp_2", thread="y")]
    )
    keep_in(
        store, [traced("4", previous="resp_1", thread="z"), traced("5"), traced("6", previous="resp_gone", thread="w")]
    )
    for id in ("req_1", "resp_3", "req_4"):
        assert [summary.id for summary in await store.walk("local", id)] == ["req_1", "req_2", "req_3", "req_4"]
    assert [summary.id for summary in await store.walk("local", "req_6")] == ["req_6"]
    assert [summary.id for summary in await store.walk("local", "req_1", most=2)] == ["req_3", "req_4"]


async def test_nobody_joins_somebody_elses_thread(store: TraceStore) -> None:
    keep_in(store, [traced("1", owner="ann"), traced("2", owner="ben", previous="resp_1", thread="own")])
    found = await store.find("ben", "req_2")
    assert found is not None
    assert found.summary.thread == "own"


async def test_of_a_deleted_response_only_figures_stay(store: TraceStore) -> None:
    keep_in(store, [traced("1"), traced("2")])
    store.forget("eve", "resp_1")
    assert (await store.find("local", "req_1")) != (await store.find("eve", "req_1"))
    untouched = await store.find("local", "req_1")
    assert untouched is not None
    assert untouched.calls
    store.forget("local", "resp_1")
    left = await store.find("local", "req_1")
    assert left is not None
    assert left.summary.deleted
    assert (left.summary.input_tokens, left.calls, left.request.pieces) == (10, (), ())
    other = await store.find("local", "req_2")
    assert other is not None
    assert other.calls


async def test_the_old_ones_go_in_steps_and_their_totals_with_them(store: TraceStore) -> None:
    keep_in(store, [traced(str(number), 1_000.0 + number) for number in range(5)])
    keep_in(store, [traced("new", 86_400.0 + 9_000.0)])
    assert [store.prune(older_than=86_400.0 + 5_000.0, most=2) for _ in range(4)] == [2, 2, 1, 0]
    assert ids(await store.list("local")) == ["new"]
    assert [total.requests for total in await store.totals("local")] == [1]
    assert await store.find("local", "req_3") is None


async def test_above_its_size_the_oldest_go_and_the_totals_stay(store: TraceStore) -> None:
    keep_in(store, [traced(str(number), 1_000.0 + number / 10) for number in range(4_000)])
    held = (await store.stats()).bytes
    gone = 0
    while went := store.prune(max_bytes=held // 2, most=200):
        gone += went
    assert 0 < gone < 4_000
    assert (await store.stats()).bytes <= held // 2
    assert ids(await store.list("local"))[0] == "3999"
    assert (await store.stats()).traces == 4_000 - gone
    assert [total.requests for total in await store.totals("local")] == [4_000]


async def test_a_clock_that_goes_back_changes_no_order(store: TraceStore) -> None:
    keep_in(store, [traced("1", 2_000.0)])
    keep_in(store, [traced("2", 1_000.0)])
    assert ids(await store.list("local", TraceFilter(since=1_500.0))) == ["2", "1"]
    assert [total.requests for total in await store.totals("local", TraceFilter(since=1_500.0))] == [2]


async def test_whoever_reads_while_others_write_sees_whole_traces(store: TraceStore) -> None:
    async def write() -> None:
        for number in range(30):
            await asyncio.to_thread(keep_in, store, [traced(f"{number}-{each}", 1_000.0 + number) for each in range(5)])

    writing = asyncio.create_task(write())
    while not writing.done():
        assert len((await store.list("local", limit=1000)).traces) % 5 == 0
    await writing
    assert len((await store.list("local", limit=1000)).traces) == 150


@pytest.mark.parametrize("by", ["provider", "model", "key", "client", "door", "outcome", "code"])
async def test_totals_can_be_grouped_by_whatever_lists_are_filtered_by(store: TraceStore, by: Grouping) -> None:
    keep_in(store, [traced(str(number), **varied) for number, varied in enumerate(VARIED)])
    groups = await store.totals("local", by=by)
    assert len(groups) == 2
    assert [each.requests for each in groups] == sorted([each.requests for each in groups], reverse=True)
    for group in groups:
        if group.group:
            (same,) = await store.totals("local", TraceFilter(**{by: group.group}))  # type: ignore[arg-type]
            assert same.requests == group.requests
