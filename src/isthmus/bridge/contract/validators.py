"""Compiled JSON Schema validators, kept for the schemas that come again with every request.

In: a client's schema. Out: a validator, or a 400 that says what is wrong with the schema. Nothing is ever fetched:
a reference to another document is refused, whatever its scheme. `format` is checked, since a strict schema promises
it; formats that the validator does not know are let pass.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_KEPT: Final = 256
_LARGEST_KEPT: Final = 128 * 1024
"""Schemas above this many bytes are compiled anew each time: the cache stays small whatever clients send."""
_PARAM: Final = "text.format.schema"
_DRAFT: Final = re.compile(r"https?://json-schema\.org/(?:draft-0[467]/|draft/20(?:19-09|20-12)/)?schema#?")


def check_schema(schema: JsonObject | bool) -> None:
    """Refuse what is not a usable JSON Schema."""
    validator_for(schema)


def validator_for(schema: JsonObject | bool) -> Validator:
    """The validator of a schema; two spellings of one schema share it."""
    if isinstance(schema, dict) and "$schema" in schema and not _DRAFT.fullmatch(str(schema["$schema"])):
        # A made-up `$schema` says nothing about the keywords, so it is read as the newest draft.
        schema = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    try:
        canonical = msgspec.json.encode(schema, order="sorted")
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _refusal(str(error)) from error
    return _kept(canonical) if len(canonical) <= _LARGEST_KEPT else _compile(canonical)


def _compile(canonical: bytes) -> Validator:
    # Imported late: the library is a tenth of the start-up budget, and most requests have no schema.
    import jsonschema_rs

    try:
        # The text, not the object: numbers stay exact, and nothing of the client's object is held on to.
        return jsonschema_rs.validator_for(canonical.decode(), retriever=_refuse_to_fetch, validate_formats=True)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise _refusal(str(error).split("\n", 1)[0][:300]) from error


_kept = lru_cache(maxsize=_KEPT)(_compile)


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed: {uri}")


def _refusal(what: str) -> RequestRefused:
    return RequestRefused(
        f"`{_PARAM}` is not a JSON Schema that answers can be checked against: {what}; correct the schema",
        code="invalid_json_schema",
        param=_PARAM,
    )
