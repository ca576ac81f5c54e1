"""Requests of the real Claude Code, as they were seen on the wire; their texts are replaced by filler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
FOLDER = Path(__file__).parent / "recordings" / "claude-code"


class Recorded(NamedTuple):
    name: str
    path: str
    headers: dict[str, str]
    body: Json


def recorded_requests() -> list[Recorded]:
    found: list[Recorded] = []
    for file in sorted(FOLDER.glob("*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        several = told.get("requests") or [told["request"]]
        for number, request in enumerate(several):
            name = file.stem if len(several) == 1 else f"{file.stem}-{number}"
            headers = {key.lower(): value for key, value in request["headers"].items()}
            found.append(Recorded(name, request["path"], headers, request["body"]))
    return found


def recorded(name: str) -> Recorded:
    return next(one for one in recorded_requests() if one.name == name)
