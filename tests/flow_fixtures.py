"""Servers are shared by the tests that need the same settings; every test starts with an empty script and must
leave nothing behind: no step unused, no request unexpected, no run still going.

A `conftest.py` takes them in: `from flow_fixtures import _house, flow, special`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flowing import Flow, lent, running_flow


@pytest.fixture(scope="session")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with running_flow(tmp_path_factory.mktemp("flows")) as flow:
        yield flow


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    """The shared gateway with default settings and a SQLite store."""
    with lent(_house) as mine:
        yield mine


@pytest.fixture
def special(tmp_path: Path) -> Iterator[Callable[..., Flow]]:
    """A gateway of this test's own, for other settings."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Flow:
            return stack.enter_context(running_flow(tmp_path, **settings))

        yield make
