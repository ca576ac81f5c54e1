"""The page that walks one request: every place that it names exists."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from doc_pages import ROOT

PAGE = (ROOT / "docs" / "concepts" / "walk.md").read_text()
PLACES = sorted(set(re.findall(r"`(isthmus\.[\w.]+)`", PAGE)))


@pytest.mark.parametrize("place", PLACES)
def test_a_place_on_the_way_exists(place: str) -> None:
    assert _find(place) is not None


def test_the_page_walks_through_every_room_of_the_core() -> None:
    rooms = (
        "history",
        "tools",
        "compat",
        "contract",
        "dialects",
        "doors",
        "assemble",
        "turn",
        "plan",
        "sse",
        "lessons",
    )
    missing = [room for room in rooms if not any(place.startswith(f"isthmus.bridge.{room}") for place in PLACES)]
    assert not missing


def _find(place: str) -> Any:
    parts = place.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        return found
    return None
