"""What a vendor wants is data with gaps; here they are filled.

In: a template as it stands in a file, and a reader of options by name. Out: the values to send. In a template

- a string `"{option}"` is replaced by the option's value, and its key is left out when there is none;
- a table with the single key `"{option}"` is a choice: `{ "{search_context_size}" = { high = 5, "*" = 3 } }`
  picks by the option's value, `"*"` for any other or none;
- everything else is sent as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isthmus.protocol.json import JsonObject, without_nulls

ReadOption = Callable[[str], Any]


def fill_template(template: Mapping[str, Any], read: ReadOption) -> JsonObject:
    return without_nulls({key: _fill(value, read) for key, value in template.items()})


def _fill(value: Any, read: ReadOption) -> Any:
    if isinstance(value, str):
        name = _placeholder(value)
        return value if name is None else read(name)
    if not isinstance(value, Mapping):
        return value
    chosen = _placeholder(next(iter(value))) if len(value) == 1 else None
    if chosen is None:
        return fill_template(value, read)
    cases: Mapping[str, Any] = value[f"{{{chosen}}}"]
    return cases.get(str(read(chosen)), cases.get("*"))


def _placeholder(text: str) -> str | None:
    return text[1:-1] if len(text) > 2 and text[0] == "{" and text[-1] == "}" and text[1:-1].isidentifier() else None
