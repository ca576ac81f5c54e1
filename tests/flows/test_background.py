"""What is made in the background: how much at a time, what its status says, how it ends, whoever makes it.

Two gateways on one database are two servers in this process: they share nothing but that.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowing import PLAIN, Flow, Json, running_flow
from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.errors import ConfigError, RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.ports import OURS, Backend, Behalf
from isthmus.protocol.json import JsonObject
from isthmus.testing import Gate, chat, chat_chunks, chat_reply, reply, silence, stream
from serving import GatewayThread, running_gateway_server
from talking import PATIENCE, TERMINAL, Talk, finished

SLOW = {"model": PLAIN, "input": "slow", "background": True}
STRANGER = Caller("stranger")


def until(talk: Talk, id: str, *states: str) -> Json:
    """The response, once it is in one of these states: what another process does has no event to wait for."""
    deadline = time.monotonic() + PATIENCE
    while (found := talk.get(f"/v1/responses/{id}").json)["status"] not in states:
        assert time.monotonic() < deadline, f"{id} is {found['status']}"
        time.sleep(0.005)
    return dict(found)


def begin(flow: Flow, gate: Gate, **fields: Any) -> str:
    """A background response whose provider has been asked, and says nothing before the gate is open."""
    flow.script(reply(chat_reply("Done at last"), after=gate))
    id: str = flow.post("/v1/responses", {**SLOW, **fields}).json["id"]
    gate.reached.wait()
    return id


# ── how many ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_has_no_place_waits_and_what_does_not_fit_is_refused_with_the_setting_to_raise(special: Any) -> None:
    flow, gate = special(extra="[background]\nmax_running = 1\nmax_queued = 1"), Gate()
    running = begin(flow, gate)
    waiting = flow.post("/v1/responses", SLOW).json["id"]
    refused = flow.post("/v1/responses", SLOW)
    assert (refused.status, refused.error["code"]) == (503, "server_is_overloaded")
    assert "`background.max_queued`" in refused.error["message"]
    assert int(refused.headers["retry-after"]) >= 1
    assert until(flow, running, "in_progress")["status"] == "in_progress"
    assert flow.get(f"/v1/responses/{waiting}").json["status"] == "queued"
    assert len(flow.sent) == 1, "the second has no place yet"
    flow.script(chat("The second"))
    gate.open()
    assert until(flow, running, "completed")["output_text"] == "Done at last"
    assert until(flow, waiting, "completed")["output_text"] == "The second"
    flow.script(chat("The third"))
    third = flow.post("/v1/responses", SLOW)
    assert third.status == 200, "there is room again"
    assert until(flow, third.json["id"], "completed")["output_text"] == "The third"


def test_one_that_waits_for_its_place_is_cancelled_or_deleted_without_having_been_sent(special: Any) -> None:
    flow, gate = special(extra="[background]\nmax_running = 1\nmax_queued = 2"), Gate()
    running = begin(flow, gate)
    first, second = (flow.post("/v1/responses", SLOW).json["id"] for _ in range(2))
    cancelled = flow.post(f"/v1/responses/{first}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert flow.delete(f"/v1/responses/{second}").status == 200
    assert flow.get(f"/v1/responses/{second}").status == 404
    assert flow.get(f"/v1/responses/{running}").json["status"] == "in_progress"
    gate.open()
    until(flow, running, "completed")
    assert len(flow.sent) == 1


def test_the_stored_status_follows_a_run_whose_provider_says_nothing_before_it_is_done(flow: Flow) -> None:
    gate = Gate()
    id = begin(flow, gate)
    assert until(flow, id, "in_progress", *("completed", "failed"))["status"] == "in_progress"
    gate.open()
    assert until(flow, id, "completed", "failed")["status"] == "completed"


# ── how it ends ────────────────────────────────────────────────────────────────────────────────────────


class Broken:
    """A backend with a bug: it raises what no backend may, before anything was accepted."""

    def __init__(self, real: Backend) -> None:
        self._real = real
        self.asked = 0

    @asynccontextmanager
    async def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        self.asked += 1
        raise RuntimeError("a bug")
        yield  # type: ignore[unreachable]

    async def ready(self) -> str | None:
        return await self._real.ready()

    async def aclose(self) -> None:
        await self._real.aclose()


def break_provider(server: GatewayThread, name: str) -> Broken:
    served: Any = server.gateway.directory.served
    broken = Broken(served[name].backend)
    served[name] = replace(served[name], backend=broken)
    return broken


def test_a_bug_before_anything_was_accepted_ends_the_response_failed(special: Any) -> None:
    flow = special()
    break_provider(flow.server, "plain")
    id = flow.post("/v1/responses", SLOW).json["id"]
    failed = until(flow, id, "failed")
    assert failed["error"]["code"] == "server_error"
    again = flow.post(f"/v1/responses/{id}/cancel")
    assert (again.status, again.json) == (200, failed), "it is over: a cancel changes nothing"
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as events:
        assert finished(list(events)) == failed


@pytest.mark.parametrize("background", [True, False])
def test_a_bug_before_anything_was_accepted_lets_the_fallback_answer(special: Any, background: bool) -> None:
    flow = special(extra=f'[models.fallbacks]\n"{PLAIN}" = ["full/gpt-4o"]')
    broken = break_provider(flow.server, "plain")
    flow.script(chat("from the other"))
    made = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "background": background}).json
    response = until(flow, made["id"], "completed", "failed")
    assert (response["status"], response["output_text"]) == ("completed", "from the other")
    assert response["isthmus"]["provider"] == "full"
    assert broken.asked == 1


def test_one_that_the_provider_has_not_accepted_yet_is_cancelled(flow: Flow) -> None:
    flow.script(silence())
    id = flow.post("/v1/responses", SLOW).json["id"]
    flow.wait_sent()
    cancelled = flow.post(f"/v1/responses/{id}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    flow.wait_sent().closed.wait()


def test_cancelling_what_has_ended_gives_it_back_as_it_is(flow: Flow) -> None:
    flow.script(chat("Done"))
    id = flow.post("/v1/responses", SLOW).json["id"]
    done = until(flow, id, "completed")
    answer = flow.post(f"/v1/responses/{id}/cancel")
    assert (answer.status, answer.json) == (200, done)


def test_a_foreground_response_cannot_be_cancelled_while_it_runs(flow: Flow) -> None:
    gate = Gate()
    chunks = chat_chunks("Hello there", pieces=2)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as events:
        id = events.until("response.created")["response"]["id"]
        refused = flow.post(f"/v1/responses/{id}/cancel")
        assert (refused.status, refused.error["code"]) == (400, "not_cancellable")
        gate.open()
        assert events.until("response.completed")["response"]["output_text"] == "Hello there"


def test_deleting_a_running_foreground_response_ends_it_and_it_is_gone(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("Hello there", pieces=2)[:2], gate]))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as events:
        id = events.until("response.created")["response"]["id"]
        gate.reached.wait()
        deleted = flow.delete(f"/v1/responses/{id}")
        assert (deleted.status, deleted.json["deleted"]) == (200, True)
        assert [event["type"] for event in events if event["type"] in TERMINAL] == ["response.failed"]
    flow.wait_sent().closed.wait()
    assert flow.get(f"/v1/responses/{id}").status == 404
    assert flow.delete(f"/v1/responses/{id}").status == 404


@pytest.mark.parametrize("background", [True, False])
def test_what_somebody_else_asks_for_touches_nothing(flow: Flow, background: bool) -> None:
    gate, gateway = Gate(), flow.server.gateway
    chunks = chat_chunks("Hello there", pieces=2)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))
    asked = {"model": PLAIN, "input": "hi", "stream": True, "background": background}
    with flow.streaming("/v1/responses", asked) as events:
        id = events.until("response.created")["response"]["id"]
        gate.reached.wait()
        for deed in (gateway.delete, gateway.cancel, gateway.retrieve, gateway.follow, gateway.input_items):
            flow.server.do(_is_not_found(deed(STRANGER, id)))
        assert gateway.runs.get("local", id) is not None, "it still runs"
        gate.open()
        assert events.until("response.completed")["response"]["output_text"] == "Hello there"
    assert until(flow, id, "completed")["id"] == id


async def _is_not_found(deed: Any) -> None:
    with pytest.raises(RequestRefused) as refused:
        await deed
    assert refused.value.code == "response_not_found"


# ── two gateways on one database ───────────────────────────────────────────────────────────────────────


class Both:
    """`flow` makes the responses; `other` is a gateway on the same database."""

    def __init__(self, flow: Flow, server: GatewayThread) -> None:
        self.flow = flow
        self.server = server
        self.other = Talk(server.url)


def _toml(url: str, lease: float, port: int = 0) -> str:
    return (
        f'[models]\ndemo = false\n[providers.plain]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n'
        f'[store]\nurl = "{url}"\n[background]\nlease = {lease}\n[server]\nport = {port}\n'
        '[log]\nlevel = "error"\n'
    )


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Both]]:
    with ExitStack() as stack:

        def make(lease: float = 30) -> Both:
            flow = stack.enter_context(
                running_flow(tmp_path, store=request.param, extra=f"[background]\nlease = {lease}")
            )
            return Both(flow, stack.enter_context(running_gateway_server(_toml(flow.store_url, lease))))

        yield make


def test_a_second_gateway_leaves_what_the_first_one_makes_alone(both: Callable[..., Both]) -> None:
    house, gate = both(), Gate()
    id = begin(house.flow, gate)

    async def recover() -> None:
        assert await house.server.gateway.orphans.look() == 0

    house.server.do(recover())
    assert house.other.get(f"/v1/responses/{id}").json["status"] == "in_progress"
    gate.open()
    assert until(house.other, id, "completed", "failed")["output_text"] == "Done at last"


def test_a_second_gateway_that_cannot_listen_leaves_what_the_first_one_makes_alone(flow: Flow) -> None:
    gate = Gate()
    id = begin(flow, gate)
    port = urlsplit(flow.server.url).port
    assert port is not None
    with pytest.raises(ConfigError, match="cannot listen"):
        GatewayThread(_toml(flow.store_url, 0.1, port)).start()
    assert flow.get(f"/v1/responses/{id}").json["status"] == "in_progress"
    gate.open()
    assert until(flow, id, "completed", "failed")["status"] == "completed"


def test_what_another_gateway_makes_is_cancelled(both: Callable[..., Both]) -> None:
    house, gate = both(), Gate()
    id = begin(house.flow, gate)
    cancelled = house.other.post(f"/v1/responses/{id}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    house.flow.wait_sent().closed.wait()
    assert house.flow.get(f"/v1/responses/{id}").json == cancelled.json


def test_what_another_gateway_makes_is_deleted(both: Callable[..., Both]) -> None:
    house, gate = both(), Gate()
    id = begin(house.flow, gate)
    assert house.other.delete(f"/v1/responses/{id}").status == 200
    house.flow.wait_sent().closed.wait()
    assert house.flow.get(f"/v1/responses/{id}").status == 404
    assert house.other.delete(f"/v1/responses/{id}").status == 404


def test_what_another_gateway_makes_is_followed_while_it_is_made(both: Callable[..., Both]) -> None:
    house, gate = both(), Gate()
    chunks = chat_chunks("Hello there", pieces=4)
    house.flow.script(stream([*chunks[:3], gate, *chunks[3:]]))
    with house.flow.streaming("/v1/responses", {**SLOW, "stream": True}) as here:
        first = here.until("response.created")
        id = first["response"]["id"]
        with house.other.streaming(f"/v1/responses/{id}?stream=true", method="GET") as there:
            seen = [there.next() for _ in range(3)]
            gate.open()
            seen += list(there)
        told = [first, *here]
    assert seen == told
    with house.other.streaming(f"/v1/responses/{id}?stream=true&starting_after=4", method="GET") as rest:
        assert list(rest) == told[5:]


def test_a_follower_elsewhere_misses_nothing_of_an_end_that_comes_all_at_once(both: Callable[..., Both]) -> None:
    house = both()
    for _ in range(10):
        gate = Gate()
        id = begin(house.flow, gate)
        with house.other.streaming(f"/v1/responses/{id}?stream=true", method="GET") as there:
            gate.open()
            seen = list(there)
        response = finished(seen)
        assert response["output_text"] == "Done at last"
        with house.flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as again:
            assert list(again) == seen


def test_the_last_events_are_kept_in_the_same_step_as_the_end(special: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, gate, kept = special(), Gate(), []
    store = flow.server.gateway.store
    save = store.save

    async def save_and_look(record: Any, **given: Any) -> bool:
        saved: bool = await save(record, **given)
        kept.append((record.status, [json.loads(event)["type"] for event in await store.events(record.id)][-1:]))
        return saved

    monkeypatch.setattr(store, "save", save_and_look)
    id = begin(flow, gate)
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as events:
        gate.open()
        events.until("response.completed")
    assert kept == [("queued", []), ("completed", ["response.completed"])]


def test_a_gateway_that_was_asleep_tells_what_another_one_has_made_of_its_response(both: Callable[..., Both]) -> None:
    house, gate = both(lease=2), Gate()
    with ExitStack() as stack:
        house.flow.script(reply(chat_reply("Too late"), after=gate))
        here = stack.enter_context(house.flow.streaming("/v1/responses", {**SLOW, "stream": True}))
        gate.reached.wait()
        # Its renewals stop, as in a process that is not scheduled: the other one finds the lease run out.
        house.flow.server.do(_stop_renewing(house.flow.server))
        (id,) = [id for _, id in house.flow.server.gateway.runs._background]
        failed = until(house.other, id, "failed")
        # Nothing of it was told: the other one makes it again, and has nobody to ask.
        assert failed["error"]["code"] == "upstream_unreachable"
        gate.open()
        assert here.until("response.failed")["response"] == failed
    assert house.flow.get(f"/v1/responses/{id}").json == failed


async def _stop_renewing(server: GatewayThread) -> None:
    renewing = server.gateway.runs._renewing
    assert renewing is not None
    renewing.cancel()
    await asyncio.wait([renewing])


def test_cancelling_what_a_dead_gateway_left_ends_it_when_its_lease_is_over(both: Callable[..., Both]) -> None:
    house, gate = both(lease=2), Gate()
    id = begin(house.flow, gate)
    house.flow.server.do(_stop_renewing(house.flow.server))
    answer = house.other.post(f"/v1/responses/{id}/cancel")
    assert answer.status == 200
    assert answer.json["status"] in ("cancelled", "failed"), "whoever was first: the cancel, or the recovery"
    gate.open()
    assert until(house.flow, id, "cancelled", "failed") == answer.json
