"""Schemas made plain: references followed, `allOf` folded in, branches joined with what stands around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from isthmus.protocol.json import JsonObject

_KINDS: Final = (
    ("object", ("properties", "required", "additionalProperties", "minProperties", "patternProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems")),
    ("string", ("minLength", "maxLength", "pattern", "format")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_LARGER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
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
        merged(around, resolve(branch, root)) if isinstance(branch, Mapping) else branch
        for branch in schema[keyword]
        if branch is not False
    ]
    branches = [around if branch is True else branch for branch in branches]
    weights = ("null", "boolean", "integer", "number", "string", "array", "object")
    if lean:
        return sorted(branches, key=lambda branch: weights.index(kind_of(branch)))
    return sorted(branches, key=lambda branch: kind_of(branch) == "null")


def merged(one: Mapping[str, Any], other: Any) -> JsonObject:
    """What satisfies both, as far as one schema can say it."""
    if not isinstance(other, Mapping):
        return dict(one)
    both = dict(one)
    for keyword, value in other.items():
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
    found = root
    if not reference.startswith("#"):
        return {}
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
    if keyword in _LARGER:
        return max(one, other)
    if keyword in _SMALLER:
        return min(one, other)
    match keyword:
        case "properties" | "$defs" | "definitions":
            names = {**one, **other}
            return {
                name: merged(one[name], other[name])
                if name in one and name in other and isinstance(one[name], Mapping)
                else names[name]
                for name in names
            }
        case "required":
            return [*one, *(name for name in other if name not in one)]
        case "enum":
            return [option for option in one if option in other]
        case "type":
            return _shared_type(one, other)
        case "allOf":
            return [*one, *other]
        case "additionalProperties":
            return merged(one, other) if isinstance(one, Mapping) and isinstance(other, Mapping) else one and other
        case "items" if isinstance(one, Mapping) and isinstance(other, Mapping):
            return merged(one, other)
        case "multipleOf":
            return one * other
    return other


def _shared_type(one: Any, other: Any) -> Any:
    kinds = one if isinstance(one, list) else [one]
    others = other if isinstance(other, list) else [other]
    shared = [kind for kind in kinds if kind in others]
    if not shared and {*kinds, *others} >= {"integer", "number"}:
        shared = ["integer"]
    return shared[0] if len(shared) == 1 else shared or other
