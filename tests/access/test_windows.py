"""Sliding windows: what is counted, taken back, and when there is room again."""

from __future__ import annotations

import asyncio
from math import floor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.access.windows import MINUTE, Window, count_here


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The library's clock, which the test moves; a minute begins."""
    from limits.aio.storage import memory

    now = [MINUTE * 20_000_000.0]
    monkeypatch.setattr(memory, "time", SimpleNamespace(time=lambda: now[0]))
    return now


async def test_so_many_within_a_minute_and_no_more(at: list[float]) -> None:
    windows = count_here()
    assert [await windows.take("k", 1, 3) for _ in range(5)] == [True, True, True, False, False]
    assert await windows.take("another", 1, 3)
    assert (await windows.look("k")).used == 3


async def test_what_was_estimated_too_high_or_too_low_is_put_right(at: list[float]) -> None:
    windows = count_here()
    assert await windows.take("k", 900, 1000)
    assert not await windows.take("k", 200, 1000)
    await windows.add("k", 100 - 900)
    assert (await windows.look("k")).used == 100
    assert await windows.take("k", 900, 1000)
    await windows.add("k", 500)
    assert (await windows.look("k")).used == 1500, "what was used counts, although it is too much"
    assert not await windows.take("k", 1, 1000)


async def test_what_was_counted_in_the_minute_before_fades(at: list[float]) -> None:
    windows = count_here()
    at[0] += MINUTE - 1
    assert await windows.take("k", 60, 60)
    at[0] += 1
    assert not await windows.take("k", 1, 60), "all of it is still within sixty seconds"
    at[0] += 30
    assert (await windows.look("k")).used == 30
    assert await windows.take("k", 30, 60)
    assert not await windows.take("k", 1, 60)


WINDOWS = st.builds(
    lambda before, left, now: Window(before, left if before else 0.0, now, MINUTE + left),
    st.integers(0, 500),
    st.floats(0.01, MINUTE),
    st.integers(0, 500),
)


@given(WINDOWS, st.integers(1, 100), st.integers(100, 400))
def test_after_the_wait_there_is_room_and_a_moment_before_there_is_none(window: Window, amount: int, most: int) -> None:
    wait = window.wait(amount, most)
    assert 0 <= wait <= 2 * MINUTE + 0.02
    assert floor(_later(window, wait)) + amount <= most
    if wait > 0.1:
        assert floor(_later(window, wait - 0.1)) + amount > most


def _later(window: Window, seconds: float) -> float:
    left = window.now_left - MINUTE
    if seconds < left:
        return window.before * max(0.0, window.before_left - seconds) / MINUTE + window.now
    return window.now * max(0.0, MINUTE - (seconds - left)) / MINUTE


def test_a_window_that_is_empty_needs_no_reset() -> None:
    assert Window(0, 0.0, 0, 100.0).reset() == 0.0
    assert Window(5, 20.0, 0, 80.0).reset() == 20.0
    assert Window(0, 0.0, 3, 80.0).reset() == 80.0


def test_the_library_is_loaded_with_the_first_limit() -> None:
    import subprocess
    import sys

    code = "import sys, isthmus.access.gate, isthmus.access.windows; print('limits' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_as_many_as_ask_at_once_get_exactly_what_there_is(at: list[float]) -> None:
    async def go() -> int:
        windows = count_here()
        return sum(await asyncio.gather(*(windows.take("k", 1, 64) for _ in range(640))))

    assert asyncio.run(go()) == 64
