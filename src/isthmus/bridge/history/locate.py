"""Where a kind of content stands in a request: for whoever has to say so after a server refused it.

In: the items of a request and a kind (`image`, `audio`, `video`, `file`). Out: the path of the first such part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.bridge.history.fitting import media_kind
from isthmus.bridge.history.parts import read_parts
from isthmus.bridge.types.history import Words, item_path


def locate_content(kind: str, items: Sequence[Mapping[str, Any]], history: Sequence[Mapping[str, Any]]) -> str | None:
    """`input[0].content[1]`; `history[…]` where only an earlier turn has such a part."""
    stored = len(history)
    for index, item in [*enumerate(items, stored), *enumerate(history)]:
        for field in ("content", "output"):
            for part in read_parts(item.get(field), f"{item_path(index, stored)}.{field}", []):
                if not isinstance(part, Words) and media_kind(part) == kind:
                    return part.path
    return None
