"""Which drafts are so small that their trace is made at once, by whoever puts them.

To make a small trace takes some 20 µs. To hold on to everything that it is made of until the thread comes to it takes
more: the search for garbage looks at it again, and the thread finds nothing of it in its caches. What may take longer
than that (a long body, a long history, what tools have said, all content) waits for the thread; so does the answer of
each, whose length nobody knows.
"""

from __future__ import annotations

from typing import Final

from isthmus.observe.traces.draft import Draft

SMALL: Final = 65_536
"""Bytes that a draft may hold on to."""
_USUAL: Final = 3
"""What happens to a request that is asked once: it is sent, accepted, perhaps checked."""


def is_small(draft: Draft) -> bool:
    """Nobody knows how long a history is, nor what was asked for in a request that is gone."""
    planned, ended = draft.planned, draft.ended
    if draft.weight > SMALL or draft.full or (ended is not None and len(ended.steps) > _USUAL):
        return False
    return planned is None or (not planned.history and draft.answered is not None)
