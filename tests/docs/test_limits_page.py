"""The page of limits is whole: every bound in the code that refuses or cuts is on it, with its setting."""

from __future__ import annotations

import ast
import re

from doc_pages import ROOT
from docs.test_reference_pages import SCRIPT, made
from isthmus.bridge.bounds import Bounds
from isthmus.bridge.limits import AnswerLimits, RequestLimits
from isthmus.config.reference import NO_BOUNDS, limit_settings
from settings.proving import keys_of

SOURCE = ROOT / "src" / "isthmus"
BOUND = re.compile(r"(MAX|MOST|LONGEST|LARGEST|DEEPEST)(_|$)")
ELSEWHERE = ("cli", "demo", "testing")
"""Rooms that serve nobody else."""
DEFAULTS = {
    "upstream.endpoint.MAX_CONNECTIONS": "providers.NAME.max_connections",
    "upstream.endpoint.MAX_QUEUED": "providers.NAME.max_queued",
    "ports.records.DEFAULT_MAX_DEPTH": "store.max_chain",
    "ports.keys.MOST_DEEDS": "store.audit_entries",
    "bridge.sse.MAX_EVENT": "limits.max_answer",
    "observe.metrics.labels.MAX_MODELS": "metrics.max_models",
    "bridge.sse.MAX_VALUES": "limits.max_values",
}
"""Constants that are the default of a setting."""
NONE = {
    "observe.memory._ARENA_MAX",
    "store.sqlite.store._LARGEST_NUMBER",
    "store.postgres.store._LARGEST_NUMBER",
    "store.postgres.reads._LARGEST",
    "bridge.dialects.reports._MOST",
    "observe.traces.seen._LARGEST",
    "store.traces.rows._MOST_STEPS",
}
"""A number of glibc's, the ends of numbers in databases and in JSON, of a scale, and a share."""
WORDS = {"limits.redis", "limits.redis_down", "limits.unpriced"}
"""Say where and how it is counted, not how much."""
SETTINGS = {key for key, _, _ in limit_settings()}


def constants() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if module.startswith(ELSEWHERE):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and BOUND.search(node.target.id):
                found.add(f"{module}.{node.target.id}")
    return found


def test_every_constant_that_bounds_something_is_on_the_page() -> None:
    fixed = set(SCRIPT.FIXED)
    assert constants() - fixed - set(DEFAULTS) - NONE == set(), "say in `scripts/make_reference.py` what they bound"
    assert fixed <= constants()
    assert set(DEFAULTS.values()) <= SETTINGS


def test_every_setting_that_bounds_something_is_on_the_page() -> None:
    named = {key for key in keys_of() if re.search(r"\bmax_|timeout|deadline|limits\.", key)}
    assert named - WORDS <= SETTINGS
    assert {f"limits.{name}" for kind in (RequestLimits, AnswerLimits) for name in kind.__struct_fields__} <= SETTINGS
    assert {f"checks.{name}" for name in Bounds.__struct_fields__} <= SETTINGS
    assert set(keys_of()) >= NO_BOUNDS
    assert all(f"| `{key}` |" in made("limits.md") for key in SETTINGS)


def test_every_setting_that_a_refusal_names_is_on_the_page() -> None:
    named = set()
    for path in SOURCE.rglob("*.py"):
        named |= set(re.findall(r"`((?:limits|checks)\.\w+)`", path.read_text(encoding="utf-8")))
    assert {key for key in named if not key.endswith(".")} - WORDS <= SETTINGS
    assert {"limits.max_serving", "limits.max_memory"} <= named
