"""A name that stands for several targets: which one is taken, how often, and why; there is no chance in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.capabilities import Cost, ProviderCapabilities, TokenLimits
from isthmus.bridge.choose import Choice, Occasion, Option, estimate, narrow, order_options, pick, tell_choice
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.types.plan import Target
from isthmus.errors import RequestRefused

NAMES = ("a/one", "b/two", "c/three")


def option(
    name: str, *, resting: bool = False, cost: tuple[float, float] | None = None, window: int | None = None
) -> Option:
    provider, model = name.split("/")
    facts = msgspec.structs.replace(
        ProviderCapabilities(),
        cost=Cost() if cost is None else Cost(input=cost[0], output=cost[1]),
        limits=TokenLimits(context=window),
    )
    return Option(Target(provider, model, facts), resting)


def ordered(choice: Choice, options: list[Option], **occasion: Any) -> list[str]:
    targets = order_options("fast", choice, options, Occasion(**occasion))
    return [f"{target.provider}/{target.model}" for target in targets]


def plain(*resting: str) -> list[Option]:
    return [option(name, resting=name in resting) for name in NAMES]


# ── weights ────────────────────────────────────────────────────────────────────────────────────────

WEIGHTS = st.lists(st.integers(1, 9), min_size=3, max_size=3).map(tuple)


@given(WEIGHTS, st.integers(0, 5))
def test_each_is_taken_as_often_as_its_weight_says_in_every_round(weights: tuple[int, ...], rounds: int) -> None:
    choice, whole = Choice(NAMES, weights), sum(weights)
    first = [ordered(choice, plain(), turn=rounds * whole + turn)[0] for turn in range(whole)]
    assert [Counter(first)[name] for name in NAMES] == list(weights)


def test_turns_are_spread_and_not_taken_in_blocks() -> None:
    choice = Choice(NAMES[:2], (3, 1))
    first = [ordered(choice, plain()[:2], turn=turn)[0] for turn in range(8)]
    assert first == ["a/one", "a/one", "b/two", "a/one"] * 2


@given(st.integers(0, 100), st.sampled_from(["", "thread-1"]))
def test_every_target_is_in_the_order_once(turn: int, sticky: str) -> None:
    assert sorted(ordered(Choice(NAMES), plain(), turn=turn, sticky=sticky)) == list(NAMES)


def test_conversations_stay_and_are_spread_by_weight() -> None:
    choice = Choice(NAMES, (6, 3, 1))
    found = {f"thread-{number}": ordered(choice, plain(), sticky=f"thread-{number}")[0] for number in range(2_000)}
    assert found == {name: ordered(choice, plain(), sticky=name, turn=17)[0] for name in found}
    shares = [Counter(found.values())[name] / len(found) for name in NAMES]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.04)


def test_where_one_is_left_alone_only_its_own_conversations_move() -> None:
    choice, threads = Choice(NAMES), [f"thread-{number}" for number in range(300)]
    before = {each: ordered(choice, plain(), sticky=each)[0] for each in threads}
    after = {each: ordered(choice, plain("b/two"), sticky=each)[0] for each in threads}
    assert {each for each in threads if before[each] != after[each]} == {
        each for each in threads if before[each] == "b/two"
    }


# ── price ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_cheapest_depends_on_what_is_asked() -> None:
    options = [option("a/one", cost=(1.0, 10.0)), option("b/two", cost=(3.0, 3.0)), option("c/three")]
    choice = Choice(NAMES, by="price")
    assert ordered(choice, options, spends=10_000, makes=100) == ["a/one", "b/two", "c/three"]
    assert ordered(choice, options, spends=100, makes=10_000) == ["b/two", "a/one", "c/three"]
    first, _, third = order_options("fast", choice, options, Occasion(spends=100, makes=10_000))
    assert first.choice is not None
    assert first.choice.reason == "about 100 tokens and an answer of 10000 cost $0.030300"
    assert third.choice is not None
    assert third.choice.reason == "nobody knows its price"


def test_a_window_that_is_too_small_comes_last_however_cheap() -> None:
    options = [option("a/one", cost=(1.0, 1.0), window=1_000), option("b/two", cost=(9.0, 9.0), window=9_000)]
    assert ordered(Choice(NAMES[:2], by="price"), options, spends=800, makes=300) == ["b/two", "a/one"]
    assert ordered(Choice(NAMES[:2], by="price"), options, spends=800, makes=200) == ["a/one", "b/two"]


def test_who_answered_the_turn_before_has_the_cache() -> None:
    options = [option("a/one", cost=(1.0, 1.0)), option("b/two", cost=(9.0, 9.0))]
    for choice in (Choice(NAMES[:2], by="price"), Choice(NAMES[:2])):
        assert ordered(choice, options, last="b/two")[0] == "b/two"
        assert ordered(choice, options, last="gone/away")[0] == "a/one"
    assert ordered(Choice(NAMES[:2], by="order"), options, last="b/two")[0] == "a/one"


# ── who is left alone ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("by", ["weight", "price", "order"])
@pytest.mark.parametrize("last", ["", "a/one"])
def test_who_is_left_alone_comes_last_and_the_reason_says_so(by: Any, last: str) -> None:
    choice = Choice(NAMES, by=by)
    targets = order_options("fast", choice, plain("a/one"), Occasion(last=last))
    assert f"{targets[-1].provider}/{targets[-1].model}" == "a/one"
    assert all(
        target.choice is not None and "left alone just now: `a/one`" in target.choice.reason for target in targets
    )
    assert [target.choice.resting for target in targets if target.choice] == [False, False, True]


def test_where_all_are_left_alone_the_order_is_kept() -> None:
    assert ordered(Choice(NAMES, by="order"), plain(*NAMES)) == list(NAMES)


# ── who may not be used ────────────────────────────────────────────────────────────────────────────


def test_of_a_narrowed_choice_the_weights_are_those_of_what_is_open_and_the_reason_names_the_rest() -> None:
    whole = Choice(NAMES, weights=(5, 1, 2))
    assert narrow(whole, [True, True, True]) is whole
    narrowed = narrow(whole, [False, True, True])
    assert (narrowed.targets, narrowed.weights, narrowed.closed) == (NAMES[1:], (1, 2), NAMES[:1])
    taken = [ordered(narrowed, plain()[1:], turn=turn)[0] for turn in range(6)]
    assert (taken.count(NAMES[1]), taken.count(NAMES[2])) == (2, 4)
    first, *_ = order_options("fast", narrowed, plain()[1:], Occasion())
    assert first.choice is not None
    assert first.choice.reason.endswith(f"of 3); not open to this key: `{NAMES[0]}`")


# ── who fits ───────────────────────────────────────────────────────────────────────────────────────


class Made:
    """A plan, as far as it is looked at."""

    def __init__(self, target: Target, *paths: str) -> None:
        self.target = target
        self.diagnostics = [CompatibilityDiagnostic("c", "warn", path, "", "degraded") for path in paths]


def _pick(by: Any, fates: dict[str, Any]) -> tuple[str, str]:
    def make(target: Target) -> Any:
        fate = fates[f"{target.provider}/{target.model}"]
        if isinstance(fate, RequestRefused):
            raise fate
        return Made(target, *fate)

    targets = order_options("fast", Choice(NAMES, by=by), plain(), Occasion())
    taken, made = pick(targets, make, lambda plan: plan)
    assert made.target.choice is not None
    return f"{taken.provider}/{taken.model}", made.target.choice.reason


def test_by_price_who_would_change_the_answer_is_passed_over() -> None:
    name, reason = _pick("price", {"a/one": ["text.format"], "b/two": ["temperature", "user"], "c/three": []})
    assert name == "b/two"
    assert reason.endswith("`a/one` would have to change `text.format`")


def test_where_nobody_fits_it_is_whoever_changes_least() -> None:
    fates = {"a/one": ["tools[0]", "input[1]"], "b/two": ["tools[0]"], "c/three": ["text.format", "tool_choice"]}
    assert _pick("price", fates)[0] == "b/two"


@pytest.mark.parametrize("by", ["weight", "order"])
def test_by_weight_and_order_only_a_refusal_passes_somebody_over(by: Any) -> None:
    too_long = RequestRefused("too long", code="context_length_exceeded")
    name, reason = _pick(by, {"a/one": too_long, "b/two": ["text.format"], "c/three": []})
    assert name == "b/two"
    assert "`a/one` cannot take this request (`context_length_exceeded`)" in reason


def test_where_everybody_refuses_the_first_refusal_is_told() -> None:
    fates = {name: RequestRefused(f"not {name}") for name in NAMES}
    with pytest.raises(RequestRefused, match="not a/one"):
        _pick("order", fates)


def test_the_choice_is_a_decision_of_the_plan() -> None:
    target, *_ = order_options("fast", Choice(NAMES, by="order"), plain(), Occasion())
    (decision,) = tell_choice(target)
    assert (decision.path, decision.action, decision.effective_value) == ("models.choices.fast", "supported", "a/one")
    assert decision.reason == "by order: number 1 of its targets"
    assert tell_choice(option("a/one").target) == ()


def test_an_estimate_counts_what_is_said_and_what_may_be_answered() -> None:
    items = [{"type": "message", "role": "user", "content": "word " * 400}]
    spends, makes = estimate({"max_output_tokens": 50}, items)
    assert 400 < spends < 700
    assert (makes, estimate({}, items)[1]) == (50, 1_000)
