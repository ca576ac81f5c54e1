"""Findings of a probe → the text of a provider file. Pure: the same findings on the same day give the same file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isthmus.cli.terminal import clean
from isthmus.upstream.probe.findings import Abilities, Findings
from isthmus.values.toml_text import toml_key, toml_value

_RANGES: Final = {
    "temperature": {"low": 0, "high": 2},
    "top_p": {"low": 0, "high": 1},
    "presence_penalty": {"low": -2, "high": 2},
    "frequency_penalty": {"low": -2, "high": 2},
}
_DEGRADED: Final = ("custom", "local_shell", "shell", "apply_patch", "tool_search")


def provider_file(findings: Findings, *, name: str, base_url: str, key_env: str, day: str) -> str:
    """A file that `isthmus providers check` finds sound; `key_env` is empty where no key was needed."""
    head: dict[str, Any] = {
        "name": name,
        "title": name,
        "default_model": findings.model,
        "checked": day,
        "sources": [f"probed {base_url} on {day}"],
        "streaming_usage": findings.streaming_usage,
    }
    if findings.strict_fields:
        head["allow"] = _allow(findings)
    lines = [_comment(f"{name}: what a probe of {base_url} found on {day}, asking `{findings.model}`.")]
    details = [(note, f" ({note.detail})" if note.detail else "") for note in findings.notes]
    lines += [_comment(f"{note.question}: {note.verdict}{detail}") for note, detail in details]
    lines += [f"{key} = {toml_value(value)}" for key, value in head.items()]
    for section, facts in _sections(findings, base_url, key_env):
        lines += ["", f"[{section}]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in facts.items())]
    return "\n".join(lines) + "\n"


def _comment(words: str) -> str:
    """One line, whatever a server called its models."""
    return f"# {clean(' '.join(words.split()))}"


def _sections(found: Findings, base_url: str, key_env: str) -> Iterator[tuple[str, dict[str, Any]]]:
    access: dict[str, Any] = {"key_env": [key_env]} if key_env else {"auth": "none"}
    yield "endpoint", {"base_url": base_url.rstrip("/"), **access}
    if found.native is not None:
        yield "responses", _responses(found, found.native)
    yield "parameters", _parameters(found)
    if not found.tools:
        yield "tools", {"native": [], "degraded": dict.fromkeys(_DEGRADED, False)}
    elif found.strict:
        yield "tools", {"strict": True}
    yield "tool_choice", {"supported": _choices(found)}
    yield "response_formats", {"supported": list(found.formats)}
    if found.reasoning_fields or found.think_tags:
        off = {"effort": "boolean", "off": {"reasoning_effort": "none"}} if found.effort_none else {"effort": "none"}
        yield "reasoning", {**off, "default_on": True}
    yield (
        "messages",
        {
            "developer": "developer" if found.developer else "system",
            "system": "anywhere" if found.system_anywhere else "leading",
            "empty_content": found.empty_content,
            "call_ids": found.call_ids,
            "turns": "free" if found.repeats else "merged",
            "after_tool": "any" if found.after_tool or not found.tools else "assistant",
            "input": list(found.inputs),
        },
    )
    fields = list(dict.fromkeys([*found.reasoning_fields, "reasoning_content", "reasoning"]))
    tells = {"tells_length": False} if found.limit_field and not found.tells_length else {}
    yield "reply", {"reasoning_fields": fields, "think_tags": found.think_tags, **tells}
    entry: dict[str, Any] = {"title": found.model}
    if found.context:
        entry["limits"] = {"context": found.context}
    yield f"models.{toml_value(found.model)}", entry


def _responses(found: Findings, native: Abilities) -> dict[str, Any]:
    parameters = [native.limit_field] if native.limit_field else []
    parameters += native.parameters
    if native.effort_none:
        parameters.append("reasoning")
    if native.logprobs:
        parameters += ["top_logprobs", "include"]
    return {
        "tool_choice": _choices(native),
        "formats": list(native.formats),
        "parameters": parameters,
        "unknown": "refused" if found.strict_fields else "ignored",
        "tells_length": native.tells_length or not native.limit_field,
        "strict": native.strict,
    }


def _parameters(found: Findings) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if found.limit_field:
        rules["max_output_tokens"] = {"to": found.limit_field, "low": 1}
    if found.logprobs:
        rules["top_logprobs"] = {"low": 0, "high": 20}
    return rules | {name: _RANGES.get(name, {}) for name in found.parameters}


def _choices(found: Abilities) -> list[str]:
    """`none` is always kept: it means that no tools are sent."""
    return [name for name in ("auto", "none", "required", "function") if name in (*found.choices, "auto", "none")]


def _allow(found: Findings) -> list[str]:
    fields = ["model", "messages", "stream"]
    if found.streaming_usage:
        fields.append("stream_options")
    if found.tools:
        fields += ["tools", "tool_choice"]
    if len(found.formats) > 1:
        fields.append("response_format")
    if found.logprobs:
        fields += ["logprobs", "top_logprobs"]
    if found.effort_none:
        fields.append("reasoning_effort")
    return [*fields, *([found.limit_field] if found.limit_field else []), *found.parameters]
