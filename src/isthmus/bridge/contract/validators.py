"""Compiled JSON Schema validators, kept for the schemas that come again with every request.

In: a client's schema. Out: a validator, or a 400 that says what is wrong with the schema. Nothing is ever fetched:
a reference to another document is refused, whatever its scheme. `format` is checked, since a strict schema promises
it; formats that the validator does not know are let pass. Compiling can take long and holds on to the interpreter:
a gateway calls this in its worker processes only.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds, check_bounds, check_bytes
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_KEPT: Final = 64
_LARGEST_KEPT: Final = 128 * 1024
"""Schemas above this many bytes are compiled anew each time: the cache stays small whatever clients send."""
_MOST_BACKTRACKS: Final = 1_000_000
"""Steps of a pattern with look-around; all others are matched in linear time."""
PARAM: Final = "text.format.schema"
_DRAFT: Final = re.compile(r"https?://json-schema\.org/(?:draft-0[467]/|draft/20(?:19-09|20-12)/)?schema#?")


def read_schema(schema: JsonObject | bool, bounds: Bounds = DEFAULT_BOUNDS, *, param: str = PARAM) -> bytes:
    """The schema in canonical text (the same for all spellings), held against its bounds; nothing is compiled."""
    check_bounds(schema, bounds, param)
    if isinstance(schema, dict) and "$schema" in schema and not _DRAFT.fullmatch(str(schema["$schema"])):
        # A made-up `$schema` says nothing about the keywords, so it is read as the newest draft.
        schema = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    try:
        canonical = msgspec.json.encode(schema, order="sorted")
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _refuse(str(error)) from error
    check_bytes(len(canonical), bounds, param)
    return canonical


def validator_for(schema: JsonObject | bool, bounds: Bounds = DEFAULT_BOUNDS, *, param: str = PARAM) -> Validator:
    """The validator of a schema; two spellings of one schema share it."""
    return compile_schema(read_schema(schema, bounds, param=param), bounds.max_regex)


def compile_schema(canonical: bytes, max_regex: int) -> Validator:
    return (_kept if len(canonical) <= _LARGEST_KEPT else _compile)(canonical, max_regex)


def pattern_limits(max_regex: int) -> Any:
    """How the patterns of a schema are compiled: with look-around, and never into more than so many bytes."""
    import jsonschema_rs

    return jsonschema_rs.FancyRegexOptions(_MOST_BACKTRACKS, size_limit=max_regex, dfa_size_limit=max_regex)


def _refuse(what: str) -> RequestRefused:
    words = f"`{PARAM}` is not a JSON Schema that answers can be checked against: {what}; correct the schema"
    return RequestRefused(words, code="invalid_json_schema", param=PARAM)


def _compile(canonical: bytes, max_regex: int) -> Validator:
    # Imported late: the library is a tenth of the start-up budget, and most requests have no schema.
    import jsonschema_rs

    try:
        # The text, not the object: numbers stay exact, and nothing of the client's object is held on to.
        return jsonschema_rs.validator_for(
            canonical.decode(),
            retriever=_refuse_to_fetch,
            validate_formats=True,
            pattern_options=pattern_limits(max_regex),
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        said = str(error).split("\n", 1)[0][:300]
        if said.endswith('is not a "regex"'):
            said += f", or takes more than {max_regex:,} bytes once compiled (`checks.max_regex`)"
        raise _refuse(said) from error


_kept = lru_cache(maxsize=_KEPT)(_compile)


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed: {uri}")
