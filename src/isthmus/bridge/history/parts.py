"""Content parts and outputs as clients send them → the parts of a turn.

In: a message's `content`: text, a list of parts, or nothing; or an output item, whose parts say how the call went.
Out: `Part`s; a part type that nobody knows keeps its text if it has any, and gets a decision either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item
from isthmus.bridge.types.history import Audio, File, FoundTool, FoundTools, History, Image, Media, Part, Words
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

BREAKPOINT: Final = "prompt_cache_breakpoint"
_TEXT_TYPES: Final = frozenset({"input_text", "output_text", "text", "reasoning_text", "summary_text"})


def read_parts(content: object, path: str, decisions: list[CompatibilityDecision]) -> tuple[Words | Media, ...]:
    """`path` is that of `content` itself; empty texts are left out, they say nothing."""
    if isinstance(content, str):
        return (Words(content),) if content else ()
    if not isinstance(content, list | tuple):
        return ()
    parts: list[Words | Media] = []
    for index, given in enumerate(content):
        part = _read_part(given, path, index, decisions)
        if part is not None:
            marked = given.get(BREAKPOINT) if isinstance(given, dict) else None
            if marked and isinstance(part, Words | Image | File):
                part = msgspec.structs.replace(part, breakpoint=marked)
                decisions.append(decide_item(f"{path}[{index}].{BREAKPOINT}", "supported"))
            parts.append(part)
    return tuple(parts)


def settle_marks(past: History, rules: MessageRules) -> list[CompatibilityDecision]:
    """What was said of the items. Where the provider takes no breakpoints, or knows no phases, one decision speaks for
    all of them: the ones only save money, of the others the order tells."""
    decisions = list(past.decisions)
    marked = [] if rules.cache_breakpoints else [one for one in decisions if one.path.endswith(BREAKPOINT)]
    if marked:
        reason = "the provider has no breakpoints for its prompt cache; all of them were left out"
        decisions = [one for one in decisions if one not in marked]
        decisions.append(decide_item(marked[0].path, "ignored", reason, harmless=True, left_out=len(marked)))
    if past.phased and not rules.phases:
        reason = "the provider has no word for the phase of a message; their order tells it"
        decisions.append(decide_item(past.phased, "supported", reason))
    return decisions


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
    return [text for part in dicts_in(content) if (text := text_of(part, "text"))]


def dicts_in(value: object) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _read_part(given: Any, path: str, index: int, decisions: list[CompatibilityDecision]) -> Words | Media | None:
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
            source = _inner(given, "file")
            name, data, url = (text_of(source, field) for field in ("filename", "file_data", "file_url"))
            return File(where, name, data, url, text_of(source, "file_id"), text_of(source, "detail"))
        case "input_video" | "video_url":
            return File(path=where, url=_address(given, "video_url"), detail=text_of(given, "detail"), video=True)
        case "input_audio":
            return _read_audio(given, where)
    text = text_of(given, "text")
    kept = "; its text was kept" if text else ""
    reason = f"content part type `{kind}` is not known{kept}"
    decisions.append(decide_item(where, "degraded" if text else "ignored", reason))
    return Words(text) if text else None


def read_image(given: JsonObject, path: str) -> Image:
    detail = text_of(given, "detail") or text_of(_inner(given, "image_url"), "detail")
    return Image(path=path, url=_address(given, "image_url"), detail=detail, file_id=text_of(given, "file_id"))


def _read_audio(given: JsonObject, path: str) -> Audio:
    """OpenAI nests `data` and `format`; Codex sends one `audio_url`, often a data URL."""
    source, url = _inner(given, "input_audio"), _address(given, "audio_url")
    data, form = text_of(source, "data"), text_of(source, "format")
    if not data and url.startswith("data:"):
        head, _, data = url.partition(",")
        form = form or head[len("data:") :].partition(";")[0].rpartition("/")[2]
        url = ""
    return Audio(path=path, data=data, format=form, url=url)


def _inner(given: JsonObject, field: str) -> JsonObject:
    """Chat clients nest the fields of a part in an object."""
    inner = given.get(field)
    return inner if isinstance(inner, dict) else given


def _address(given: JsonObject, field: str) -> str:
    """Chat clients nest the address in an object with `url`."""
    value = given.get(field)
    return text_of(value, "url") if isinstance(value, dict) else text_of(given, field)


_OTHERWISE: Final = ("tool_search_output", "program_output", "apply_patch_call_output")
"""Outputs that say more than their text, or elsewhere."""


def read_output(item: JsonObject, path: str, decisions: list[CompatibilityDecision]) -> tuple[Part, ...]:
    kind, output = item["type"], item.get("output")
    if isinstance(output, str) and kind not in _OTHERWISE:
        return (Words(output),) if output else ()
    if kind == "tool_search_output":
        return (FoundTools(tuple(_found(item.get("tools")))),)
    if kind == "shell_call_output" and isinstance(output, list):
        return (Words(_shell_text(output)),)
    if kind == "computer_call_output" and isinstance(output, dict):
        return (Words("[the screen after it]"), read_image(output, f"{path}.output"))
    if kind == "program_output":
        return read_parts(item.get("result"), f"{path}.result", decisions)
    if kind == "apply_patch_call_output":
        return (Words(": ".join(filter(None, (text_of(item, "status"), text_of(item, "output"))))),)
    if isinstance(output, dict):
        # Not a shape of the protocol, but one that older clients stored.
        return (Words(text_of(output, "content", "text") or msgspec.json.encode(output).decode()),)
    return read_parts(output, f"{path}.output", decisions)


def _found(tools: object, namespace: str | None = None) -> Iterator[FoundTool]:
    for tool in dicts_in(tools):
        name = text_of(tool, "name", "server_label", "type")
        if tool.get("type") == "namespace":
            yield from _found(tool.get("tools"), f"{namespace}__{name}" if namespace else name)
        else:
            yield FoundTool(name, namespace, text_of(tool, "description"))


def _shell_text(chunks: list[Any]) -> str:
    """One block per command: how it ended, then what it wrote."""
    lines: list[str] = []
    for chunk in dicts_in(chunks):
        outcome = chunk.get("outcome")
        if isinstance(outcome, dict):
            lines.append("[timeout]" if outcome.get("type") == "timeout" else f"[exit {outcome.get('exit_code')}]")
        written = [(stream, text) for stream in ("stdout", "stderr") if (text := text_of(chunk, stream))]
        lines += [f"{stream}:\n{text.rstrip(chr(10))}" for stream, text in written]
        if "stdout" not in chunk and "stderr" not in chunk and (text := text_of(chunk, "text")):
            lines.append(text)
    return "\n".join(lines)
