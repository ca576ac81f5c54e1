"""The fuzzer finds what it is for: with one bound taken out, it says so within its first cases; with it, nothing.

Each weakness is planted by taking out one bound of the product, wherever it is kept.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import msgspec
import pytest

from isthmus import wiring, wiring_providers
from isthmus.bridge.limits import take_limits
from isthmus.config.schema import Server
from isthmus.server.bodies import Bodies

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the time of one thread is read as POSIX has it")

CASES = 120
"""Every campaign begins with the edges of all bounds: none of them is left to chance."""


def _boundless_bodies(limits: Server) -> Bodies:
    return Bodies(msgspec.structs.replace(limits, max_body=10**9))


PLANTED: dict[str, tuple[dict[str, Any], str]] = {
    "a time to wait of any length": (
        {"isthmus.errors:sane_wait": lambda wait: wait, "isthmus.upstream.retry_after:sane_wait": lambda wait: wait},
        "retry-after",
    ),
    "refusals that quote all of what they refuse": ({"isthmus.errors:shorten": lambda words: words}, "an error of"),
    "bodies of any size": ({"isthmus.server.app:Bodies": _boundless_bodies}, "are allowed"),
    "errors of any length": (
        {
            "isthmus.bridge.dialects.chat.failures:_SHOWN": 10**9,
            "isthmus.bridge.dialects.chat.failures:_READ": 10**9,
            "isthmus.upstream.http:_MAX_ERROR": 10**9,
            "isthmus.errors:MAX_WORDS": 10**9,
        },
        "an error of",
    ),
}

LIMITS = (
    *("max_items", "max_parts", "max_tools", "max_depth", "max_fields", "max_values"),
    *("max_chunks", "max_answer"),
)
"""Of `[limits]`. What the fuzzer counts itself, in its own way, is what it misses them by."""


@pytest.mark.parametrize("setting", LIMITS)
def test_a_limit_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    from bench.fuzz.engine import tell
    from bench.fuzz.house import TIGHT, running_house

    def without(kind: Any, section: Any) -> Any:
        made = take_limits(kind, section)
        return msgspec.structs.replace(made, **{setting: 1 << 40}) if setting in kind.__struct_fields__ else made

    for place in (wiring, wiring_providers):
        monkeypatch.setattr(place, "take_limits", without)
    with running_house(hang=60, limits=TIGHT) as house:
        outcome = _hunt(house)
    assert any(f"`{setting}`" in finding.problem for finding in outcome.findings), tell(outcome)


@pytest.mark.parametrize(("bounds", "words"), PLANTED.values(), ids=list(PLANTED))
def test_a_planted_weakness_is_found(monkeypatch: pytest.MonkeyPatch, bounds: dict[str, Any], words: str) -> None:
    from bench.fuzz.engine import tell
    from bench.fuzz.house import running_house

    for place, value in bounds.items():
        module, _, name = place.partition(":")
        monkeypatch.setattr(importlib.import_module(module), name, value)
    with running_house(hang=60) as house:
        outcome = _hunt(house)
    assert any(words in finding.problem for finding in outcome.findings), tell(outcome)


def _hunt(house: Any) -> Any:
    from bench.fuzz.engine import fuzz

    return fuzz(house, seed=20, cases=CASES, enough=1)
