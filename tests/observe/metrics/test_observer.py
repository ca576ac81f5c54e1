"""Facts in, numbers out: each fact of a request's life is added up once, under words that we know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.bridge.capabilities import Cost
from isthmus.bridge.contract.check import ContractCheck
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.errors import RateLimited, UpstreamFailed
from isthmus.observe.metrics import observer as module
from isthmus.observe.metrics.catalog import CATALOG
from isthmus.observe.metrics.labels import Models
from isthmus.observe.metrics.meters import Meters
from isthmus.observe.metrics.observer import MetricsObserver, door_of
from isthmus.ports import (
    Answered,
    AttemptFailed,
    ContractChecked,
    Ended,
    Planned,
    Received,
    Retried,
    Sent,
    ToolRan,
)
from isthmus.ports.usage import used_tokens

USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens_details": {"reasoning_tokens": 5},
}


class Life:
    """An observer whose clock is ours, and what it has counted."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.meters = Meters()
        models = Models(lambda provider: {"v4", "fine"})
        self.observer = MetricsObserver(self.meters, models, clock=lambda: self.now)

    def tell(self, *facts: Any) -> None:
        for fact in facts:
            self.observer.tell(fact)

    def count(self, name: str) -> dict[tuple[str, ...], float]:
        return dict(next(each for each in self.meters.read() if each.name == name).series)

    def spread(self, name: str) -> dict[tuple[str, ...], tuple[int, float]]:
        """For each series, how many values there were, and their sum."""
        found = next(each for each in self.meters.read() if each.name == name).spread
        return {labels: (int(sum(counts[:-1])), pytest.approx(counts[-1])) for labels, counts in found}


def received(path: str = "/v1/responses", request: str = "req_1") -> Received:
    return Received(request, "local", "", "", "POST", path, 100, 0.0)


def planned(*actions: Any, id: str = "resp_1", request: str = "req_1", **more: Any) -> Planned:
    plan = SimpleNamespace(decisions=[CompatibilityDecision("x", action) for action in actions], diagnostics=())
    return Planned(id, request, "local", plan, more.pop("asked", {}), **more)


def sent(provider: str = "deepseek", model: str = "v4", why: Any = "first", id: str = "resp_1") -> Sent:
    return Sent(id, provider, model, 1, why)


def ended(outcome: str = "completed", **more: Any) -> Ended:
    facts: dict[str, Any] = {"provider": "deepseek", "model": "v4", "failure": None, "usage": None, "cost": Cost()}
    facts |= {"seconds": 2.0, "first_token": None, "attempts": 1, "degraded": 0, "ignored": 0, "owner": "local"}
    facts |= {"id": "resp_1", **more}
    used = used_tokens(facts["usage"])
    return Ended(outcome=outcome, used=used, price=facts.pop("cost").price(*used[:3]), **facts)


def answered(path: str = "/v1/responses", status: int = 200, request: str = "req_1") -> Answered:
    return Answered(request, "resp_1", "local", "", "", "POST", path, status, None, False, 2.0)


@pytest.mark.parametrize(
    ("path", "door"),
    [
        ("/v1/responses", "responses"),
        ("/v1/responses/resp_1/cancel", "responses"),
        ("/v1/chat/completions", "chat"),
        ("/v1/messages", "messages"),
        ("/v1/embeddings", "embeddings"),
        ("/v1/conversations/conv_1/items", "conversations"),
        ("/v1/models", "models"),
        ("/v1/images/edits", "images"),
        ("/v1/alpha/search", "search"),
        ("/v1/sk-secret", "other"),
        ("/health", "other"),
        ("/", "other"),
        ("", "other"),
    ],
)
def test_a_path_leads_to_a_door_that_we_know(path: str, door: str) -> None:
    assert door_of(path) == door


def test_a_run_is_counted_by_door_model_and_end() -> None:
    life = Life()
    life.tell(received("/v1/chat/completions"), planned(), sent(), ended(), answered("/v1/chat/completions"))
    life.tell(received(request="req_2"), planned(id="resp_2", request="req_2"), ended("failed", id="resp_2"))
    assert life.count("isthmus_requests_total") == {
        ("chat", "deepseek", "v4", "completed"): 1,
        ("responses", "deepseek", "v4", "failed"): 1,
    }
    assert life.spread("isthmus_request_duration_seconds")["chat", "deepseek", "v4"] == (1, 2.0)


def test_a_model_that_only_a_client_knows_and_an_end_that_nobody_knows_are_folded() -> None:
    life = Life()
    life.tell(planned(), sent(model="sk-secret"), ended("sk-secret", model="sk-secret"))
    assert life.count("isthmus_requests_total") == {("responses", "deepseek", "other", "other"): 1}
    assert life.count("isthmus_attempts_total") == {("deepseek", "other"): 1}


def test_every_answer_is_counted_also_of_requests_that_were_refused() -> None:
    life = Life()
    life.tell(answered(status=401), answered(status=401), answered("/v1/nothing", 404))
    assert life.count("isthmus_http_requests_total") == {("responses", "401"): 2, ("other", "404"): 1}
    assert life.count("isthmus_requests_total") == {}


def test_tokens_and_cost_are_added_up() -> None:
    life = Life()
    life.tell(planned(), sent(), ended(usage=USAGE, cost=Cost(input=1.0, cached=0.5, output=10.0)))
    life.tell(planned(), sent(), ended(usage=USAGE))
    assert life.count("isthmus_tokens_total") == {
        ("deepseek", "v4", "input"): 200,
        ("deepseek", "v4", "cached"): 120,
        ("deepseek", "v4", "output"): 40,
        ("deepseek", "v4", "reasoning"): 10,
    }
    price = (40 * 1.0 + 60 * 0.5 + 20 * 10.0) / 1_000_000
    assert life.count("isthmus_cost_dollars_total") == {("deepseek", "v4"): pytest.approx(price)}


def test_decisions_are_counted_by_what_was_decided() -> None:
    life = Life()
    life.tell(planned("supported", "supported", "degraded"), planned("ignored", id="resp_2"))
    assert life.count("isthmus_plan_decisions_total") == {("supported",): 2, ("degraded",): 1, ("ignored",): 1}


def test_our_own_time_is_all_of_it_without_the_upstreams() -> None:
    life = Life()
    life.tell(received(), planned(parse_seconds=0.01, plan_seconds=0.02))
    life.now += 0.005  # between the plan and the sending
    life.tell(sent())
    life.now += 1.5  # it is asked, and answers
    life.now += 0.04  # checks, and saving
    life.tell(ended(seconds=1.545, settled=0.04))
    assert life.spread("isthmus_overhead_seconds") == {("responses",): (1, 0.01 + 0.02 + 0.005 + 0.04)}


def test_every_attempt_is_the_upstreams_time_and_what_is_between_them_ours() -> None:
    life = Life()
    life.tell(received(), planned(), sent())
    life.now += 1.0
    life.tell(AttemptFailed("resp_1", "deepseek", "v4", 1, UpstreamFailed("no")))
    life.now += 0.25  # another plan
    life.tell(sent("zhipu", "glm", "anew"))
    life.now += 2.0
    life.tell(ended(seconds=3.25))
    assert life.spread("isthmus_overhead_seconds") == {("responses",): (1, 0.25)}


def test_another_model_in_its_place_is_a_fallback_and_the_same_one_again_is_not() -> None:
    life = Life()
    life.tell(planned(), sent(), sent(why="anew"), sent("zhipu", "glm", "anew"), sent("zhipu", "glm", "repair"))
    assert life.count("isthmus_fallbacks_total") == {("deepseek",): 1}
    assert life.count("isthmus_attempts_total") == {("deepseek", "v4"): 2, ("zhipu", "other"): 2}


def test_failures_and_retries_are_told_apart() -> None:
    life = Life()
    failure = RateLimited("slow down")
    life.tell(Retried("resp_1", "deepseek", failure, 0.5), Retried("resp_1", "deepseek", failure, elsewhere=True))
    life.tell(AttemptFailed("resp_1", "deepseek", "v4", 1, failure))
    life.tell(AttemptFailed("resp_1", "deepseek", "v4", 1, UpstreamFailed("no", code="sk-secret")))
    assert life.count("isthmus_retries_total") == {("deepseek", "again"): 1, ("deepseek", "elsewhere"): 1}
    assert life.count("isthmus_attempt_failures_total") == {
        ("deepseek", "rate_limit_exceeded"): 1,
        ("deepseek", "other"): 1,
    }


def test_a_stream_has_one_mean_gap_and_one_longest() -> None:
    life = Life()
    life.tell(planned(), sent())
    life.tell(ended(seconds=2.5, first_token=0.5, settled=1.0, batches=11, longest_gap=0.6))
    assert life.spread("isthmus_time_to_first_token_seconds") == {("deepseek", "v4"): (1, 0.5)}
    assert life.spread("isthmus_token_gap_seconds") == {("deepseek", "v4"): (1, 0.1)}
    assert life.spread("isthmus_token_gap_longest_seconds") == {("deepseek", "v4"): (1, 0.6)}


def test_what_came_in_one_piece_has_no_gaps() -> None:
    life = Life()
    life.tell(planned(), sent(), ended(first_token=0.5, batches=2))
    assert life.spread("isthmus_token_gap_seconds") == {}


def test_open_streams_are_those_that_have_not_ended() -> None:
    life = Life()
    life.tell(planned(asked={"stream": True}), planned(id="resp_2"))
    life.tell(planned(asked={"stream": True}, id="resp_3", background=True))
    assert life.count("isthmus_open_streams") == {(): 1}
    life.tell(ended())
    assert life.count("isthmus_open_streams") == {(): 0}


def test_tool_runs_and_checks_are_counted_by_their_result() -> None:
    life = Life()
    call = ManagedCall("ws_1", "web_search", "web_search", {}, {})
    for ran in (Ran("found"), Ran("no", failed=True), None):
        life.tell(ToolRan("resp_1", call, ran, 0.5))
    for check in (ContractCheck(True, "{}"), ContractCheck(False, ""), ContractCheck(True, "", unchecked="too long")):
        life.tell(ContractChecked("resp_1", check, 0.1))
    results = ("completed", "failed", "cancelled")
    assert life.count("isthmus_tool_runs_total") == {("web_search", result): 1 for result in results}
    assert life.spread("isthmus_tool_seconds") == {("web_search",): (3, 1.5)}
    assert life.count("isthmus_contract_checks_total") == {("valid",): 1, ("invalid",): 1, ("unchecked",): 1}


def test_what_is_never_heard_of_again_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 10)
    life = Life()
    for number in range(100):
        life.tell(received(request=f"req_{number}"), planned(id=f"resp_{number}", request=f"req_{number}"))
    assert (len(life.observer._doors), len(life.observer._runs)) == (10, 10)
    life.tell(ended(id="resp_1"))
    assert life.count("isthmus_requests_total") == {("other", "deepseek", "v4", "completed"): 1}


def test_nothing_of_a_request_stays_when_it_is_over() -> None:
    life = Life()
    life.tell(received(), planned(), sent(), ended(), answered())
    assert (life.observer._doors, life.observer._runs) == ({}, {})


def test_every_fact_is_counted_under_a_name_of_the_catalogue() -> None:
    assert set(CATALOG) >= {each.name for each in Life().meters.read()}
