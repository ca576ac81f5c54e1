from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.projection import project_schema


@pytest.mark.parametrize(
    ("schema", "refused", "projected", "found"),
    [
        pytest.param({"type": "integer"}, {"minimum"}, {"type": "integer"}, (), id="nothing refused is there"),
        pytest.param(
            {"type": "integer", "minimum": 3},
            {"minimum"},
            {"type": "integer", "description": "(minimum: 3)"},
            ("minimum",),
            id="a keyword moves into a description of its own",
        ),
        pytest.param(
            {"type": "integer", "description": "Age.", "minimum": 3, "maximum": 9},
            {"minimum", "maximum"},
            {"type": "integer", "description": "Age. (minimum: 3; maximum: 9)"},
            ("minimum", "maximum"),
            id="keywords join the description",
        ),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
            {"$schema"},
            {"type": "object"},
            ("$schema",),
            id="what says nothing about the value goes without a word",
        ),
        pytest.param(
            {"properties": {"minimum": {"type": "integer", "minimum": 1}}},
            {"minimum"},
            {"properties": {"minimum": {"type": "integer", "description": "(minimum: 1)"}}},
            ("minimum",),
            id="a property named like a keyword stays",
        ),
        pytest.param(
            {"anyOf": [{"items": {"pattern": "a"}}, True], "enum": [{"pattern": "b"}]},
            {"pattern"},
            {"anyOf": [{"items": {"description": '(pattern: "a")'}}, True], "enum": [{"pattern": "b"}]},
            ("pattern",),
            id="only places that hold schemas are walked",
        ),
    ],
)  # fmt: skip
def test_refused_keywords_move_into_descriptions(
    schema: dict[str, Any], refused: set[str], projected: dict[str, Any], found: tuple[str, ...]
) -> None:
    before = repr(schema)
    assert project_schema(schema, frozenset(refused)) == (projected, found)
    assert repr(schema) == before
