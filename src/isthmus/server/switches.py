"""What an operator switched at one gateway, and all on its store have to do: capture everything for a while.

In: the deeds that the store remembers. Out: what the last of them says is done here, too, also by a gateway that starts
later. The key book's look at the store finds out that there are new ones (`access.book`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from isthmus.ports.keys import Deed, KeyBook
from isthmus.ports.traces import Tracing

CAPTURE: Final = "trace.capture"
"""The deed. Its details say how many seconds it is for, and whose requests, if not everybody's."""
MOST_LOOKED_AT: Final = 1000
"""Of the last deeds: a gateway that starts after as many others goes on as it is configured."""


def obeying(store: KeyBook, tracing: Tracing | None) -> Callable[[], Awaitable[None]] | None:
    """What to do when there are new deeds; `None`: there is nothing to switch."""
    if tracing is None:
        return None

    async def obey() -> None:
        deeds = await store.deeds(most=MOST_LOOKED_AT)
        last = next((deed for deed in deeds if deed.action == CAPTURE), None)
        if last is not None:
            tracing.capture_until(*_told(last))

    return obey


def _told(deed: Deed) -> tuple[float, str, str]:
    """Until when, and whose."""
    try:
        seconds = float(deed.details.get("seconds", "0"))
    except ValueError:  # written by another version
        seconds = 0.0
    return deed.at + seconds if seconds > 0 else 0.0, deed.details.get("owner", ""), deed.details.get("key", "")
