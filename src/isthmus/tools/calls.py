"""A tool call as data, good or bad: what the model asked for, and what is wrong with it where something is.

In: an id, a name and argument text (or values). Out: a `ToolCall`. Worth knowing: a call that cannot be read is
still a call. It keeps the model's own text in `raw_arguments` and says in `error` why there are no `arguments`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn

from isthmus.errors import RequestRefused

CallErrorCode = Literal["malformed_json", "not_an_object", "missing_name", "incomplete"]


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call cannot be carried out as it stands."""

    code: CallErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model made."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None = None
    """`None` when they could not be read: see `error`."""
    raw_arguments: str = ""
    """Always what the model sent; for a call made by hand, the arguments as compact JSON."""
    error: CallError | None = None
    provider: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Opaque facts that travel with the call (signatures, `synthetic_id`, `original_id`)."""

    def __post_init__(self) -> None:
        if not self.raw_arguments and self.arguments is not None:
            object.__setattr__(self, "raw_arguments", _text_of(self.arguments))

    def same_as(self, other: ToolCall) -> bool:
        """Whether both ask for the same thing: name and arguments, whatever their spelling."""
        if self.name != other.name:
            return False
        if self.arguments is None or other.arguments is None:
            return self.arguments is other.arguments and self.raw_arguments == other.raw_arguments
        return canonical_json(self.arguments) == canonical_json(other.arguments)


EMPTY: Final[Mapping[str, Any]] = {}


def read_arguments(given: object) -> tuple[Mapping[str, Any] | None, str, CallError | None]:
    """Arguments in any form → the object, the raw text, and what is wrong.

    Nothing at all means no arguments (`{}`); anything else that is no JSON object is kept as text, with an error.
    """
    if given is None:
        return {}, "", None
    if isinstance(given, Mapping):
        try:
            return given, compact_json(given), None
        except RequestRefused as error:
            return None, str(dict(given)), CallError("malformed_json", error.message)
    if not isinstance(given, str):
        return None, _text_of(given), CallError("not_an_object", f"the arguments are {_kind(given)}, not an object")
    if not given.strip():
        return {}, given, None
    try:
        value = json.loads(given, parse_constant=_refuse_constant)
        if "\\ud" in given.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be sent on
    except (ValueError, RecursionError) as error:
        return None, given, CallError("malformed_json", f"the arguments are not valid JSON: {_reason(error)}")
    if not isinstance(value, dict):
        return None, given, CallError("not_an_object", f"the arguments are {_kind(value)}, not an object")
    return value, given, None


def make_call(
    id: str, name: str, given: object, *, provider: str | None = None, extra: Mapping[str, Any] = EMPTY
) -> ToolCall:
    """A call from what the wire says; a missing name or unreadable arguments become its `error`."""
    arguments, raw, error = read_arguments(given)
    if not name.strip():
        error = CallError("missing_name", "the call names no tool")
    return ToolCall(id, name, arguments, raw, error, provider, extra)


def compact_json(value: object) -> str:
    """One spelling for all: no spaces, letters as they are, keys in their order; NaN and Infinity are refused."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestRefused(
            f"`arguments` cannot be written as JSON ({_reason(error)}); use plain values, without NaN or Infinity",
            code="invalid_value",
            param="arguments",
        ) from error


def canonical_json(value: object) -> str:
    """The same text for equal values, whatever the order of their keys."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True, default=str)


def arguments_text(call: ToolCall) -> str:
    """What travels: compact JSON of the arguments, or the model's own text where there are none."""
    return call.raw_arguments if call.arguments is None else compact_json(call.arguments)


def spelled_arguments(call: ToolCall) -> str:
    """The model's own spelling as long as it still says the same: prompt caches go by bytes."""
    if call.arguments is None or read_arguments(call.raw_arguments)[0] == call.arguments:
        return call.raw_arguments or "{}"
    return compact_json(call.arguments)


def synthetic_id(index: int, name: str, arguments: str) -> str:
    """A stable id for a call that came without one."""
    digest = hashlib.sha1(f"{index}\0{name}\0{arguments}".encode("utf-8", "surrogatepass"), usedforsecurity=False)
    return f"call_{digest.hexdigest()[:12]}"


def _text_of(value: object) -> str:
    try:
        return compact_json(value)
    except RequestRefused:
        return str(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
