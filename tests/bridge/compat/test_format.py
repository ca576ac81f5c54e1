from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities, ResponseFormatSupport
from isthmus.bridge.compat.planner import plan_bridge_compatibility
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


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict", "effective"),
    [
        pytest.param(CLOSED, None, "json_schema", id="closed"),
        pytest.param({"$defs": {"d": CLOSED}, **CLOSED}, False, "json_schema", id="closed definitions"),
        pytest.param({"type": "object"}, True, "json_schema", id="asked to be strict"),
        pytest.param({"type": "object"}, None, "prompt", id="open"),
        pytest.param({**CLOSED, "required": []}, None, "prompt", id="an optional property"),
        pytest.param({**CLOSED, "additionalProperties": True}, None, "prompt", id="more properties"),
        pytest.param({**CLOSED, "properties": {"a": {"type": "object"}}}, None, "prompt", id="open inside"),
        pytest.param({**CLOSED, "required": [["a"]]}, None, "prompt", id="nonsense"),
    ],
)
def test_a_provider_of_strict_schemas_gets_those_that_mean_the_same_read_strictly(
    schema: Any, strict: bool | None, effective: str
) -> None:
    strict_only = ResponseFormatSupport(supported=frozenset({"text", "json_schema"}), strict_only=True)
    asked = {"type": "json_schema", "name": "n", "schema": schema, "strict": strict}
    request = parse_request({"model": "m", "input": "hi", "text": {"format": asked}})
    facts = ProviderCapabilities(response_formats=strict_only)
    decision = plan_bridge_compatibility(request, facts).decision("text.format")
    assert decision is not None
    assert decision.effective_value == effective
    assert decision.action == ("supported" if effective == "json_schema" else "degraded")
