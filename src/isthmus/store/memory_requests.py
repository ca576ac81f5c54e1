"""Named requests in memory, the most recent ones."""

from __future__ import annotations

from typing import Final

from isthmus.ports import LOCAL, NamedRequest

MAX_REQUESTS: Final = 100_000
"""Beyond that the oldest go: memory is no place for more."""


class MemoryRequests:
    """`ports.NamedRequests`, for the store to have."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: dict[tuple[str, str], NamedRequest] = {}
        """The oldest first."""

    async def name_request(self, name: str, request: NamedRequest, *, owner: str = LOCAL, since: float = 0.0) -> None:
        self._requests.pop((owner, name), None)
        self._requests[owner, name] = request
        while (oldest := next(iter(self._requests.items())))[1].at < since or len(self._requests) > MAX_REQUESTS:
            del self._requests[oldest[0]]
            if not self._requests:
                break

    async def named_request(self, name: str, *, owner: str = LOCAL, since: float = 0.0) -> NamedRequest | None:
        found = self._requests.get((owner, name))
        return found if found is not None and found.at >= since else None
