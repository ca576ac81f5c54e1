"""An output item → the parts of a result: text that says how the call went, images where there are any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.history.parts import read_parts, text_of
from isthmus.bridge.types.history import FoundTool, FoundTools, Part, Words
from isthmus.protocol.json import JsonObject


def read_output(item: JsonObject, path: str, decisions: list[CompatibilityDecision]) -> tuple[Part, ...]:
    kind, output = item["type"], item.get("output")
    if kind == "tool_search_output":
        return (FoundTools(tuple(_found(item.get("tools")))),)
    if kind == "shell_call_output" and isinstance(output, list):
        return (Words(_shell_text(output)),)
    if kind == "program_output":
        return read_parts(item.get("result"), f"{path}.result", decisions)
    if kind == "apply_patch_call_output":
        return (Words(_patch_text(item)),)
    if isinstance(output, dict):
        # Not a shape of the protocol, but one that older clients stored.
        return (Words(text_of(output, "content", "text") or msgspec.json.encode(output).decode()),)
    return read_parts(output, f"{path}.output", decisions)


def _found(tools: Any, namespace: str | None = None) -> Iterator[FoundTool]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        name = text_of(tool, "name", "server_label", "type")
        if tool.get("type") == "namespace":
            yield from _found(tool.get("tools"), f"{namespace}__{name}" if namespace else name)
        else:
            yield FoundTool(name, namespace, text_of(tool, "description"))


def _shell_text(chunks: list[Any]) -> str:
    """One block per command: how it ended, then what it wrote."""
    lines: list[str] = []
    for chunk in chunks:
        if not isinstance(chunk, dict):
            continue
        outcome = chunk.get("outcome")
        if isinstance(outcome, dict):
            lines.append("[timeout]" if outcome.get("type") == "timeout" else f"[exit {outcome.get('exit_code')}]")
        for stream in ("stdout", "stderr"):
            text = text_of(chunk, stream)
            if text:
                lines.append(f"{stream}:\n{text.rstrip(chr(10))}")
        if "stdout" not in chunk and "stderr" not in chunk and (text := text_of(chunk, "text")):
            lines.append(text)
    return "\n".join(lines)


def _patch_text(item: JsonObject) -> str:
    status, output = text_of(item, "status"), text_of(item, "output")
    return f"{status}: {output}" if status and output else status or output
