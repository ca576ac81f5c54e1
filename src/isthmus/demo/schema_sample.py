"""JSON to a schema: a small value that is valid, with the user's own words in it where they fit.

In: a JSON Schema and a `Supply` of words. Out: a value. It is checked with a real validator: where the
words do not fit, it is made again without them. References, combinations and bounds are followed;
the rest (`not`, `contains`, conditions, dependencies, look-around in patterns) is left to luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.contract.validators import pattern_limits
from isthmus.demo.scalar_sample import sample_number, sample_string
from isthmus.demo.schema_merge import branches_of, kind_of, resolve
from isthmus.demo.supply import Supply
from isthmus.protocol.json import JsonObject

_LEAN: Final = 4
"""From this depth on only what must be there is made, so that recursive schemas end."""
_DEEPEST: Final = 40
_MOST_VALUES: Final = 5_000
"""Values in one sample: a schema of a few lines can ask for more than the memory holds."""


def sample(schema: Any, supply: Callable[[], Supply] | None = None, *, full: bool = True) -> Any:
    """A value for `schema`. `full`: also what is optional; otherwise only what the words speak of."""
    attempts = [(supply() if supply else None, full), (None, full), (None, False)]
    value: Any = None
    for words, whole in attempts:
        value = _Sampler(schema, words, whole).make(schema, "", 0, 0)
        if _valid(schema, value):
            return value
    return value


class _Sampler:
    def __init__(self, root: Any, supply: Supply | None, full: bool) -> None:
        self._root = root
        self._supply = supply
        self._full = full
        self._room = _MOST_VALUES

    def make(self, schema: Any, name: str, depth: int, nth: int) -> Any:
        """A value for the field `name`; `nth` tells the items of one list apart."""
        if not isinstance(schema, Mapping):
            self._room -= 1
            return sample_string({}, self._supply, name, nth) if schema is not False else None
        if depth > _DEEPEST or self._room <= 0:
            return None
        self._room -= 1
        schema = resolve(schema, self._root)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                return self._branch(schema, keyword, name, depth, nth)
        if "const" in schema:
            return schema["const"]
        if isinstance(options := schema.get("enum"), list) and options:
            return self._option(schema, options, nth)
        return self._typed(schema, kind_of(schema), name, depth, nth)

    def _branch(self, schema: JsonObject, keyword: str, name: str, depth: int, nth: int) -> Any:
        """The first branch whose value the whole schema accepts."""
        value: Any = None
        for branch in branches_of(schema, keyword, self._root, lean=depth >= _LEAN):
            value = self.make(branch, name, depth + 1, nth)
            if _valid(schema, value, self._root):
                break
        return value

    def _option(self, schema: JsonObject, options: list[Any], nth: int) -> Any:
        found = self._supply.mentioned(options) if self._supply and not nth else None
        if found is not None:
            return found
        plain = {keyword: value for keyword, value in schema.items() if keyword != "enum"}
        fitting = [option for option in options if _valid(plain, option, self._root)] or options
        return fitting[nth % len(fitting)]

    def _typed(self, schema: JsonObject, kind: str, name: str, depth: int, nth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth, nth)
            case "array":
                return self._array(schema, name, depth, nth)
            case "integer" | "number":
                return sample_number(schema, self._supply, nth, whole=kind == "integer")
            case "boolean":
                return nth % 2 == 0
            case "null":
                return None
        return sample_string(schema, self._supply, name, nth)

    def _object(self, schema: JsonObject, depth: int, nth: int) -> JsonObject:
        properties = schema.get("properties") or {}
        names = self._chosen(schema, properties, depth)
        rest = schema.get("additionalProperties", True)
        made = {name: self.make(properties.get(name, rest or True), name, depth + 1, nth) for name in names}
        while len(made) < int(schema.get("minProperties") or 0) and self._room > 0:
            name = f"field_{len(made) + 1}"
            made[name] = self.make(properties.get(name, rest), name, depth + 1, nth)
        return made

    def _chosen(self, schema: JsonObject, properties: Mapping[str, Any], depth: int) -> list[str]:
        required = [name for name in schema.get("required") or () if isinstance(name, str)]
        full = self._full and depth < _LEAN
        optional = [
            name
            for name, inner in properties.items()
            if name not in required and inner is not False and (full or self._spoken_of(inner, depth))
        ]
        chosen = {*required, *optional}
        return [name for name in dict.fromkeys([*properties, *required]) if name in chosen]

    def _spoken_of(self, schema: Any, depth: int) -> bool:
        """Whether the text names one of the options of an optional field."""
        options = resolve(schema, self._root).get("enum") if isinstance(schema, Mapping) and depth < _LEAN else None
        return bool(self._supply and isinstance(options, list) and self._supply.mentioned(options) is not None)

    def _array(self, schema: JsonObject, name: str, depth: int, nth: int) -> list[Any]:
        first: Sequence[Any] = schema.get("prefixItems") or ()
        rest = schema.get("items", True)
        least, most = int(schema.get("minItems") or 0), int(schema.get("maxItems", 1_000))
        count = max(least, min(most, self._items(rest, len(first)) if depth < _LEAN else 0))
        made: list[Any] = []
        for at in range(count):
            inner = first[at] if at < len(first) else rest
            if inner is False or self._room <= 0:
                break
            made.append(self._item(inner, name, depth, nth, max(at - len(first), 0)))
        return made

    def _item(self, schema: Any, name: str, depth: int, nth: int, at: int) -> Any:
        """One item; things that stand in a list in the text also do so here."""
        listed = self._supply.words.listed if self._supply else ()
        if at < len(listed) and _valid(schema, listed[at], self._root):
            return listed[at]
        return self.make(schema, name, depth + 1, at + nth)

    def _items(self, items: Any, first: int) -> int:
        """How many items the words would fill: those of a list, or one."""
        if first or items is False:
            return first
        kind = kind_of(resolve(items, self._root)) if isinstance(items, Mapping) else "string"
        words = self._supply.words if self._supply else None
        if words is None:
            return 1
        return max(len(words.numbers) if kind in ("integer", "number") else len(words.listed), 1)


def _valid(schema: Any, value: Any, root: Any = None) -> bool:
    """What the validator says; a schema that it cannot read is not held against the value."""
    if isinstance(root, Mapping) and isinstance(schema, Mapping):
        shared = {name: root[name] for name in ("$defs", "definitions", "$schema") if name in root}
        schema = {**shared, **schema}
    import jsonschema_rs

    try:
        limits = pattern_limits(DEFAULT_BOUNDS.max_regex)
        validator = jsonschema_rs.validator_for(schema, validate_formats=True, pattern_options=limits)
        return bool(validator.is_valid(value))
    except (ValueError, TypeError):
        return True
