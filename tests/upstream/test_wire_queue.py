"""Our own connections, from the configuration to the socket: how many, who waits, who is told that too many do."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from typing import Any

import pytest

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.config.schema import ProviderConfig, Server
from isthmus.errors import UpstreamBusy
from isthmus.log import Told
from isthmus.testing import Gate, ScriptedUpstream, Step, chat, reply
from isthmus.testing.replies import chat_reply
from isthmus.upstream.endpoint import MAX_CONNECTIONS, MAX_QUEUED, Endpoint
from one_provider import HELLO, one_provider, say, settle
from reaching_out import failure
from talking import Talk


class Asked(threading.Thread):
    """A request under way; `answer` waits for it."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(daemon=True)
        self._talk = talk
        self.start()

    def run(self) -> None:
        self._answer = self._talk.post("/v1/responses", HELLO)

    @property
    def answer(self) -> Any:
        self.join(60)
        return self._answer


def _held(gate: Gate) -> Step:
    return reply(chat_reply("held"), after=gate)


def _wait_for_runs(gateway: Any, count: int) -> None:
    """Until so many requests are under way, and have got as far as they can."""
    while len(gateway.gateway.runs) < count:
        settle(gateway)
    settle(gateway)


def test_waiting_for_a_connection_of_ours_is_no_timeout_of_the_provider() -> None:
    gate = Gate()
    one = "max_connections = 1\n[providers.main.timeouts]\nfirst_byte = 600\nconnect = 1000\n"
    with ScriptedUpstream.running([_held(gate), chat("after")]) as upstream:
        with one_provider(upstream, one) as (talk, gateway):
            first = Asked(talk)
            upstream.wait_received(1)
            second = Asked(talk)
            _wait_for_runs(gateway, 2)
            gateway.skip(700)
            refused = second.answer
            assert (refused.status, refused.error["code"]) == (503, "upstream_busy")
            assert "`providers.main.max_connections`" in refused.error["message"]
            assert "retry-after" in refused.headers
            gate.open()
            assert first.answer.json["output_text"] == "held"
            assert say(talk) == "after"
        assert len(upstream.requests) == 2


def test_who_waited_for_a_connection_has_the_whole_time_for_its_answer() -> None:
    first_gate, second_gate = Gate(), Gate()
    settings = "max_connections = 1\n[providers.main.timeouts]\nfirst_byte = 600\n"
    script = [_held(first_gate), _held(second_gate)]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, settings) as (talk, gateway):
        Asked(talk)
        upstream.wait_received(1)
        second = Asked(talk)
        _wait_for_runs(gateway, 2)
        gateway.skip(500)
        first_gate.open()
        upstream.wait_received(2)
        gateway.skip(500)
        second_gate.open()
        assert second.answer.json["output_text"] == "held"


def test_a_place_whose_connections_are_all_ours_is_not_ejected() -> None:
    gates = [Gate(), Gate()]
    settings = (
        'api_keys = ["k1", "k2"]\nmax_connections = 1\n[providers.main.timeouts]\nfirst_byte = 600\nconnect = 1000\n'
    )
    with ScriptedUpstream.running([*map(_held, gates), chat("a"), chat("b")]) as upstream:
        with one_provider(upstream, settings) as (talk, gateway):
            running = [Asked(talk), Asked(talk)]
            upstream.wait_received(2)
            third = Asked(talk)
            _wait_for_runs(gateway, 3)
            gateway.skip(700)
            assert third.answer.error["code"] == "upstream_busy"
            assert talk.get("/ready").status == 200
            for gate in gates:
                gate.open()
            assert [each.answer.status for each in running] == [200, 200]
            say(talk)
            say(talk)
        assert {request.headers["authorization"] for request in upstream.requests[2:]} == {"Bearer k1", "Bearer k2"}


def test_who_would_wait_behind_too_many_others_is_told_so_at_once(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    settings = "max_connections = 1\nmax_queued = 1\nretries = 2\n"
    with ScriptedUpstream.running([_held(gate), chat("waited")]) as upstream:
        with (
            caplog.at_level(logging.WARNING, "isthmus.upstream"),
            one_provider(upstream, settings, log="warning") as (talk, gateway),
        ):
            first = Asked(talk)
            upstream.wait_received(1)
            second = Asked(talk)
            _wait_for_runs(gateway, 2)
            with gateway.standing_still():  # nobody waits, no attempt follows
                refused = [talk.post("/v1/responses", HELLO) for _ in range(3)]
            assert [(each.status, each.error["code"]) for each in refused] == [(503, "upstream_busy")] * 3
            for setting in ("`providers.main.max_connections`", "`max_queued`"):
                assert setting in refused[0].error["message"]
            assert "retry-after" in refused[0].headers
            assert talk.get("/ready").status == 200
            gate.open()
            assert [first.answer.json["output_text"], second.answer.json["output_text"]] == ["held", "waited"]
        assert len(upstream.requests) == 2
    told = [record.msg for record in caplog.records if isinstance(record.msg, Told)]
    crowd = [(each.event, each.facts["provider"]) for each in told if each.event.startswith("upstream.")]
    assert crowd == [("upstream.full", "main"), ("upstream.queue.full", "main")]


def test_a_crowd_goes_where_its_queue_is_shortest() -> None:
    gates = [Gate(), Gate()]
    settings = 'api_keys = ["k1", "k2"]\nmax_connections = 1\nmax_queued = 1\n'
    script = [*map(_held, gates), chat("a"), chat("b")]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, settings) as (talk, gateway):
        running = [Asked(talk), Asked(talk)]
        upstream.wait_received(2)
        for count in (3, 4):  # one behind each
            running.append(Asked(talk))
            _wait_for_runs(gateway, count)
        assert talk.post("/v1/responses", HELLO).error["code"] == "upstream_busy"
        for gate in gates:
            gate.open()
        assert [each.answer.status for each in running] == [200] * 4


async def test_as_many_streams_as_a_gateway_serves_go_out_at_once_by_default() -> None:
    """An agent holds its stream for minutes: 250 of them once waited behind 100 connections, and nobody was told."""
    assert ProviderConfig().max_connections == Server().max_concurrent == MAX_CONNECTIONS
    gate, streams = Gate(), 250
    with ScriptedUpstream.running(default=_held(gate)) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            asked = [asyncio.create_task(bridge.chat("deepseek/m", "hi")) for _ in range(streams)]
            await upstream.received(streams)
            gate.open()
            assert {(await each).text for each in asked} == {"held"}
        assert upstream.connections == streams


async def test_the_library_can_catch_a_full_queue_by_its_kind() -> None:
    gate = Gate()
    with ScriptedUpstream.running([_held(gate)]) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k", "max_connections": 1, "max_queued": 0}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            first = asyncio.create_task(bridge.chat("deepseek/m", "hi"))
            await upstream.received(1)
            with pytest.raises(UpstreamBusy, match=r"`providers\.deepseek\.max_connections` allows \(1\)"):
                await bridge.chat("deepseek/m", "hi")
            gate.open()
            assert (await first).text == "held"


async def test_in_the_library_any_number_may_wait() -> None:
    more = MAX_QUEUED + 50
    with ScriptedUpstream.running(default=chat("served")) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k", "max_connections": 2}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            answers = await asyncio.gather(*(bridge.chat("deepseek/m", "hi") for _ in range(more)))
        assert [answer.text for answer in answers] == ["served"] * more
        assert upstream.connections == 2


async def test_a_process_without_a_free_descriptor_does_not_blame_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("isthmus.upstream.lean.dial.connect_first", refuse)
    told = await failure(Endpoint("mine", "http://127.0.0.1:9/v1", trust_env=False))
    assert (told.code, told.meaning.eject, "`ulimit -n`" in told.message) == ("upstream_busy", False, True)
