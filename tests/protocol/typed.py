"""The fields of a TypedDict: `__required_keys__` does not see `NotRequired` where annotations are strings."""

from __future__ import annotations

from typing import Any, NotRequired, get_origin, get_type_hints


def fields_of(shape: Any) -> tuple[set[str], set[str]]:
    """All of them, and those that are required."""
    hints = get_type_hints(shape, include_extras=True)
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    bases = [base for base in getattr(shape, "__orig_bases__", ()) if hasattr(base, "__required_keys__")]
    loose = set() if shape.__total__ else set(shape.__annotations__)
    for base in bases:
        loose -= set(get_type_hints(base))
    return set(hints), set(hints) - optional - loose
