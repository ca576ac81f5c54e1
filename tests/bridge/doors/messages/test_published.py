"""The published tools as functions: every schema is one that providers take."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from isthmus.bridge.doors.messages.published import PUBLISHED

Json = dict[str, Any]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_schema_is_closed_and_valid(name: str) -> None:
    words, schema = PUBLISHED[name]({})
    assert words
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert jsonschema_rs.validator_for(schema) is not None


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("bash", {"command": "ls"}),
        ("bash", {"restart": True}),
        ("text_editor", {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}),
        ("text_editor", {"command": "view", "path": "a", "view_range": [1, 2]}),
        ("memory", {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}),
        ("computer", {"action": "left_click", "coordinate": [1, 2]}),
        ("computer", {"action": "screenshot"}),
    ],
)
def test_what_the_client_runs_fits_the_schema(name: str, given: Json) -> None:
    jsonschema_rs.validator_for(PUBLISHED[name]({})[1]).validate(given)


def test_the_clients_own_limits_are_told() -> None:
    assert "10 by 20" in PUBLISHED["computer"]({"display_width_px": 10, "display_height_px": 20})[0]
    assert "500" in PUBLISHED["text_editor"]({"max_characters": 500})[0]
