"""The profile names rooms of ours and libraries, and leaves out the load itself."""

from __future__ import annotations

import pytest
from bench.gateways.profile import room_of, shares


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("/x/src/isthmus/gateway/gateway.py", "gateway"),
        ("/x/src/isthmus/log.py", "log"),
        ("/x/.venv/lib/python3.11/site-packages/aiohttp/client.py", "aiohttp"),
        ("/usr/lib/python3.11/asyncio/base_events.py", "asyncio"),
        ("/x/bench/gateways/client.py", "bench"),
        ("uvloop/loop.pyx", "the loop"),
    ],
)
def test_a_file_belongs_to_its_room(file: str, room: str) -> None:
    assert room_of(file) == room


def test_the_shares_of_a_request_add_up_to_nearly_all_of_it() -> None:
    (told,) = shares(["small, whole"]).values()
    assert {"bridge", "server", "gateway"} <= told.keys()
    assert "bench" not in told
    assert 0.85 < sum(told.values()) <= 1.01
