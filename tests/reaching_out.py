"""One question to an endpoint that is bound to fail."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.http import HttpBackend


async def failure(endpoint: Endpoint, body: dict[str, Any] | None = None) -> UpstreamFailed:
    """What it ends in, on entering or later."""
    backend = HttpBackend(endpoint)
    try:
        with pytest.raises(UpstreamFailed) as failed:
            async with backend.send(plan_for(), body or {}) as answer:
                async for _ in answer:
                    pass
        return failed.value
    finally:
        await backend.aclose()
