from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.world import World


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.param)
    yield made
    made.close()
