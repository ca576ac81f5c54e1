"""Places of this process."""

from __future__ import annotations

from isthmus.access.places import PlacesHere


async def test_so_many_at_a_time_and_one_that_is_left_is_free() -> None:
    places = PlacesHere()
    assert [await places.enter("k", id, 2) for id in "abc"] == [True, True, False]
    assert await places.enter("another", "a", 2)
    await places.leave("k", "a")
    await places.leave("k", "a")
    await places.leave("k", "nobody")
    await places.leave("nowhere", "a")
    assert [await places.enter("k", id, 2) for id in "cd"] == [True, False]


async def test_what_nobody_is_in_is_forgotten() -> None:
    places = PlacesHere()
    for number in range(100):
        await places.enter(f"k{number}", "a", 1)
        await places.leave(f"k{number}", "a")
    assert places._taken == {}
