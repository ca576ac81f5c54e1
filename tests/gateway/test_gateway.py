"""What the gateway can do, asked directly: what is planned, what is kept, and how everything comes to an end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.house import Heard, Upstream, asking, make_gateway, start, start_in_background
from gateway.world import ANN, LEASE, TIMEOUT, Process, World, make, stored
from isthmus.bridge.deltas import Text
from isthmus.bridge.types.plan import Lesson
from isthmus.conduct.run import Run
from isthmus.errors import ConfigError, IsthmusError, RequestRefused, UpstreamFailed
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.settings import Settings
from isthmus.ports import Ended, StoredResponse
from isthmus.providers import load_provider
from isthmus.store.memory import MemoryStore
from isthmus.testing.checker import InlineChecker

FULL = UpstreamFailed("it is full", code="server_is_overloaded", status=503)
MCP = {"type": "mcp", "server_label": "s", "server_url": "https://mcp.example/", "authorization": "secret-token"}


def call(world: World, process: Process, work: Any) -> Any:
    """What it answers; nothing of this takes time."""
    return world.spawn(process, work).result()


def refusal(world: World, process: Process, work: Any) -> IsthmusError:
    failure = world.spawn(process, work).exception()
    assert isinstance(failure, IsthmusError)
    return failure


def reading(world: World, process: Process, run: Run) -> tuple[list[Any], asyncio.Task[Any]]:
    events: list[Any] = []

    async def read() -> None:
        async for batch in run.events():
            events.extend(batch)

    return events, world.spawn(process, read())


def answer(world: World, process: Process, words: str, **fields: Any) -> Run:
    run: Run = call(world, process, start(process.gateway, ANN, **fields))
    _, task = reading(world, process, run)
    world.upstream.open[-1].end(words)
    world.quiet()
    task.result()
    return run


def kept(world: World, id: str) -> StoredResponse:
    found: StoredResponse | None = world.look(world.store.load(id, owner="ann"))
    assert found is not None
    return found


# ── making one ─────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_sent_or_kept_before_it_is_read(world: World) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    assert run.id.startswith("resp_")
    assert (world.upstream.asked, stored(world, run.id), len(process.gateway.runs)) == ([], None, 0)


def test_a_foreground_response_is_written_once_at_its_end(world: World) -> None:
    process = world.begin()
    writes: list[str] = []
    save = process.wire.save

    async def counted(record: StoredResponse, **named: Any) -> bool:
        writes.append(record.status)
        return bool(await save(record, **named))

    process.wire.save = counted  # type: ignore[attr-defined]
    run = call(world, process, start(process.gateway, ANN))
    _, task = reading(world, process, run)
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    assert (writes, len(process.gateway.runs)) == ([], 1)
    world.upstream.open[0].end("Hello")
    world.quiet()
    assert task.done()
    assert (writes, len(process.gateway.runs)) == (["completed"], 0)


def test_what_is_kept_is_what_was_told_with_what_was_asked(world: World) -> None:
    process = world.begin()
    parent = answer(world, process, "first")
    world.flow(7)
    run = answer(world, process, "second", previous_response_id=parent.id, input=[{"role": "user", "content": "more"}])
    found = kept(world, run.id)
    assert json.loads(found.response) == run.response
    assert [json.loads(item)["content"] for item in found.input] == ["more"]
    assert found.previous_response_id == parent.id
    assert (found.status, found.provider, found.model, found.owner) == ("completed", "one", "m", "ann")
    assert found.created_at == kept(world, parent.id).created_at + 7


@pytest.mark.parametrize(("fields", "noted"), [({}, True), ({"stream": False}, False), ({"background": True}, False)])
def test_how_it_was_told_is_kept_for_what_was_streamed_to_a_client(
    world: World, fields: dict[str, Any], noted: bool
) -> None:
    process = world.begin()
    request = asking(**{"stream": True, **fields})
    run = call(world, process, process.gateway.create(ANN, request))
    if fields.get("background"):
        call(world, process, process.gateway.create_in_background(ANN, run, request))
    else:
        reading(world, process, run)
    world.upstream.open[0].end("Hello")
    world.quiet()
    assert bool(kept(world, run.id).memo) is noted


def test_credentials_are_not_kept(world: World) -> None:
    process = world.begin()
    item = {"type": "tool_search_output", "call_id": "c", "tools": [MCP], "execution": "client"}
    run = answer(world, process, "Hello", input=[item, {"role": "user", "content": "hi"}])
    found = kept(world, run.id)
    assert b"secret-token" not in b"".join((found.response, *found.input, found.memo))


@pytest.mark.parametrize("store", [None, True, False])
def test_who_wants_nothing_kept_has_nothing_kept(world: World, store: bool | None) -> None:
    process = world.begin()
    run = answer(world, process, "Hello", **({} if store is None else {"store": store}))
    assert run.finished
    assert (stored(world, run.id) is None) is (store is False)


def test_what_nobody_waits_for_must_be_kept(world: World) -> None:
    process = world.begin()
    refused = refusal(world, process, start_in_background(process.gateway, ANN, store=False))
    assert (refused.code, refused.param) == ("invalid_value", "store")


def test_a_schema_that_cannot_be_checked_is_refused_before_anything_is_sent(world: World) -> None:
    process = world.begin()
    schema = {"type": "object", "properties": {"a": {"type": "no such type"}}}
    broken = {"format": {"type": "json_schema", "name": "s", "schema": schema, "strict": True}}
    for asked in (
        process.gateway.create(ANN, asking(text=broken)),
        process.gateway.plan_only(ANN, asking(text=broken)),
    ):
        refused = refusal(world, process, asked)
        assert isinstance(refused, RequestRefused)
        assert str(refused.param).startswith("text.format")
    assert world.upstream.asked == []


def test_planning_only_sends_and_keeps_nothing(world: World) -> None:
    process = world.begin()
    parent = answer(world, process, "first")
    plan = call(world, process, process.gateway.plan_only(ANN, asking(previous_response_id=parent.id)))
    assert [message["content"] for message in plan.body["messages"]] == ["hi", "first", "hi"]
    assert len(world.upstream.asked) == 1


@pytest.mark.parametrize(
    ("house", "asked", "refused"), [(False, None, False), (True, None, True), (False, True, True), (True, False, False)]
)
async def test_a_caller_may_be_stricter_or_milder_than_the_house(
    house: bool, asked: bool | None, refused: bool
) -> None:
    gateway = _gateway(MemoryStore(), settings=Settings(strict=house))
    request = asking(service_tier="flex")
    if refused:
        with pytest.raises(RequestRefused):
            await gateway.create(ANN, request, strict=asked)
    else:
        run = await gateway.create(ANN, request, strict=asked)
        assert [said.action for said in run.plan.diagnostics] == ["ignored"]
    await gateway.aclose()


def _gateway(store: MemoryStore, *, settings: Settings = Settings(), fallbacks: Any = None) -> Gateway:  # noqa: B008
    served = {
        "one": Served("one", load_provider("openai-compatible"), Upstream()),
        "two": Served("two", load_provider("deepseek"), Upstream()),
        "three": Served("three", load_provider("openai-compatible"), Upstream()),
    }
    return Gateway(
        Directory(served, default="one/m", fallbacks=fallbacks or {}),
        store,
        checker=InlineChecker(),
        settings=settings,
        now=asyncio.get_running_loop().time,
        new_id=lambda prefix: f"{prefix}_1",
    )


def test_a_response_may_take_as_long_as_its_provider_may(world: World) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    _, task = reading(world, process, run)
    world.flow(TIMEOUT - 1)
    assert not task.done()
    world.flow(1)
    failure = task.exception()
    assert isinstance(failure, UpstreamFailed)
    assert failure.code == "upstream_timeout"
    assert world.upstream.open == []


# ── in another's place ─────────────────────────────────────────────────────────────────────────────────


async def test_every_fallback_is_planned_for_its_own_target() -> None:
    gateway = _gateway(MemoryStore(), fallbacks={"one/m": ["two/deepseek-v4-pro", "three/x"]})
    run = await gateway.create(ANN, asking(user="somebody", reasoning={"effort": "high"}))
    ways = run._ways
    bodies = [ways.current.plan.body]
    while ways.go_on_after(FULL):
        bodies.append(ways.current.plan.body)
    assert [body["model"] for body in bodies] == ["m", "deepseek-v4-pro", "x"]
    assert [("user_id" in body, "thinking" in body) for body in bodies] == [
        (False, False),
        (True, True),
        (False, False),
    ]
    assert ways.current.backend is gateway.directory.served["three"].backend
    await gateway.aclose()


async def test_a_fallback_that_refuses_the_request_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    gateway = _gateway(MemoryStore(), fallbacks={"one/m": ["two/deepseek-v4-pro", "three/x"]})
    run = await gateway.create(ANN, asking(parallel_tool_calls=False, tools=[_TOOL]), strict=True)
    assert run._ways.go_on_after(FULL)
    assert run.plan.target.provider == "three"
    assert "fallback.refused provider=two" in caplog.text
    await gateway.aclose()


_TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}


def test_the_one_that_answers_is_the_one_that_is_kept(world: World) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    reading(world, process, run)
    world.upstream.open[0].fail(FULL)
    world.quiet()
    world.upstream.open[0].end("from two")
    world.quiet()
    assert (kept(world, run.id).provider, stored(world, run.id)["isthmus"]["provider"]) == ("two", "two")


def test_what_a_server_taught_is_heeded_by_the_next_request(world: World) -> None:
    process = world.begin()
    fields = {"tools": [_TOOL], "tool_choice": "required"}
    run = call(world, process, start(process.gateway, ANN, **fields))
    reading(world, process, run)
    taught = UpstreamFailed("no", status=400, code="invalid_prompt", metadata={"refused": "tool_choice"})
    world.upstream.open[0].fail(taught)
    world.quiet()
    world.upstream.open[0].end("Hello")
    world.quiet()
    assert run.plan.body.get("tool_choice") is None
    (lesson,) = world.look(world.store.lessons("one", "m"))
    assert lesson == Lesson("one", "m", "tool_choice", "required", lesson.learned_at)
    following = call(world, process, start(process.gateway, ANN, **fields))
    assert following.plan.body.get("tool_choice") != "required"
    assert "bridge.param.learned" in {said.code for said in following.plan.diagnostics}


# ── what is there ──────────────────────────────────────────────────────────────────────────────────────


def test_what_is_not_there_is_not_found_by_any_way(world: World) -> None:
    process = world.begin()
    gateway = process.gateway
    for asked in (
        gateway.retrieve(ANN, "resp_never"),
        gateway.delete(ANN, "resp_never"),
        gateway.cancel(ANN, "resp_never"),
        gateway.input_items(ANN, "resp_never"),
        gateway.follow(ANN, "resp_never"),
    ):
        refused = refusal(world, process, asked)
        assert (refused.code, refused.param) == ("response_not_found", "response_id")


def test_what_went_in_is_listed_with_its_history(world: World) -> None:
    process = world.begin()
    parent = answer(world, process, "first")
    run = answer(world, process, "second", previous_response_id=parent.id)
    page = call(world, process, process.gateway.input_items(ANN, run.id, limit=2, order="asc"))
    assert [json.loads(item)["role"] for item in page.items] == ["user", "assistant"]
    assert page.has_more
    rest = call(world, process, process.gateway.input_items(ANN, run.id, after=page.last_id, order="asc"))
    assert len(rest.items) == 1


def test_a_deleted_response_is_gone_and_cannot_be_deleted_again(world: World) -> None:
    process = world.begin()
    run = answer(world, process, "Hello")
    call(world, process, process.gateway.delete(ANN, run.id))
    assert stored(world, run.id) is None
    assert refusal(world, process, process.gateway.delete(ANN, run.id)).code == "response_not_found"


@pytest.mark.parametrize("store", [True, False])
def test_deleting_what_a_client_reads_just_now_ends_it_and_is_no_error(world: World, store: bool) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN, store=store))
    events, task = reading(world, process, run)
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    call(world, process, process.gateway.delete(ANN, run.id))
    assert task.done()
    assert events[-1]["response"]["status"] == "cancelled"
    assert stored(world, run.id) is None
    assert world.upstream.open == []


@pytest.mark.parametrize("running", [False, True])
def test_only_what_runs_in_the_background_can_be_cancelled(world: World, running: bool) -> None:
    process = world.begin()
    if running:
        run = call(world, process, start(process.gateway, ANN))
        reading(world, process, run)
    else:
        run = answer(world, process, "Hello")
    refused = refusal(world, process, process.gateway.cancel(ANN, run.id))
    assert (refused.code, refused.param) == ("not_cancellable", "response_id")
    assert len(world.upstream.open) == running


def test_cancelling_here_and_elsewhere_answers_with_the_end(world: World) -> None:
    one, two = world.begin(), world.begin()
    for process in (one, two):
        id = make(world, one)
        task = world.spawn(process, process.gateway.cancel(ANN, id))
        found = world.flow_until(task, LEASE)
        assert (found.status, json.loads(found.response)["status"]) == ("cancelled", "cancelled")
        assert call(world, process, process.gateway.cancel(ANN, id)) == found, "and once more, as it is"
    assert world.upstream.open == []


def test_what_has_ended_is_given_back_as_it_is(world: World) -> None:
    process = world.begin()
    id = make(world, process)
    world.upstream.open[0].end("Hello")
    world.quiet()
    assert call(world, process, process.gateway.cancel(ANN, id)).status == "completed"


def test_a_maker_that_does_not_hear_is_not_waited_for_for_ever(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    one.gateway.runs.stop = lambda run, reason: None  # type: ignore[method-assign]
    asked = world.spawn(two, two.gateway.cancel(ANN, id))
    world.flow(LEASE * 2 - 1)
    assert not asked.done()
    world.flow(2)
    assert asked.result().status == "in_progress", "as it stands"


def test_what_was_deleted_meanwhile_is_told_so(world: World) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    events, _ = reading(world, process, run)
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    world.look(world.store.save(StoredResponse(run.id, json.dumps(run.queued()).encode(), owner="ann")))
    world.look(world.store.delete(run.id, owner="ann"))
    world.upstream.open[0].end("too late")
    world.quiet()
    told = events[-1]["response"]
    assert told == run.response
    assert told["error"]["code"] == "response_not_found"


# ── the end of a gateway ───────────────────────────────────────────────────────────────────────────────


def test_what_runs_may_finish(world: World) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    reading(world, process, run)
    id = make(world, process)
    draining = world.spawn(process, process.gateway.drain(60))
    assert process.gateway.draining
    world.flow(30)
    for asked in world.upstream.open:
        asked.end("in time")
    world.quiet()
    assert draining.done()
    assert [stored(world, each)["status"] for each in (run.id, id)] == ["completed"] * 2


def test_after_the_grace_everything_ends_with_its_terminal_event(world: World) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    events, task = reading(world, process, run)
    id = make(world, process)
    world.upstream.open[0].say(Text("so far"))
    draining = world.spawn(process, process.gateway.drain(60))
    world.flow(59)
    assert not task.done()
    world.flow(1)
    assert draining.done()
    assert events[-1]["response"]["error"]["code"] == "server_is_overloaded"
    assert [stored(world, each)["status"] for each in (run.id, id)] == ["failed"] * 2
    assert world.upstream.open == []


def test_a_client_that_does_not_read_is_cut_off(world: World, caplog: pytest.LogCaptureFixture) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))

    async def read_once() -> None:
        async for _ in run.events():
            await asyncio.Event().wait()

    deaf = world.spawn(process, read_once())
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    draining = world.spawn(process, process.gateway.drain(1, last_words=3))
    world.flow(3.5)
    assert not deaf.done(), "it has a moment"
    world.flow(0.5)
    assert deaf.cancelled()
    assert draining.done()
    assert stored(world, run.id)["status"] == "failed"
    assert "gateway.drain.abandoned running=1" in caplog.text


def test_what_does_not_even_end_then_is_left_and_said(world: World, caplog: pytest.LogCaptureFixture) -> None:
    process = world.begin()
    run = call(world, process, start(process.gateway, ANN))
    reading(world, process, run)
    process.wire.thaw = asyncio.Event()  # a store that never answers
    draining = world.spawn(process, process.gateway.drain(0, last_words=1))
    world.flow(1 + 5)
    assert draining.done()
    assert "gateway.drain.stuck running=1" in caplog.text


def test_while_it_goes_nothing_that_others_left_is_taken_on(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    world.kill(one)
    two.gateway.draining = True
    world.flow(LEASE + 1)
    call(world, two, two.gateway.orphans.look())
    assert (stored(world, id)["status"], len(world.upstream.asked)) == ("in_progress", 1)
    three = world.begin()
    call(world, three, three.gateway.orphans.look())
    assert len(world.upstream.open) == 1, "its lease was given back"


async def test_closing_it_closes_its_store_and_no_way_to_a_provider() -> None:
    closed: list[str] = []

    class Store(MemoryStore):
        async def aclose(self) -> None:
            closed.append("store")

    upstream = Upstream()
    upstream.aclose = lambda: closed.append("upstream")  # type: ignore[method-assign, assignment, return-value]
    gateway = make_gateway(Store(), upstream)
    await gateway.aclose()
    assert closed == ["store"]


def test_who_watches_hears_of_a_background_run_as_of_any_other(world: World) -> None:
    process = world.begin()
    process.gateway.observer = heard = Heard()
    id = make(world, process)
    world.upstream.open[0].end("Hello")
    world.quiet()
    ended = heard.facts[-1]
    assert isinstance(ended, Ended)
    assert (ended.id, ended.owner, ended.outcome, ended.background) == (id, "ann", "completed", True)


def test_a_store_that_fails_refuses_what_needs_it_and_nothing_else(world: World) -> None:
    process = world.begin()
    process.wire.failing = "all"
    refused = refusal(world, process, process.gateway.create(ANN, asking(previous_response_id="resp_1")))
    assert isinstance(refused, ConfigError)
    run = call(world, process, start(process.gateway, ANN, store=False))
    _, task = reading(world, process, run)
    world.upstream.open[0].end("Hello")
    world.quiet()
    task.result()
    assert run.response is not None
    assert run.response["status"] == "completed"
