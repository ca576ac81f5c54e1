"""Real client libraries against the real server, with a scripted upstream: nothing here leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from doc_pages import Gateway, running_gateway
from flowing import Flow, lent, running_flow

# Their telemetry must be off before the libraries are imported.
os.environ |= {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

NEEDS = {
    "test_agent_framework.py": "agent_framework_openai",
    "test_anthropic.py": "anthropic",
    "test_agents_on_claude.py": "agents",
    "test_compaction.py": "agents",
    "test_sockets.py": "agents",
    "test_conversations.py": "agents",
    "test_friction.py": "pydantic_ai",
    "test_pydantic_ai.py": "pydantic_ai",
    "test_hosted_mcp.py": "agents",
    "test_openai_agents.py": "agents",
    "test_openai_images.py": "agents",
    "test_web_search.py": "agents",
    "test_langchain.py": "langchain_openai",
    "test_openapi_validator.py": "openapi_spec_validator",
}
"""Libraries that not every environment has (the dependency group `real`)."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what cannot be imported, and what would be imported only to be deselected: that takes seconds."""
    package: Any = NEEDS.get(collection_path.name)
    if package is None:
        return None
    return True if config.option.markexpr == "not real" or find_spec(package) is None else None


@pytest.fixture(scope="session")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with running_flow(tmp_path_factory.mktemp("clients")) as flow:
        yield flow


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The one of a newcomer, for what pages show: a process, and the demo model."""
    with running_gateway(tmp_path_factory.mktemp("newcomer")) as gateway:
        yield gateway


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    """The shared gateway; the test must leave nothing behind."""
    with lent(_house) as mine:
        yield mine
