"""Room for one more: by what requests take, four times their bodies, and by the memory of the process."""

from __future__ import annotations

import pytest

from isthmus.config.schema import Limits
from isthmus.errors import IsthmusError
from isthmus.gateway.led import leads_to
from isthmus.observe.memory import Litter
from isthmus.observe.vitals import Vitals
from isthmus.server.room import Room


class Kept(Litter):
    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def dropped(self, size: int) -> None:
        self.sizes.append(size)


def test_bodies_share_one_sum_and_give_it_back() -> None:
    room = Room(Limits(max_serving=400, max_memory=0), None, 10)
    with room.take(60):
        with room.take(40):
            assert room.held == 400
        with pytest.raises(IsthmusError, match=r"240 bytes already \(`limits.max_serving`\)") as refused, room.take(41):
            pass
    assert refused.value.code == "server_is_overloaded"
    assert room.held == 0


def test_where_nothing_is_served_a_request_is_let_in_whatever_its_size() -> None:
    room = Room(Limits(max_serving=100, max_memory=1), Vitals(memory=lambda: 1_000_000), 10)
    with room.take(1000):
        assert room.held == 4000


def test_above_its_memory_a_process_takes_no_more_while_it_serves() -> None:
    vitals = Vitals(memory=lambda: 500)
    room = Room(Limits(max_serving=1000, max_memory=400), vitals, 10)
    with room.take(1):
        with pytest.raises(IsthmusError, match=r"500 bytes of memory \(`limits.max_memory`\)"), room.take(1):
            pass
        vitals.memory = 300
        with room.take(1):
            assert room.held == 8


def test_what_fails_gives_its_room_back() -> None:
    room = Room(Limits(max_serving=100, max_memory=0), None, 10)
    with pytest.raises(ValueError, match="no"), room.take(60):
        raise ValueError("no")
    assert room.held == 0


def test_what_requests_lead_to_is_counted_like_what_they_brought() -> None:
    room = Room(Limits(max_serving=400, max_memory=0), None, 10)
    with room.take(1), room.led():
        leads_to(1000)
        assert room.held == 4004, "alone: nothing but itself could make room for it"
    assert room.held == 0
    with room.take(10), room.take(10):
        with room.led():
            leads_to(80)
            assert room.held == 400
            with pytest.raises(IsthmusError, match=r"400 bytes already \(`limits.max_serving`\)"):
                leads_to(1)
            assert room.held == 400
        assert room.held == 80


def test_a_process_that_has_grown_meanwhile_reads_no_more_for_those_that_it_let_in() -> None:
    vitals = Vitals(memory=lambda: 300)
    room = Room(Limits(max_serving=1000, max_memory=400), vitals, 10)
    with room.take(1), room.take(1), room.led():
        leads_to(1)
        vitals.memory = 500
        with pytest.raises(IsthmusError, match=r"`limits.max_memory`"):
            leads_to(1)


def test_what_is_over_is_counted_as_litter_until_it_is_looked_for() -> None:
    room = Room(Limits(max_serving=400, max_memory=0), None, 10)
    room.litter = kept = Kept()
    with room.take(10), room.led():
        leads_to(5)
    assert kept.sizes == [20, 40]


def test_a_request_that_is_served_takes_its_place_its_room_and_that_of_what_it_leads_to() -> None:
    room = Room(Limits(max_serving=1000), None, places=2)
    with room.serve(10):
        assert (room.active, room.serving, room.held) == (1, 1, 40)
        leads_to(5)
        assert room.held == 60
        with room.serve(None):
            assert (room.active, room.serving, room.held) == (2, 1, 60)
            with pytest.raises(IsthmusError, match="max_concurrent"):
                room.check_places()
        with pytest.raises(IsthmusError, match="max_serving"), room.serve(1000):
            pass
        assert (room.active, room.serving, room.held) == (1, 1, 60)
    assert (room.active, room.serving, room.held) == (0, 0, 0)
