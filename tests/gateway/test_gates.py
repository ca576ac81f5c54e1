"""What the gate is asked for each kind of request."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.gateway.caller import Caller
from isthmus.gateway.gates import NO_GATES, ONLY_A_REQUEST, Gates, payer_of
from isthmus.ports.admission import Payer, Wanted
from isthmus.ports.keys import Budget, Grant, Rates

RATES, BUDGET = Rates(requests_per_minute=5), Budget(day=1.0)
ANN = Caller("team:t", key="key_a", team="t", grant=Grant(rates=RATES, budget=BUDGET))


class Ticket:
    def __init__(self) -> None:
        self.headers = {"x-ratelimit-limit-requests": "5"}
        self.settled: list[Any] = []

    def settle(self, spent: Any) -> None:
        self.settled.append(spent)


class Admission:
    def __init__(self) -> None:
        self.asked: list[tuple[Payer, Wanted]] = []
        self.ticket = Ticket()
        self.closed = self.flushed = False

    async def admit(self, payer: Payer, wanted: Wanted) -> Ticket:
        self.asked.append((payer, wanted))
        return self.ticket

    async def written(self) -> None:
        self.flushed = True

    async def aclose(self) -> None:
        self.closed = True


class _Thing:
    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


def plan(limit: int | None = 7) -> Any:
    target = _Thing(provider="p", model="m", capabilities=_Thing(cost="cost"))
    return _Thing(target=target, size=400, body={}, output_limit=limit)


def test_who_pays_is_the_caller_with_its_own_limits() -> None:
    assert payer_of(ANN) == Payer("team:t", "key_a", "t", RATES, BUDGET)


@pytest.mark.parametrize(
    ("asked", "streams"),
    [({}, False), ({"stream": True}, True), ({"stream": True, "background": True}, False)],
)
async def test_a_run_is_asked_for_with_its_plan(asked: dict[str, Any], streams: bool) -> None:
    admission = Admission()
    gate = Gates(lambda: admission).of_run(ANN, {"model": "fast", **asked})
    assert gate is not None
    assert admission.asked == []
    assert await gate(plan()) is admission.ticket
    ((payer, wanted),) = admission.asked
    assert payer == payer_of(ANN)
    assert (wanted.name, wanted.provider, wanted.model, wanted.cost) == ("fast", "p", "m", "cost")
    assert (wanted.count(), wanted.output, wanted.streams) == (100, 7, streams)


async def test_vectors_and_images_make_no_text() -> None:
    admission = Admission()
    gate = Gates(lambda: admission).of_once(ANN, "vectors", plan(), {"input": "a word " * 100})
    assert gate is not None
    await gate()
    ((_, wanted),) = admission.asked
    assert wanted.output == 0
    assert 100 < wanted.count() < 1000


async def test_what_asks_no_model_is_a_request_and_nothing_else() -> None:
    admission = Admission()
    async with Gates(lambda: admission).request(ANN) as limits:
        assert limits == admission.ticket.headers
        assert admission.ticket.settled == []
    assert admission.ticket.settled == [[ONLY_A_REQUEST]]
    assert admission.asked[0][1] == Wanted("", count=admission.asked[0][1].count)


async def test_without_a_gate_everybody_passes() -> None:
    assert NO_GATES.of_run(ANN, {}) is NO_GATES.of_once(ANN, "m", plan(), {}) is None
    async with NO_GATES.request(ANN) as limits:
        assert limits == {}
    await NO_GATES.written()
    await NO_GATES.aclose()


async def test_it_is_closed_with_the_gateway() -> None:
    admission = Admission()
    gates = Gates(lambda: admission)
    await gates.written()
    await gates.aclose()
    assert not admission.closed, "nobody has come: it was never opened"
    assert gates.admission is gates.admission is admission
    await gates.written()
    await gates.aclose()
    assert admission.flushed
    assert admission.closed
