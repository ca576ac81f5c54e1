"""The fixed loop that everything is compared with: the kinds of work that the core does, and none of its code.

It decodes JSON, calls a function, slices and joins text, makes frozen dataclasses and dicts, and encodes JSON. A change
here moves every CPU ratio: record the baseline anew after one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

_ITEMS: Final = 40
"""So few that one run is over before a busy machine takes the processor away, most of the time."""
_DOCUMENT: Final = msgspec.json.encode(
    [{"id": f"i{n}", "text": "some words " * 4, "n": n, "list": [1, 2, {"a": None}]} for n in range(_ITEMS)]
)


@dataclass(frozen=True, slots=True)
class _Fact:
    kind: str
    text: str


def reference() -> bytes:
    made = []
    for number, item in enumerate(msgspec.json.decode(_DOCUMENT)):
        fact = _read(item, number)
        if fact is not None:
            made.append({**item, "text": fact.text, "kind": fact.kind})
    return msgspec.json.encode(made)


def _read(item: dict[str, Any], number: int) -> _Fact | None:
    text = item["text"][number % 7 :] + str(number)
    if text.startswith("nothing"):
        return None
    return _Fact("words", text)
