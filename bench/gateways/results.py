"""The figures of the last runs, as they are kept: `bench/results/own.json`, `peers.json`, `growth.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

PLACE: Final = Path(__file__).parents[1] / "results"


def write(name: str, told: dict[str, Any], place: Path = PLACE) -> None:
    place.mkdir(exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def read(name: str, place: Path = PLACE) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((place / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found
