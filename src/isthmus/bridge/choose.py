"""A name that stands for several targets: which one answers this request, and why.

In: the targets, whether each can be asked, what the request is estimated to take, and what keeps a conversation where
it is. Out: all of them in the order in which they are to be tried, each with its reason. Worth knowing: there is no
chance in it. Weights are kept by counting (`turn`), and a conversation finds its target by a hash of its own name, so
that those of one target move when it is left alone, and nobody else's do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import compress
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.tokens import likely_tokens
from isthmus.bridge.types.plan import Chosen, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

T = TypeVar("T")
By = Literal["weight", "price", "order"]
MOST_WEIGHT: Final = 1_000
"""The sum of a choice's weights."""
ANSWER: Final = 1_000
"""Tokens that an answer is taken to have where nobody says how long it may be."""
ESSENTIAL: Final = ("text", "tools", "tool_choice", "input")
"""What an answer is made of: whoever would have to change it does not fit, however cheap."""


class Choice(msgspec.Struct, frozen=True):
    targets: tuple[str, ...]
    weights: tuple[int, ...] = ()
    """One for each target; none: all are alike."""
    by: By = "weight"
    closed: tuple[str, ...] = ()
    """Targets that whoever asks may not use: they take no part."""


def narrow(choice: Choice, open: Sequence[bool]) -> Choice:
    """The same among those of its targets that are open."""
    if all(open):
        return choice
    return replace(
        choice,
        targets=tuple(compress(choice.targets, open)),
        weights=tuple(compress(choice.weights, open)),
        closed=tuple(compress(choice.targets, (not each for each in open))),
    )


def name_of(target: Target) -> str:
    return f"{target.provider}/{target.model}"


@dataclass(frozen=True, slots=True)
class Option:
    target: Target
    resting: bool = False
    """Whether it is left alone just now."""

    @property
    def name(self) -> str:
        return name_of(self.target)


@dataclass(frozen=True, slots=True)
class Occasion:
    """What is known of a request when its target is chosen."""

    turn: int = 0
    """How many requests came before it that nothing keeps anywhere."""
    sticky: str = ""
    """What its conversation is called; empty: nobody knows."""
    last: str = ""
    """Who answered the turn before it."""
    spends: int = 0
    """Tokens that it has, about."""
    makes: int = 0
    """Tokens that are expected of the answer."""


def estimate(body: Mapping[str, Any], items: Sequence[JsonObject]) -> tuple[int, int]:
    """Tokens that a request has, and those that are expected of its answer."""
    return likely_tokens({**body, "input": items}), body.get("max_output_tokens") or ANSWER


def order_options(name: str, choice: Choice, options: Sequence[Option], occasion: Occasion) -> list[Target]:
    """The targets in their order for this request; those that are left alone come last."""
    match choice.by:
        case "order":
            ranked = [(option, f"number {index + 1} of its targets") for index, option in enumerate(options)]
        case "price":
            ranked = _by_price(options, occasion)
        case _:
            ranked = _by_weight(choice, options, occasion)
    if choice.by != "order" and occasion.last:
        ranked.sort(key=lambda each: each[0].name != occasion.last)
        if ranked[0][0].name == occasion.last:
            ranked[0] = (ranked[0][0], "it answered the turn before, and what it has cached is there")
    resting = [option.name for option, _ in ranked if option.resting]
    ranked.sort(key=lambda each: each[0].resting)
    beside = _beside("left alone just now", resting) + _beside("not open to this key", choice.closed)
    return [
        replace(option.target, choice=Chosen(name, choice.by, f"{why}{beside}", option.resting))
        for option, why in ranked
    ]


def _beside(why: str, names: Sequence[str]) -> str:
    return f"; {why}: {', '.join(f'`{each}`' for each in names)}" if names else ""


def tell_choice(target: Target) -> tuple[CompatibilityDecision, ...]:
    """The choice as a decision of the plan. Its path is where the operator has it: `model` is the client's."""
    chosen = target.choice
    if chosen is None:
        return ()
    path, used = f"models.choices.{chosen.name}", name_of(target)
    return (CompatibilityDecision(path, "supported", f"by {chosen.by}: {chosen.reason}", used),)


def pick(targets: Sequence[Target], make: Callable[[Target], T], plan_of: Callable[[T], Plan]) -> tuple[Target, T]:
    """The first of these that takes the request, and what was made for it; by price, the first that changes nothing of
    what an answer is made of, or whoever changes least. Raises the first refusal, where all refuse it."""
    best: tuple[int, Target, T] | None = None
    refused: RequestRefused | None = None
    passed: list[str] = []
    for target in targets:
        if best is not None and target.choice is not None and target.choice.resting:
            break
        name = f"`{name_of(target)}`"
        try:
            made = make(_pass_over(target, passed))
        except RequestRefused as error:
            refused = refused or error
            passed.append(f"{name} cannot take this request (`{error.code}`)")
            continue
        by_price = target.choice is not None and target.choice.by == "price"
        lost = _misfits(plan_of(made)) if by_price else []
        if best is None or len(lost) < best[0]:
            best = (len(lost), target, made)
        if not lost:
            break
        passed.append(f"{name} would have to change {', '.join(f'`{path}`' for path in lost[:3])}")
    if best is None:
        assert refused is not None
        raise refused
    return best[1:]


def _pass_over(target: Target, passed: Sequence[str]) -> Target:
    """The same where others were looked at before, with why they were not taken."""
    if target.choice is None or not passed:
        return target
    reason = f"{target.choice.reason}; {'; '.join(passed)}"
    return replace(target, choice=replace(target.choice, reason=reason))


def _misfits(plan: Plan) -> list[str]:
    """Where this target would not give what is asked for."""
    told = [said.path for said in plan.diagnostics if said.action in ("degraded", "ignored")]
    return [path for path in dict.fromkeys(told) if path.split(".")[0].split("[")[0] in ESSENTIAL]


def _by_price(options: Sequence[Option], occasion: Occasion) -> list[tuple[Option, str]]:
    ranked = sorted(options, key=lambda option: (not _has_room(option, occasion), *_price_rank(option, occasion)))
    return [(option, _tell_price(option, occasion)) for option in ranked]


def _price_rank(option: Option, occasion: Occasion) -> tuple[bool, float]:
    price = option.target.capabilities.cost.price(occasion.spends, occasion.makes, 0)
    return price is None, price or 0.0


def _tell_price(option: Option, occasion: Occasion) -> str:
    if not _has_room(option, occasion):
        return f"it reads {option.target.capabilities.limits.context} tokens at most"
    unknown, price = _price_rank(option, occasion)
    about = f"about {occasion.spends} tokens and an answer of {occasion.makes}"
    return "nobody knows its price" if unknown else f"{about} cost ${price:.6f}"


def _has_room(option: Option, occasion: Occasion) -> bool:
    window = option.target.capabilities.limits.context
    return window is None or occasion.spends + occasion.makes <= window


def _by_weight(choice: Choice, options: Sequence[Option], occasion: Occasion) -> list[tuple[Option, str]]:
    weights = choice.weights or (1,) * len(options)
    whole = sum(weights)
    if occasion.sticky:
        scored = zip(options, weights, strict=True)
        ranked = sorted(scored, key=lambda each: -_score(each[0].name, each[1], occasion.sticky))
        return [(option, f"its conversation stays there (weight {weight} of {whole})") for option, weight in ranked]
    turns = _schedule(weights)
    start = occasion.turn % len(turns)
    order = dict.fromkeys((*turns[start:], *turns[:start]))
    return [(options[index], f"it is its turn (weight {weights[index]} of {whole})") for index in order]


def _score(name: str, weight: int, sticky: str) -> float:
    """Of all targets the one with the highest wins, as often as its weight says (rendezvous hashing)."""
    drawn = int.from_bytes(sha256(f"{name}\0{sticky}".encode()).digest()[:8])
    return weight / -math.log((drawn + 0.5) / 2.0**64)


@lru_cache(maxsize=64)
def _schedule(weights: tuple[int, ...]) -> tuple[int, ...]:
    """One round of turns, each target as often as its weight says and as evenly spread as that goes."""
    divisor = math.gcd(*weights)
    shares = [weight // divisor for weight in weights]
    whole, credit, turns = sum(shares), [0] * len(shares), list[int]()
    for _ in range(whole):
        credit = [have + share for have, share in zip(credit, shares, strict=True)]
        index = max(range(len(shares)), key=lambda each: credit[each])
        credit[index] -= whole
        turns.append(index)
    return tuple(turns)
