"""One gateway with one Codex process serves all tests that need nothing special."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from real.codex_backend.house import House, codex_house


@pytest.fixture(scope="session")
def _shared_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with codex_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def house(_shared_house: House) -> Iterator[House]:
    """The shared gateway, with an empty script; the test must leave nothing behind."""
    mine = House(_shared_house.server, _shared_house.upstream)
    try:
        yield mine
        mine.check()
    finally:
        mine.upstream._script.clear()
        mine.upstream.unexpected.clear()
        mine.upstream.failures.clear()
