"""Real client libraries against the real server, with a scripted upstream: nothing here leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

# Their own telemetry must be off before the libraries are imported.
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"

import pytest

from flowing import Flow, lent, running_flow


@pytest.fixture(scope="session")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with running_flow(tmp_path_factory.mktemp("clients")) as flow:
        yield flow


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine
