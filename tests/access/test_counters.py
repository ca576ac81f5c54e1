"""What counts in this process never fails."""

from __future__ import annotations

from isthmus.access.counters import CountersHere


async def test_it_counts_with_the_same_pair_whatever_happens() -> None:
    counters = CountersHere()
    pair = counters.now()
    counters.failed(OSError())
    assert counters.now() is pair
    assert counters.errors == ()
    await counters.aclose()
    assert await pair.windows.take("k", 1, 1)
    assert not await counters.now().windows.take("k", 1, 1)
