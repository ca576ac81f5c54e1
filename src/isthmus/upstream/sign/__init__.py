"""Who we are, where a fixed key in a header does not say it: requests that are signed, tokens that are kept fresh.

In: a request that is about to leave. Out: the headers that show who asks. The wire asks once for every time that bytes
go out, so a new attempt is signed anew. Each way lives in a file of its own that is imported only where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from isthmus.scrub import Secret

Answered = tuple[int, Mapping[str, str], bytes]
"""A token server's status, headers and body."""
Fetch = Callable[[str, str, Mapping[str, str], bytes | None], Coroutine[Any, Any, Answered]]
"""Method, address, headers, body: one exchange over our own wire."""


class Signer(Protocol):
    @property
    def secrets(self) -> Sequence[Secret]:
        """What the last headers were made with: nobody else may see it."""
        ...

    async def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """More headers for this very request, whose query is in the URL; `CannotSign` where there are none."""
        ...

    async def aclose(self) -> None: ...


class CannotSign(Exception):
    """Why there is nothing to show, in words that follow the provider's name, and the code of the failure."""

    def __init__(self, words: str, code: str = "upstream_unauthorized") -> None:
        super().__init__(words)
        self.words = words
        self.code = code
