"""What connections remember: the last turn of each lane, within bytes, and nothing after their end."""

from __future__ import annotations

from isthmus.gateway.local import LocalTurns

BIG = ((b"x" * 1000, False),)


def test_any_lane_finds_the_last_turn_of_any_other() -> None:
    mine = LocalTurns(100_000, 100_000).connect()
    mine.keep("a", "resp_1", ((b"1", True),))
    mine.keep("b", "resp_2", ((b"2", True),))
    mine.keep("a", "resp_3", ((b"1", False), (b"3", True)))
    assert (mine.find("resp_1"), mine.find("resp_2"), mine.find("resp_3")) == (
        None,
        ((b"2", True),),
        ((b"1", False), (b"3", True)),
    )


def test_another_connection_finds_nothing() -> None:
    all = LocalTurns(100_000, 100_000)
    all.connect().keep("", "resp_1", ((b"1", True),))
    assert all.connect().find("resp_1") is None


def test_a_failed_turn_costs_its_parent_in_its_own_lane_only() -> None:
    mine = LocalTurns(100_000, 100_000).connect()
    mine.keep("a", "resp_1", ((b"1", True),))
    mine.evict("b", "resp_1")
    mine.evict("a", "resp_other")
    assert mine.find("resp_1") is not None
    mine.evict("a", "resp_1")
    assert mine.find("resp_1") is None


def test_one_connection_has_so_much_and_the_oldest_goes_first() -> None:
    mine = LocalTurns(5_000, 100_000).connect()
    for lane in "abc":
        mine.keep(lane, f"resp_{lane}", BIG)
    assert [mine.find(f"resp_{lane}") for lane in "abc"] == [None, BIG, BIG]
    mine.keep("b", "resp_too_large", ((b"x" * 5_000, True),))
    assert [mine.find(id) for id in ("resp_too_large", "resp_b", "resp_c")] == [None, None, BIG]


def test_all_connections_have_so_much_and_the_oldest_goes_first() -> None:
    all = LocalTurns(100_000, 5_000)
    one, two = all.connect(), all.connect()
    one.keep("a", "resp_1", BIG)
    two.keep("a", "resp_2", BIG)
    one.keep("b", "resp_3", BIG)
    assert [one.find("resp_1"), two.find("resp_2"), one.find("resp_3")] == [None, BIG, BIG]


def test_the_end_of_a_connection_is_the_end_of_it() -> None:
    all = LocalTurns(100_000, 100_000)
    mine = all.connect()
    mine.keep("a", "resp_1", BIG)
    mine.keep("a", "resp_2", BIG)
    assert all.size == mine.size > 0
    mine.close()
    assert (mine.find("resp_2"), all.size) == (None, 0)
