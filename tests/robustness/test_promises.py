"""What the gateway promises about failures, each proved against the real process.

`python -m bench.robustness` runs the same with full counts and prints the figures. Times are judged there, on a quiet
machine; here they are far from what a broken promise would take, and far from what a busy machine needs.
"""

from __future__ import annotations

import asyncio
import random
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and CPU time are read from /proc")


def test_a_client_that_leaves_ends_the_upstream_call_at_once_and_is_stored_as_cancelled() -> None:
    from bench.robustness import disconnect

    # Without its own eyes the gateway would see it at the next sign of life, after 15 s.
    assert asyncio.run(disconnect.check(6, limit=10)).broken == []


def test_clients_that_do_not_read_hold_the_upstream_back_and_lose_nothing() -> None:
    from bench.robustness import backpressure

    assert asyncio.run(backpressure.check(10, 22_000_000, answer=30)).broken == []


def test_sockets_that_are_cut_leave_nothing_running_and_idle_ones_take_little() -> None:
    from bench.robustness import sockets

    assert asyncio.run(sockets.check(50, 20, each=200_000, limit=10)).broken == []


def test_whoever_never_sends_a_whole_request_keeps_nobody_out() -> None:
    from bench.robustness import edge

    # Otherwise half-sent bodies take every place, and the rest gets 503; endless heads never end.
    assert asyncio.run(edge.check(4_000_000, 20, 60, places=50, patience=4, limit=30)).broken == []


def test_newcomers_are_accepted_beside_many_streams() -> None:
    from bench.robustness import crowd

    assert asyncio.run(crowd.check(40, 40, pace=0.5, limit=60)).broken == []


def test_many_slow_streams_at_once_all_end_well_and_take_little_memory() -> None:
    from bench import streams

    # A hundred are few beside the allocator's own steps: a thousand (`make check-streams`) stay below 60 kB each.
    assert asyncio.run(streams.check(100, 4, pace=0.3, memory=100_000)).broken == []


def test_sigterm_lets_running_requests_finish_and_ends_the_rest_with_a_terminal_event() -> None:
    from bench.robustness import drain

    assert asyncio.run(drain.check(4, grace=6, ending=40, hurry=30)).broken == []


def test_kill_9_loses_nothing_that_a_client_was_told() -> None:
    from bench.robustness import kill

    assert asyncio.run(kill.check(3)).broken == []


def test_background_responses_wait_for_a_place_and_none_is_lost() -> None:
    from bench.robustness import background

    assert asyncio.run(background.check(40)).broken == []


def test_two_gateways_on_one_database_end_what_the_killed_one_had_begun() -> None:
    from bench.robustness import two

    assert asyncio.run(two.check(2, clients=3, late=30)).broken == []


def test_no_broken_request_makes_a_500_or_a_hang() -> None:
    from bench.robustness import fuzz

    assert asyncio.run(fuzz.check(400, stride=30)).broken == []


def test_no_attack_stops_the_gateway_or_makes_it_tell_what_it_should_not() -> None:
    from bench.robustness import attack

    # Small attacks, and patience that only a gateway that stands still would use up.
    assert asyncio.run(attack.check(small=True, ping=20, gap=20)).broken == []


def test_a_long_chain_costs_the_same_space_for_every_turn() -> None:
    from bench.robustness import chain

    assert asyncio.run(chain.check(60, noise=0.1)).broken == []


def test_the_overhead_benchmark_measures_every_kind_of_call() -> None:
    from bench import overhead

    measured = asyncio.run(overhead.measure(1, calls=1))
    assert all(kind.direct and kind.through and min(kind.cpu) > 0 and min(kind.cpu_busy) > 0 for kind in measured)


def test_no_question_about_many_traces_takes_long_and_forgetting_them_stops_nobody() -> None:
    """With fewer than the million of `make check-traces`; that the work does not grow is counted in `test_reads`."""
    from bench import traces

    measured = asyncio.run(traces.measure(20_000))
    assert {name: seconds for name, seconds in measured.questions.items() if seconds > traces.BOUND} == {}
    assert measured.forgot == 2_000
    assert measured.turns > measured.steps >= 4


@pytest.mark.parametrize("noise", [0.0, 0.15, 0.4])
def test_the_ratio_of_two_gateways_lies_between_its_bounds_however_noisy_the_machine_is(noise: float) -> None:
    from bench import overhead

    chance = random.Random(7)
    weather = [1 + noise * chance.random() for _ in range(200)]  # both meet the same, but for a tenth of it
    own = [[1 + noise / 10 * chance.random() for _ in weather] for _ in range(2)]
    before, after = (
        [cost * each * mine for each, mine in zip(weather, ours, strict=True)]
        for cost, ours in zip((1.0, 1.08), own, strict=True)
    )
    ratio = overhead.ratio_of(before, after)
    assert ratio.low <= 1.08 <= ratio.high
    assert ratio.high - ratio.low < 0.02
    assert overhead.ratio_of(before[:1], after[:1]).low == after[0] / before[0]


@pytest.mark.measured
def test_traces_cost_a_request_and_a_delta_little() -> None:
    """Beside a gateway without, in one run. `python -m bench.overhead --traces` holds the bound on a machine that does
    nothing else, and with five times as many."""
    from bench import overhead

    dear = {kind.name for kind in overhead.kinds()}
    for _ in range(3):  # what is dear by chance is not so three times
        compared = asyncio.run(overhead.compare(3, "", {"trace": 'capture = "off"'}, share=0.2))
        dear &= {mine.name for its, mine in compared if min(mine.cpu_busy) > min(its.cpu_busy) * 1.5}
        if not dear:
            break
    assert dear == set()
