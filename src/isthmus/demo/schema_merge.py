"""Schemas made plain: references followed, `allOf` folded in, branches joined with what stands around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from isthmus.protocol.json import JsonObject

_KINDS: Final = (
    ("object", ("properties", "required", "additionalProperties", "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems")),
    ("string", ("minLength", "maxLength", "pattern", "format")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_WEIGHTS: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_FURTHEST: Final = 30


def resolve(schema: Mapping[str, Any], root: Any) -> JsonObject:
    """The schema with its reference and its `allOf` folded in."""
    plain = dict(schema)
    for _ in range(_FURTHEST):
        if isinstance(reference := plain.pop("$ref", None), str):
            plain = merged(_find(reference, root), plain)
        elif isinstance(parts := plain.pop("allOf", None), list):
            for part in parts:
                plain = merged(plain, part)
        else:
            break
    return plain


def branches_of(schema: JsonObject, keyword: str, root: Any, *, lean: bool) -> list[Any]:
    """Each branch with what stands around it; when `lean`, the small ones first."""
    around = {name: value for name, value in schema.items() if name != keyword}
    branches = [
        merged(around, resolve(branch, root)) if isinstance(branch, Mapping) else around
        for branch in schema[keyword]
        if branch is not False
    ]
    return sorted(branches, key=lambda one: _WEIGHTS.index(kind_of(one)) if lean else kind_of(one) == "null")


def merged(one: Mapping[str, Any], other: Any) -> JsonObject:
    """What satisfies both, as far as one schema can say it."""
    both = dict(one)
    for keyword, value in other.items() if isinstance(other, Mapping) else ():
        both[keyword] = _joined(keyword, both[keyword], value) if keyword in both else value
    return both


def kind_of(schema: Any) -> str:
    """The type to make: the first that is not null, or what the keywords speak of."""
    if not isinstance(schema, Mapping):
        return "string"
    given = schema.get("type")
    if isinstance(given, list):
        return next((kind for kind in given if kind != "null"), "null")
    if isinstance(given, str):
        return given
    return next((kind for kind, words in _KINDS if any(word in schema for word in words)), "string")


def _find(reference: str, root: Any) -> Mapping[str, Any]:
    """A place inside the same document; anything else says nothing."""
    found = root if reference.startswith("#") else None
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _joined(keyword: str, one: Any, other: Any) -> Any:
    if one == other:
        return one
    match keyword:
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
            return max(one, other)
        case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems":
            return min(one, other)
        case "properties":
            return {**one, **{name: merged(one[name], each) if name in one else each for name, each in other.items()}}
        case "required" | "allOf":
            return [*one, *(each for each in other if each not in one)]
        case "enum":
            return [option for option in one if option in other]
        case "type":
            kinds, others = (given if isinstance(given, list) else [given] for given in (one, other))
            shared = [kind for kind in kinds if kind in others]
            return shared or ("integer" if {*kinds, *others} >= {"integer", "number"} else other)
        case "additionalProperties" | "items":
            return merged(one, other) if isinstance(one, Mapping) and isinstance(other, Mapping) else one and other
        case "multipleOf":
            return one * other
    return other
