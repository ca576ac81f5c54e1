from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities, ResponseFormatSupport
from isthmus.bridge.compat import plan_bridge_compatibility
from isthmus.bridge.parse import parse_request

ALONE = ProviderCapabilities(
    response_formats=ResponseFormatSupport(
        supported=frozenset({"text", "json_object", "json_schema"}),
        with_tools=False,
        drop_keywords=frozenset({"pattern"}),
    )
)
TOOL = {"type": "function", "name": "f", "parameters": {}}


@pytest.mark.parametrize(
    ("fields", "effective"),
    [
        pytest.param({}, "json_schema", id="no tools"),
        pytest.param({"tools": []}, "json_schema", id="an empty list"),
        pytest.param({"tools": [TOOL]}, "prompt", id="with tools"),
        pytest.param({"tools": [TOOL], "tool_choice": "none"}, "json_schema", id="tools that are not sent"),
    ],
)
def test_a_format_that_excludes_tools_is_asked_for_in_words(fields: dict[str, Any], effective: str) -> None:
    asked = {"type": "json_schema", "schema": {"type": "object"}}
    request = parse_request({"model": "m", "input": "hi", "text": {"format": asked}, **fields})
    decision = plan_bridge_compatibility(request, ALONE).decision("text.format")
    assert decision is not None
    assert decision.effective_value == effective
    assert decision.action == ("supported" if effective == "json_schema" else "degraded")


def test_refused_schema_keywords_are_named() -> None:
    asked = {"type": "json_schema", "schema": {"properties": {"a": {"pattern": "x"}}}}
    request = parse_request({"model": "m", "input": "hi", "text": {"format": asked}})
    decision = plan_bridge_compatibility(request, ALONE).decision("text.format")
    assert decision is not None
    assert (decision.action, decision.effective_value) == ("degraded", "json_schema")
    assert "`pattern`" in decision.reason
    assert decision.metadata["moved_keywords"] == ["pattern"]
