"""`plan_output_contract`: the decision on `text.format`, carried out.

In: the request, its `CompatibilityPlan`, the provider's format rules. Out: an `OutputContract`.

    asked         decision    mode          sent                  told in words         binding
    text          –           none          nothing               nothing               no
    json_object   supported   native        json_object           nothing               no
    json_object   degraded    native        json_object           that it must be JSON  no
    json_object   degraded    prompt        nothing               that it must be JSON  no
    json_schema   supported   native        json_schema           nothing               when strict
    json_schema   degraded    json_object   json_object           the whole schema      when strict
    json_schema   degraded    prompt        nothing               the whole schema      when strict

Only a strict schema binds, as in the seeds; any other mismatch is a diagnostic, and the text stays as the model
wrote it. Plain JSON mode is never binding. Several vendors refuse it unless the word JSON stands in the messages:
the instruction that says it for the client is a change of the request, and the decision says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.bridge.capabilities import ResponseFormatSupport
from isthmus.bridge.contract.validators import PARAM, read_schema
from isthmus.bridge.diagnostics import CompatibilityPlan
from isthmus.bridge.parse import Request
from isthmus.bridge.projection import project_schema
from isthmus.bridge.types.plan import NO_CONTRACT, Mode, OutputContract
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

JSON_INSTRUCTION: Final = (
    "Give your final answer as one JSON object and nothing else: no words before or after it, no Markdown, "
    "no code fence."
)


def plan_output_contract(
    request: Request,
    plan: CompatibilityPlan,
    formats: ResponseFormatSupport,
    bounds: Bounds = DEFAULT_BOUNDS,
    *,
    assumed: bool = False,
) -> OutputContract:
    """Make the contract; a schema that is missing or larger than allowed is refused here. Whether it is a JSON Schema
    at all is for `AdmitSchema` to say: that takes compiling it. `assumed`: nobody knows whether this server heeds a
    format, so an answer is not shown before it was checked, as if there were none."""
    decision = plan.decision("text.format")
    asked: Mapping[str, Any] = (request.body.get("text") or {}).get("format") or {}
    kind = asked.get("type", "text")
    if decision is None or decision.action == "rejected" or kind == "text":
        return NO_CONTRACT
    effective = decision.effective_value
    mode: Mode = "native" if effective == kind else effective
    if kind == "json_object":
        send = {"type": "json_object"} if mode == "native" else None
        return OutputContract("json_object", mode, send, JSON_INSTRUCTION if decision.action == "degraded" else "")
    return _schema_contract(asked, mode, formats, bounds, assumed)


def _schema_contract(
    asked: Mapping[str, Any], mode: Mode, formats: ResponseFormatSupport, bounds: Bounds, assumed: bool
) -> OutputContract:
    schema = asked.get("schema")
    if schema is None:
        words = "`text.format.schema` is missing; give the `json_schema` format its schema, or send `json_object`"
        raise RequestRefused(words, code="missing_required_parameter", param=PARAM)
    canonical = read_schema(schema, bounds)
    strict = bool(asked.get("strict"))
    native = mode == "native"
    words = _instruction(asked, schema, strict) if not native or assumed else ""
    other: JsonObject | None = {"type": "json_object"} if mode == "json_object" else None
    return OutputContract(
        requested="json_schema",
        mode=mode,
        send=_native_format(asked, schema, formats) if native else other,
        instruction="" if native else words,
        schema=schema,
        strict=strict,
        requires_valid_json=strict,
        held=strict and (not native or assumed),
        reminder=words if strict and native else "",
        name=asked.get("name") or "",
        canonical=canonical,
        max_regex=bounds.max_regex,
    )


def _native_format(asked: Mapping[str, Any], schema: JsonObject | bool, formats: ResponseFormatSupport) -> JsonObject:
    if isinstance(schema, bool):
        shown: JsonObject = {} if schema else {"not": {}}
    else:
        shown = project_schema(schema, formats.drop_keywords)[0] if formats.drop_keywords else schema
    described = {"description": asked["description"]} if asked.get("description") else {}
    binding = {"strict": asked["strict"]} if asked.get("strict") is not None else {}
    return {"type": "json_schema", "name": asked.get("name") or "response", **described, "schema": shown, **binding}


def _instruction(asked: Mapping[str, Any], schema: JsonObject | bool, strict: bool) -> str:
    """The schema in words. The same request always gives the same bytes."""
    lines = [
        "Your final answer must be JSON that conforms to the JSON Schema below.",
        *(f"Format {field}: {asked[field]}" for field in ("name", "description") if asked.get(field)),
        "Rules:",
        "- Write exactly one JSON value: no words before or after it, no Markdown, no code fence, no comments.",
        "- Give every required property, with the type and the values that the schema allows, and no property "
        "that it forbids.",
        "- The schema describes the answer; do not repeat the schema itself.",
        "- Calling a tool is not the final answer: call it as usual.",
        "JSON Schema:",
        msgspec.json.encode(schema).decode(),
        "Your answer will be parsed and validated against this schema.",
        *(["An answer that does not validate is thrown away."] if strict else []),
    ]
    return "\n".join(lines)
