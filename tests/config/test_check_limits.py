"""Each mistake in `[limits]` and `[teams]` is found, with its fix."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import pytest

from isthmus.config.check_limits import check_limits
from isthmus.config.schema import Config
from isthmus.values.problems import dotted


def problems(**config: Any) -> list[tuple[str, str, str]]:
    found = list(check_limits(msgspec.convert(config, Config)))
    assert all(each.fix for each in found)
    return [(dotted(each.key), each.severity, each.message) for each in found]


def test_an_address_that_is_none_is_an_error() -> None:
    ((key, severity, message),) = problems(limits={"redis": "localhost:6379"})
    assert (key, severity, message) == ("limits.redis", "error", "is no address of a Redis")
    assert problems(limits={"redis": "redis://localhost:6379"}) == []


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("isthmus.config.check_limits.find_spec", lambda name: None if name == "redis" else found(name))
    ((key, severity, message),) = problems(limits={"redis": "redis://localhost:6379"})
    assert (key, severity) == ("limits.redis", "error")
    assert "not installed" in message


@pytest.mark.parametrize(
    "limited",
    [
        {"limits": {"requests_per_minute": 5}},
        {"limits": {"models": {"*": {"tokens_per_minute": 5}}}},
        {"teams": {"t": {"concurrent_streams": 1}}},
    ],
)
def test_several_workers_without_redis_are_told_that_each_counts_alone(limited: dict[str, Any]) -> None:
    ((key, severity, message),) = problems(server={"workers": 4}, **limited)
    assert (key, severity) == ("limits.redis", "warning")
    assert "each of the 4 workers counts limits alone" in message
    assert problems(server={"workers": 1}, **limited) == []


def test_budgets_alone_need_no_redis() -> None:
    assert problems(server={"workers": 4}, teams={"t": {"daily_budget": 5.0}}) == []


def test_a_key_for_a_provider_that_is_not_there_is_an_error() -> None:
    ((key, severity, _),) = problems(teams={"t": {"upstream_keys": {"nobody": "sk-x"}}})
    assert (key, severity) == ("teams.t.upstream_keys.nobody", "error")
