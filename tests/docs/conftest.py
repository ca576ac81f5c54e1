"""One gateway for all pages: `isthmus serve` as a process, the way `make run` starts it, on a free port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from doc_pages import Gateway, running_gateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("newcomer")) as gateway:
        yield gateway


@pytest.fixture
def own_gateway(tmp_path: Path) -> Iterator[Gateway]:
    """For a page that shows what was asked before: nobody else may have asked anything."""
    with running_gateway(tmp_path) as gateway:
        yield gateway
