"""Tool calls may stand in several places of one message: here they become one list, and nothing is lost in silence.

In: our `Message`, or a plain object in any wire's form (snake or camel), or a list of Responses items.
Out: the calls, where they came from, what did not agree and what could not be used.

The rules. Unified calls come first; an empty list of them says nothing, so the next place is looked at. Where
two places hold calls they are matched by id: equal ones are one call, different ones are a conflict that the first
place wins, and ids that only the later place has are appended. Only assistant messages make calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

from isthmus.client.forms import form_of, looks_like_call, read_call, write_call
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.tools.calls import ToolCall
from isthmus.tools.messages import Message

Malformed = Literal["keep", "skip", "raise"]
Existing = Literal["overwrite", "merge", "keep"]
MessageLike = Message | Mapping[str, Any] | Sequence[Mapping[str, Any]]
M = TypeVar("M", Message, Mapping[str, Any], dict[str, Any])


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two places gave the same id to different calls."""

    id: str
    kept: ToolCall
    other: ToolCall
    source: str
    """The place that lost."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry that is not among the calls, and why."""

    source: str
    index: int
    value: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    calls: tuple[ToolCall, ...] = ()
    source: str = "none"
    """The place that came first: `unified`, `metadata`, `chat`, `responses`, `anthropic`, `gemini` or `none`."""
    conflicts: tuple[Conflict, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def reconcile(message: MessageLike, *, malformed: Malformed = "keep", any_role: bool = False) -> Reconciliation:
    """All calls of a message, with an account of how they were found."""
    calls: dict[str, ToolCall] = {}
    extra: list[ToolCall] = []
    conflicts: list[Conflict] = []
    dropped: list[Dropped] = []
    first = "none"
    speaks = any_role or _is_assistant(message)
    for source, entries in _places(message):
        found: list[ToolCall] = []
        for index, entry in enumerate(entries):
            problem, call = _judge(entry, index, malformed) if speaks else ("only assistant messages make calls", None)
            if call is None:
                if malformed == "raise":
                    raise _refusal(source, index, problem)
                dropped.append(Dropped(source, index, entry, problem))
            else:
                found.append(call)
        if first == "none" and found:
            first = source
            _take(found, calls, extra)
        elif found:
            conflicts += _join(found, source, calls)
    return Reconciliation((*calls.values(), *extra), first, tuple(conflicts), tuple(dropped))


def extract_tool_calls_from_message(
    message: MessageLike, *, malformed: Malformed = "keep", any_role: bool = False
) -> list[ToolCall]:
    """The calls of a message, in their order.

    `malformed` says what becomes of calls that cannot be carried out: `keep` them with their `error`,
    `skip` them, or `raise` a `RequestRefused`.
    """
    return list(reconcile(message, malformed=malformed, any_role=any_role).calls)


extract_tool_calls = extract_tool_calls_from_message


def format_tool_call_for_extraction(
    calls: ToolCall | Mapping[str, Any] | Sequence[ToolCall | Mapping[str, Any]], *, include_type: bool = False
) -> list[JsonObject]:
    """Calls in OpenAI's raw form, `{"id", "function": {"name", "arguments"}}`, arguments as compact JSON text.

    Arguments that could not be read are written as the model wrote them. NaN and Infinity are refused.
    """
    given = [calls] if isinstance(calls, ToolCall | Mapping) else list(calls)
    written: list[JsonObject] = []
    for index, entry in enumerate(given):
        call = read_call(entry, index)
        if call is None:
            raise _refusal("calls", index, "it is not a tool call")
        written.append(write_call(call, "chat", include_type=include_type))
    return written


format_tool_calls_for_extraction = format_tool_call_for_extraction


def prepare_tool_call_message(message: M, *, existing: Existing = "overwrite") -> M:
    """The message with its calls in `metadata.tool_calls`, too; the same object when there is nothing to do.

    `existing` says what happens to raw calls that are already there: `overwrite` them, `merge` them by id,
    or `keep` them. A message whose calls cannot be written comes back as it is.
    """
    unified = [call for _, entries in _unified(message) for call in _readable(entries)]
    if not unified:
        return message
    metadata = _metadata(message)
    present = metadata.get("tool_calls")
    if existing == "keep" and present:
        return message
    try:
        raw = format_tool_call_for_extraction(unified)
    except RequestRefused:
        return message
    if existing == "merge" and isinstance(present, Sequence):
        ids = {call.id for call in unified}
        raw += [entry for entry in present if not (isinstance(entry, Mapping) and entry.get("id") in ids)]
    if present == raw:
        return message
    prepared = {**metadata, "tool_calls": raw}
    if isinstance(message, Message):
        return replace(message, metadata=prepared)
    return cast(M, {**message, "metadata": prepared})


# ── where calls may stand ──────────────────────────────────────────────────────────────────────────


def _places(message: MessageLike) -> Iterator[tuple[str, Sequence[object]]]:
    yield from _unified(message)
    if isinstance(message, Message | Mapping):
        metadata = _metadata(message)
        for key in ("tool_calls", "toolCalls"):
            if isinstance(metadata.get(key), list | tuple):
                yield "metadata", metadata[key]
    if isinstance(message, Mapping):
        content = message.get("content")
        parts = content.get("parts") if isinstance(content, Mapping) else message.get("parts")
        for entries in (content, parts, message.get("output")):
            yield from _blocks(entries)
        if looks_like_call(message):
            yield form_of(message), [message]
    elif not isinstance(message, Message):
        yield from _blocks(message)


def _unified(message: MessageLike) -> Iterator[tuple[str, Sequence[object]]]:
    if isinstance(message, Message):
        yield "unified", message.tool_calls
    elif isinstance(message, Mapping):
        for key in ("toolCalls", "tool_calls"):
            entries = message.get(key)
            if isinstance(entries, list | tuple):
                yield (form_of(entries[0]) if entries else "unified"), entries


def _blocks(entries: object) -> Iterator[tuple[str, Sequence[object]]]:
    """The calls among content blocks, parts or items: what else stands there is no concern of ours."""
    if isinstance(entries, list | tuple):
        found = [entry for entry in entries if looks_like_call(entry)]
        if found:
            yield form_of(found[0]), found


def _metadata(message: Message | Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = message.metadata if isinstance(message, Message) else message.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _is_assistant(message: MessageLike) -> bool:
    if isinstance(message, Message):
        return message.role == "assistant"
    if not isinstance(message, Mapping):
        return True
    content = message.get("content")
    role = message.get("role") or (content.get("role") if isinstance(content, Mapping) else None)
    return role in (None, "assistant", "model")


# ── one list out of several ────────────────────────────────────────────────────────────────────────


def _judge(entry: object, index: int, malformed: Malformed) -> tuple[str, ToolCall | None]:
    call = read_call(entry, index)
    if call is None:
        return "it is not a tool call", None
    if call.error is not None and malformed != "keep":
        return call.error.message, None
    return "", call


def _take(found: Sequence[ToolCall], calls: dict[str, ToolCall], extra: list[ToolCall]) -> None:
    for call in found:
        if call.id in calls:
            extra.append(call)  # the same id twice in one place: both were asked for
        else:
            calls[call.id] = call


def _join(found: Sequence[ToolCall], source: str, calls: dict[str, ToolCall]) -> Iterator[Conflict]:
    for call in found:
        known = calls.get(call.id)
        if known is None:
            calls[call.id] = call
        elif not known.same_as(call):
            yield Conflict(call.id, known, call, source)


def _readable(entries: Sequence[object]) -> Iterator[ToolCall]:
    for index, entry in enumerate(entries):
        call = read_call(entry, index)
        if call is not None:
            yield call


def _refusal(source: str, index: int, problem: str) -> RequestRefused:
    return RequestRefused(
        f'`{source}[{index}]` cannot be used: {problem}; correct it, or read the message with `malformed="keep"`',
        code="invalid_tool_call",
        param=f"{source}[{index}]",
    )
