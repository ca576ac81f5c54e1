"""When a place is left alone, for how long, and who tries it again: the rules alone, and from a file to the wire."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.errors import FAILURES, UpstreamFailed, UpstreamResting
from isthmus.log import Told
from isthmus.testing import Gate, ScriptedUpstream, chat, error, reply
from isthmus.testing.replies import chat_reply
from isthmus.upstream.breaker import FAILURES as USUAL
from isthmus.upstream.breaker import Breaker, BreakerRule
from one_provider import HELLO, MODEL, one_provider, say, settle

SICK = UpstreamFailed("it is sick", code="server_error", status=500)
RULE = BreakerRule(failures=3, first_rest=5.0, longest_rest=12.0)


class Place:
    """A breaker with a clock that stands still."""

    def __init__(self, rule: BreakerRule = RULE) -> None:
        self.time = 100.0
        self.breaker = Breaker("main", rule, now=lambda: self.time)

    def ask(self, failure: BaseException | None = None) -> None:
        with self.breaker.asking():
            if failure is not None:
                raise failure

    def fail(self, times: int = 1, failure: UpstreamFailed = SICK) -> None:
        for _ in range(times):
            with pytest.raises(UpstreamFailed, match=failure.message):
                self.ask(failure)

    def refused(self) -> UpstreamResting:
        with pytest.raises(UpstreamResting) as refused:
            self.ask()
        return refused.value


def test_after_so_many_failures_in_a_row_nobody_is_asked() -> None:
    place = Place()
    place.fail(2)
    place.ask()
    place.fail(3)
    refused = place.refused()
    assert (refused.code, refused.provider, refused.retry_after) == ("upstream_resting", "main", 5.0)
    assert (refused.metadata["failures"], refused.meaning.status) == (3, 503)
    assert "it is sick" in refused.message


def test_one_request_at_a_time_tries_whether_it_works_again() -> None:
    place = Place()
    place.fail(3)
    place.time += 5.0
    assert not place.breaker.resting
    with place.breaker.asking():
        assert "is being tried right now" in place.refused().message
    place.ask()
    assert place.breaker.rest is None


def test_each_time_that_it_fails_again_it_rests_twice_as_long_up_to_a_bound() -> None:
    place, rests = Place(), list[float]()
    place.fail(3)
    for _ in range(4):
        rest = place.breaker.rest
        assert rest is not None
        rests.append(rest.left)
        place.time += rest.left
        place.fail()
    assert rests == [5.0, 10.0, 12.0, 12.0]
    place.time += 12.0
    place.ask()
    place.fail(3)
    assert place.refused().retry_after == 5.0


def test_who_tries_it_and_is_called_away_has_learned_nothing() -> None:
    place = Place()
    place.fail(3)
    place.time += 5.0
    with pytest.raises(KeyboardInterrupt):
        place.ask(KeyboardInterrupt())
    with pytest.raises(UpstreamFailed, match="no connection left"):  # ours to mend: nothing is held against it
        place.ask(UpstreamFailed("no connection left", code="upstream_busy"))
    place.ask()
    assert place.breaker.rest is None


def test_what_was_on_its_way_when_it_was_left_alone_prolongs_nothing() -> None:
    place = Place()
    late = place.breaker.asking()
    late.__enter__()
    place.fail(3)
    place.time += 4.0
    late.__exit__(UpstreamFailed, SICK, None)
    assert place.refused().retry_after == 1.0
    well = place.breaker
    well.__exit__(None, None, None)  # and one that is answered after all says that it works
    place.ask()


@pytest.mark.parametrize("code", [code for code, meaning in FAILURES.items() if not meaning.breaks])
def test_what_is_not_a_sickness_never_has_it_left_alone(code: str) -> None:
    place = Place()
    place.fail(20, UpstreamFailed("refused", code=code, status=FAILURES[code].status))
    place.ask()


def test_what_breaks_it_is_the_providers_turn() -> None:
    breaking = {code for code, meaning in FAILURES.items() if meaning.breaks}
    assert breaking == {
        *("server_error", "server_is_overloaded", "upstream_malformed", "upstream_timeout", "upstream_unreachable"),
    }
    assert all(FAILURES[code].turn == "provider" and FAILURES[code].eject for code in breaking)


def test_a_refusal_of_a_request_says_that_it_is_well() -> None:
    place = Place()
    place.fail(2)
    place.fail(1, UpstreamFailed("no such field", code="invalid_prompt", status=400))
    place.fail(2)
    place.ask()


def test_it_can_be_told_never_to() -> None:
    place = Place(BreakerRule())
    place.fail(1000)
    place.ask()
    assert place.breaker.words() is None


@given(st.lists(st.sampled_from(["works", "fails", "refuses", "away", "wait"]), max_size=60))
def test_whatever_happens_it_is_asked_again_within_the_longest_rest(steps: list[str]) -> None:
    place = Place()
    row = 0
    for step in steps:
        if step == "wait":
            place.time += 3.0
            continue
        was_resting, tried = place.breaker.resting, place.breaker.rest is not None
        error = {
            "works": None,
            "fails": SICK,
            "refuses": UpstreamFailed("no", code="invalid_prompt", status=400),
            "away": KeyboardInterrupt(),
        }[step]
        try:
            place.ask(error)
        except UpstreamResting:
            assert was_resting
            continue
        except (UpstreamFailed, KeyboardInterrupt):
            pass
        assert not was_resting
        row = row + 1 if step == "fails" else row if step == "away" else 0
        assert place.breaker.resting == (step == "fails" and (tried or row >= 3))
    place.time += 12.0
    place.ask()
    assert place.breaker.rest is None


# ── from the configuration to the wire ─────────────────────────────────────────────────────────────

THREE = "retries = 0\nbreaker = { failures = 3, first_rest = '10s' }\n"


def _fail(talk: Any, times: int) -> None:
    for _ in range(times):
        assert talk.post("/v1/responses", HELLO).status == 502


def test_a_gateway_stops_asking_and_says_since_when_why_and_when_to_come_back() -> None:
    with (
        ScriptedUpstream.running([*[error(500, "out of order")] * 3, chat("well again")]) as upstream,
        one_provider(upstream, THREE) as (talk, gateway),
    ):
        _fail(talk, 3)
        answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.error["code"]) == (503, "upstream_resting")
        assert 1 <= int(answer.headers["retry-after"]) <= 10
        assert "`main` is left alone since" in answer.error["message"]
        assert "out of order" in answer.error["message"]
        assert len(upstream.requests) == 3
        gateway.skip(11)
        assert say(talk) == "well again"
        assert len(upstream.requests) == 4


def test_one_request_tries_it_and_the_others_do_not_wait_for_that() -> None:
    gate = Gate()
    trial = reply(chat_reply("well again"), after=gate)
    with ScriptedUpstream.running([*[error(503, "busy")] * 3, trial, chat("and on")]) as upstream:
        with one_provider(upstream, THREE) as (talk, gateway):
            for _ in range(3):
                assert talk.post("/v1/responses", HELLO).status == 503
            gateway.skip(11)
            said: list[str] = []
            tried = threading.Thread(target=lambda: said.append(say(talk)))
            tried.start()
            upstream.wait_received(4)
            assert talk.post("/v1/responses", HELLO).error["code"] == "upstream_resting"
            gate.open()
            tried.join(60)
            assert said == ["well again"]
            assert say(talk) == "and on"
        assert len(upstream.requests) == 5


def test_a_fallback_answers_without_a_wait_while_the_first_is_left_alone() -> None:
    with (
        ScriptedUpstream.running([error(500, "sick")] * 3) as sick,
        ScriptedUpstream.running(default=chat("b")) as well,
    ):
        other = f"[providers.other]\nuses = 'openai-compatible'\nbase_url = {well.base_url!r}\n"
        fallbacks = f"[models.fallbacks]\n'{MODEL}' = ['other/m']\n"
        with one_provider(sick, f"{THREE}{other}{fallbacks}") as (talk, _):
            assert [say(talk) for _ in range(5)] == ["b"] * 5
            assert (len(sick.requests), len(well.requests)) == (3, 5)
            notes = talk.post("/v1/responses", HELLO).json["isthmus"]["diagnostics"]
    assert [note["metadata"]["reason"] for note in notes if note["code"] == "bridge.attempt.failed"] == [
        "upstream_resting"
    ]


@pytest.mark.parametrize("status", [400, 401, 402, 404, 422, 429])
def test_refusals_are_passed_on_however_many_there_are(status: int) -> None:
    with ScriptedUpstream.running(default=error(status, "no")) as upstream:
        with one_provider(upstream, THREE) as (talk, _):
            codes = {talk.post("/v1/responses", HELLO).error["code"] for _ in range(8)}
        assert len(codes) == 1
        assert "upstream_resting" not in codes
        assert len(upstream.requests) == 8


def test_readiness_metrics_and_the_log_tell_of_it(caplog: pytest.LogCaptureFixture) -> None:
    with (
        ScriptedUpstream.running([*[error(500, "sick")] * 3, chat("a")]) as upstream,
        one_provider(upstream, THREE, log="info") as (talk, gateway),
    ):
        _fail(talk, 3)
        ready = talk.get("/ready")
        assert (ready.status, ready.json["status"]) == (503, "not ready")
        assert "left alone for" in ready.json["providers"]["main"]
        assert b'isthmus_upstream_resting{provider="main"} 1' in talk.get("/metrics").body
        gateway.skip(11)  # its rest is over: whoever asks is served, and only a request can find out
        assert say(talk) == "a"
        gateway.skip(60)
        assert talk.get("/ready").json["providers"]["main"] == "ok"
        assert b'isthmus_upstream_resting{provider="main"} 0' in talk.get("/metrics").body
    said = [record.msg for record in caplog.records if isinstance(record.msg, Told)]
    events = [(told.event, told.facts.get("failures")) for told in said if told.event.startswith("upstream.re")]
    assert events == [("upstream.resting", 3), ("upstream.recovered", 3)]


def test_of_several_places_those_that_are_left_alone_cost_no_wait() -> None:
    with (
        ScriptedUpstream.running(default=error(500, "sick")) as one,
        ScriptedUpstream.running(default=error(500, "sick, too")) as two,
    ):
        places = f"endpoints = [{{ base_url = {one.base_url!r} }}, {{ base_url = {two.base_url!r} }}]\n"
        with one_provider("", f"{places}{THREE}") as (talk, gateway):
            for _ in range(12):
                assert talk.post("/v1/responses", HELLO).status in (502, 503)
            settle(gateway)
            answer = talk.post("/v1/responses", HELLO)
    assert (answer.status, answer.error["code"]) == (503, "upstream_resting")
    assert len(one.requests) + len(two.requests) <= 8


async def test_a_library_goes_on_asking_unless_told_otherwise() -> None:
    with ScriptedUpstream.running(default=error(500, "sick")) as upstream:
        async with Bridge({"deepseek": {"default": {"base_url": upstream.base_url}}}, retry=NO_RETRY) as bridge:
            for _ in range(USUAL + 2):
                with pytest.raises(UpstreamFailed, match="sick"):
                    await bridge.chat("deepseek/m", "hi")
        assert len(upstream.requests) == USUAL + 2
    told = {"base_url": upstream.base_url, "breaker": {"failures": 1}}
    with ScriptedUpstream.running(default=error(500, "sick")) as upstream:
        told["base_url"] = upstream.base_url
        async with Bridge({"deepseek": {"default": told}}, retry=NO_RETRY) as bridge:
            with pytest.raises(UpstreamFailed, match="sick"):
                await bridge.chat("deepseek/m", "hi")
            with pytest.raises(UpstreamResting):
                await bridge.chat("deepseek/m", "hi")
        assert len(upstream.requests) == 1


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "isthmus.upstream")
