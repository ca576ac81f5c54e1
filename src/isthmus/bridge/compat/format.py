"""Which output format the provider can be held to: native, a weaker one, or words alone.

In: `text.format`. Out: one decision; its effective value is `text`, `json_schema`, `json_object` or `prompt`.
The contract room carries it out: what is sent, what the model is told, how the answer is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from isthmus.bridge.capabilities import ResponseFormatSupport
from isthmus.bridge.compat.rules import rejected, supported
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.projection import project_schema
from isthmus.protocol.json import JsonObject

_PATH: Final = "text.format"
_LADDER: Final[Mapping[str, tuple[str, ...]]] = {
    "json_schema": ("json_schema", "json_object"),
    "json_object": ("json_object",),
}
"""What may stand in for a format, best first; below the last there is only the prompt."""


def plan_format(
    asked: Mapping[str, Any], formats: ResponseFormatSupport, *, sends_tools: bool = False, says_json: bool = True
) -> CompatibilityDecision:
    """Decide on `text.format`; `says_json` whether the conversation's opening speaks of JSON."""
    kind = asked["type"]
    if kind == "text":
        return supported(_PATH, effective_value="text")
    if kind not in _LADDER:
        return rejected(_PATH, f"`{kind}` is not a format; send `text`, `json_object` or `json_schema`")
    if not formats.with_tools and sends_tools:
        return _degraded(kind, "prompt", "the provider takes no response format together with tools")
    used = next((one for one in _LADDER[kind] if one in formats.supported), "prompt")
    if used != kind:
        return _degraded(kind, used, f"the provider has no `{kind}` format")
    if kind == "json_schema" and formats.strict_only and not (asked.get("strict") or _is_closed(asked.get("schema"))):
        return _degraded(kind, "prompt", "the provider takes strict schemas only, and this one leaves things open")
    if kind == "json_object" and formats.needs_word and not says_json:
        wanted = "the provider wants the word JSON in the messages of a request for plain JSON"
        return _degraded(kind, kind, wanted, "an instruction that says so was added")
    schema = asked.get("schema")
    moved: tuple[str, ...] = ()
    if kind == "json_schema" and formats.drop_keywords and isinstance(schema, dict):
        _, moved = project_schema(schema, formats.drop_keywords)
    if not moved:
        return supported(_PATH, effective_value=kind)
    refused = ", ".join(f"`{name}`" for name in moved)
    reason = f"the provider refuses {refused} in schemas; they move into the descriptions"
    facts = {"requested": kind, "moved_keywords": list(moved)}
    return CompatibilityDecision(_PATH, "degraded", reason, kind, metadata=facts)


def mentions_json(instructions: str | None, items: Sequence[JsonObject]) -> bool:
    """Whether the instructions, or all up to the first thing that the user says, speak of JSON. What comes later is not
    asked: an instruction that went away while a conversation grows would cost its cache."""
    if "json" in (instructions or "").lower():
        return True
    for item in items:
        if item["type"] == "message":
            content = item.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            if any("json" in str(part.get("text", "")).lower() for part in parts if isinstance(part, dict)):
                return True
            if item.get("role") == "user":
                return False
    return False


def _degraded(kind: str, used: str, why: str, sent: str = "") -> CompatibilityDecision:
    told = "the format is asked for in words" if used == "prompt" else f"`{used}` is sent, and the format told in words"
    sent = sent or told
    return CompatibilityDecision(_PATH, "degraded", f"{why}; {sent}", used, metadata={"requested": kind})


def _is_closed(schema: Any) -> bool:
    """Whether a strict reading of the schema means the same: each object names all its properties and needs them."""
    if isinstance(schema, Mapping):
        if "properties" in schema or schema.get("type") == "object":
            named = schema.get("properties")
            if schema.get("additionalProperties") is not False or not isinstance(named, Mapping):
                return False
            required = schema.get("required")
            if not isinstance(required, list) or not set(named) <= {name for name in required if isinstance(name, str)}:
                return False
        return all(map(_is_closed, schema.values()))
    return all(map(_is_closed, schema)) if isinstance(schema, list) else True
