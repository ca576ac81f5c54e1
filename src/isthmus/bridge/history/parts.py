"""Content parts as clients send them → the parts of a turn.

In: a message's or output's `content`: text, a list of parts, or nothing. Out: `Part`s; a part type that
nobody knows keeps its text if it has any, and gets a decision either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.history import Audio, File, Image, Part, Words
from isthmus.protocol.json import JsonObject

BREAKPOINT: Final = "prompt_cache_breakpoint"
_TEXT_TYPES: Final = frozenset({"input_text", "output_text", "text", "reasoning_text", "summary_text"})


def read_parts(content: object, path: str, decisions: list[CompatibilityDecision]) -> tuple[Part, ...]:
    """`path` is that of `content` itself; empty texts are left out, they say nothing."""
    if isinstance(content, str):
        return (Words(content),) if content else ()
    if not isinstance(content, list | tuple):
        return ()
    parts: list[Part] = []
    for index, given in enumerate(content):
        part = _read_part(given, path, index, decisions)
        if part is not None:
            marked = given.get(BREAKPOINT) if isinstance(given, dict) else None
            if marked and isinstance(part, Words | Image | File):
                part = msgspec.structs.replace(part, breakpoint=marked)
                decisions.append(CompatibilityDecision(f"{path}[{index}].{BREAKPOINT}", "supported"))
            parts.append(part)
    return tuple(parts)


def settle_breakpoints(decisions: tuple[CompatibilityDecision, ...], taken: bool) -> tuple[CompatibilityDecision, ...]:
    """Where the provider takes no breakpoints, one decision speaks for all of them: they only save money."""
    marked = [] if taken else [one for one in decisions if one.path.endswith(BREAKPOINT)]
    if not marked:
        return decisions
    reason = "the provider has no breakpoints for its prompt cache; all of them were left out"
    facts = {"left_out": len(marked)}
    said = CompatibilityDecision(marked[0].path, "ignored", reason, code="bridge.item.ignored", metadata=facts)
    return (*(one for one in decisions if one not in marked), said)


def text_of(source: JsonObject, *names: str) -> str:
    """The first of these fields that holds a non-empty text."""
    for name in names:
        value = source.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def texts_of(content: object) -> list[str]:
    """The texts of a part list of which only the text matters (reasoning, search results)."""
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        return []
    return [text for part in content if isinstance(part, dict) and (text := text_of(part, "text"))]


def _read_part(given: Any, path: str, index: int, decisions: list[CompatibilityDecision]) -> Part | None:
    if not isinstance(given, dict):
        return Words(given) if isinstance(given, str) and given else None
    kind = given.get("type") or "text"
    if kind in _TEXT_TYPES:
        text = given.get("text")
        if not isinstance(text, str) or not text:
            return None
        cited = given.get("annotations")
        return Words(text, tuple(cited)) if cited and isinstance(cited, list) else Words(text)
    if kind == "refusal":
        text = text_of(given, "refusal")
        return Words(text, refusal=True) if text else None
    where = f"{path}[{index}]"
    match kind:
        case "input_image" | "image_url" | "computer_screenshot":
            return read_image(given, where)
        case "input_file" | "file":
            return _read_file(given, where)
        case "input_video" | "video_url":
            return File(path=where, url=_address(given, "video_url"), detail=text_of(given, "detail"), video=True)
        case "input_audio":
            return _read_audio(given, where)
        case _:
            return _read_unknown(given, kind, where, decisions)


def read_image(given: JsonObject, path: str) -> Image:
    detail = text_of(given, "detail")
    inner = given.get("image_url")
    if isinstance(inner, dict):
        detail = detail or text_of(inner, "detail")
    return Image(path=path, url=_address(given, "image_url"), detail=detail, file_id=text_of(given, "file_id"))


def _read_file(given: JsonObject, path: str) -> File:
    inner = given.get("file")
    source = inner if isinstance(inner, dict) else given
    return File(
        path=path,
        name=text_of(source, "filename"),
        data=text_of(source, "file_data"),
        url=text_of(source, "file_url"),
        file_id=text_of(source, "file_id"),
        detail=text_of(source, "detail"),
    )


def _read_audio(given: JsonObject, path: str) -> Audio:
    """OpenAI nests `data` and `format`; Codex sends one `audio_url`, often a data URL."""
    inner = given.get("input_audio")
    source = inner if isinstance(inner, dict) else given
    data, form, url = text_of(source, "data"), text_of(source, "format"), _address(given, "audio_url")
    if not data and url.startswith("data:"):
        head, _, data = url.partition(",")
        form = form or head[len("data:") :].partition(";")[0].rpartition("/")[2]
        url = ""
    return Audio(path=path, data=data, format=form, url=url)


def _read_unknown(given: JsonObject, kind: str, path: str, decisions: list[CompatibilityDecision]) -> Part | None:
    text = text_of(given, "text")
    if text:
        reason = f"content part type `{kind}` is not known; its text was kept"
        decisions.append(CompatibilityDecision(path, "degraded", reason, code="bridge.item.degraded"))
        return Words(text)
    reason = f"content part type `{kind}` is not known"
    decisions.append(CompatibilityDecision(path, "ignored", reason, code="bridge.item.ignored"))
    return None


def _address(given: JsonObject, field: str) -> str:
    """Chat clients nest the address in an object with `url`."""
    value = given.get(field)
    if isinstance(value, dict):
        return text_of(value, "url")
    return value if isinstance(value, str) else ""


def words_of(parts: Sequence[Part]) -> list[str]:
    """The texts among these parts."""
    return [part.text for part in parts if isinstance(part, Words)]
