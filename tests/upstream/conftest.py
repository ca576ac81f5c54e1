"""The same questions for both clients: ours, and aiohttp's, which otherwise only serves ways through a proxy."""

from __future__ import annotations

import pytest

from isthmus.upstream.client import open_client
from isthmus.upstream.proxied.client import ProxiedClient


@pytest.fixture(params=["lean", "proxied"])
def either_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which one carries every request of the test."""
    chosen = open_client if request.param == "lean" else ProxiedClient
    monkeypatch.setattr("isthmus.upstream.wire.open_client", chosen)
    return str(request.param)
