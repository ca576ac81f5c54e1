"""A client of Anthropic's API is known by its path, or by the header that it sends everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.server.anthropic import speaks_messages


def scope(path: str, **headers: str) -> dict[str, Any]:
    return {
        "path": path,
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/messages", "/x/v1/messages", "/v1/messages/count_tokens", "/api/hello"]
)
def test_by_its_path(path: str) -> None:
    assert speaks_messages(scope(path))


def test_by_its_header() -> None:
    assert speaks_messages(scope("/v1/models", anthropic_version="2023-06-01"))


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/responses", "/v1/chat/completions/c/messages", "/v1/messages/more"]
)
def test_and_by_nothing_else(path: str) -> None:
    assert not speaks_messages(scope(path))
    assert not speaks_messages(scope(path, x_api_key="k"))
