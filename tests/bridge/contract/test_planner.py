from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.capabilities import ProviderCapabilities, ResponseFormatSupport
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.contract.planner import plan_output_contract
from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import LIBRARY, NO_CONTRACT, Host, OutputContract
from isthmus.errors import RequestRefused

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"z": {"type": "integer", "minimum": 1}, "a": {"type": "string"}},
    "required": ["z"],
    "additionalProperties": False,
}
NATIVE = ("text", "json_object", "json_schema")
OBJECT = ("text", "json_object")
WORDS = ("text",)


def contract(
    asked: dict[str, Any] | None, supported: tuple[str, ...], host: Host = LIBRARY, **support: Any
) -> OutputContract:
    formats = ResponseFormatSupport(supported=frozenset(supported), **support)
    request = parse_request({"model": "m", "input": "hi", "text": {"format": asked}})
    plan = plan_bridge_compatibility(request, ProviderCapabilities(response_formats=formats), host)
    return plan_output_contract(request, plan, formats)


def schema_format(**more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "name": "thing", "schema": SCHEMA, **more}


@pytest.mark.parametrize(
    ("asked", "supported", "mode", "send_type", "told", "binding", "held"),
    [
        pytest.param(None, NATIVE, "none", None, False, False, False, id="nothing asked"),
        pytest.param({"type": "text"}, NATIVE, "none", None, False, False, False, id="text"),
        pytest.param({"type": "json_object"}, OBJECT, "native", "json_object", False, False, False, id="json_object"),
        pytest.param({"type": "json_object"}, WORDS, "prompt", None, True, False, False, id="json_object in words"),
        pytest.param(schema_format(strict=True), NATIVE, "native", "json_schema", False, True, False, id="native"),
        pytest.param(schema_format(), NATIVE, "native", "json_schema", False, False, False, id="native, not strict"),
        pytest.param(
            schema_format(strict=True), OBJECT, "json_object", "json_object", True, True, True, id="degraded, strict"
        ),
        pytest.param(
            schema_format(strict=False), OBJECT, "json_object", "json_object", True, False, False, id="degraded"
        ),
        pytest.param(schema_format(strict=True), WORDS, "prompt", None, True, True, True, id="in words, strict"),
        pytest.param(schema_format(), WORDS, "prompt", None, True, False, False, id="in words"),
    ],
)
def test_the_contract_carries_out_the_decision(
    asked: dict[str, Any] | None,
    supported: tuple[str, ...],
    mode: str,
    send_type: str | None,
    told: bool,
    binding: bool,
    held: bool,
) -> None:
    made = contract(asked, supported)
    assert made.mode == mode
    assert (made.send or {}).get("type") == send_type
    assert bool(made.instruction) is told
    assert (made.requires_valid_json, made.held) == (binding, held)
    assert made.schema == (asked or {}).get("schema")
    assert "JSON" in made.instruction or not told


def test_a_native_format_is_sent_in_neutral_shape() -> None:
    assert contract(schema_format(strict=True, description="d"), NATIVE).send == {
        "type": "json_schema",
        "name": "thing",
        "description": "d",
        "schema": SCHEMA,
        "strict": True,
    }


def test_a_native_format_leaves_out_what_was_not_given_but_always_has_a_name() -> None:
    assert contract({"type": "json_schema", "schema": True}, NATIVE).send == {
        "type": "json_schema",
        "name": "response",
        "schema": {},
    }


def test_refused_keywords_are_projected_for_the_provider_and_kept_for_the_check() -> None:
    made = contract(schema_format(strict=True), NATIVE, drop_keywords=frozenset({"minimum"}))
    assert made.send is not None
    assert made.send["schema"]["properties"]["z"] == {"type": "integer", "description": "(minimum: 1)"}
    assert made.schema == SCHEMA


def test_the_instruction_has_the_schema_name_description_and_schema_as_compact_json_in_the_clients_order() -> None:
    made = contract(schema_format(description="A thing."), OBJECT)
    assert "thing" in made.instruction
    assert "A thing." in made.instruction
    assert msgspec.json.encode(SCHEMA).decode() in made.instruction
    assert made.instruction.index('"z"') < made.instruction.index('"a"')
    assert contract(schema_format(description="A thing."), OBJECT) == made


def test_the_instruction_says_when_it_is_strict() -> None:
    strict, lenient = contract(schema_format(strict=True), WORDS), contract(schema_format(), WORDS)
    assert strict.instruction.startswith(lenient.instruction)
    assert strict.instruction != lenient.instruction


def test_a_rejected_format_makes_no_contract() -> None:
    assert contract({"type": "grammar"}, WORDS) is NO_CONTRACT


def test_a_schema_format_without_schema_is_refused() -> None:
    with pytest.raises(RequestRefused, match=r"text\.format\.schema") as refused:
        contract({"type": "json_schema", "name": "n"}, OBJECT)
    assert (refused.value.code, refused.value.param) == ("missing_required_parameter", "text.format.schema")
