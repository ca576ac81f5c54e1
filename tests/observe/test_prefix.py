"""A body as a prompt cache reads it: in the order of the prompt, and only what the prompt is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Target
from isthmus.observe.prefix import ORDER, read_prompt
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for
from pieces import BODIES, pieces_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "codex.json"


def told(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(part.path, part.section, part.what) for part in read_prompt(pieces_of(body))]


def test_a_chat_prompt_begins_with_its_tools_whatever_the_order_of_the_fields() -> None:
    body = {
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "temperature": 0.2,
        "tools": [{"type": "function", "function": {"name": "look"}}],
        "response_format": {"type": "json_object"},
        "model": "m",
        "tool_choice": "auto",
    }
    assert told(body) == [
        ("model", "model", ""),
        ("tools[0]", "tools", "look"),
        ("response_format", "format", ""),
        ("messages[0]", "system", "system"),
        ("messages[1]", "messages", "user"),
    ]


def test_only_leading_messages_are_the_system_prompt() -> None:
    said = [{"role": role, "content": "x"} for role in ("developer", "system", "user", "system")]
    assert [section for _, section, _ in told({"messages": said})] == ["system", "system", "messages", "messages"]


def test_a_messages_prompt_has_its_system_blocks_and_what_its_messages_are_kept_apart_by() -> None:
    body = {
        "model": "m",
        "max_tokens": 10,
        "tool_choice": {"type": "auto"},
        "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "tools": [{"name": "look"}],
        "thinking": {"type": "disabled"},
        "messages": [{"role": "user", "content": "Hi"}],
    }
    paths = [path for path, _, _ in told(body)]
    assert paths == ["model", "tools[0]", "system[0]", "system[1]", "tool_choice", "thinking", "messages[0]"]


def test_a_native_prompt_has_instructions_and_items() -> None:
    items = [{"type": "message", "role": "user"}, {"type": "reasoning"}]
    body = {"model": "m", "input": items, "instructions": "x", "reasoning": {}}
    assert told(body) == [
        ("model", "model", ""),
        ("instructions", "system", ""),
        ("input[0]", "messages", "user"),
        ("input[1]", "messages", "reasoning"),
    ]
    assert [path for path, _, _ in told({"model": "m", "input": "Hi"})] == ["model", "input"]


@pytest.mark.parametrize("mark", ["cache_control", "prompt_cache_breakpoint"])
def test_a_mark_for_the_cache_is_no_part_of_the_prompt(mark: str) -> None:
    def body(**marks: Any) -> dict[str, Any]:
        said = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **marks}]}
        return {"tools": [{"name": "look", **marks}], "system": [{"text": "s", **marks}], "messages": [said]}

    marked, bare = body(**{mark: {"type": "ephemeral"}}), body()
    assert read_prompt(pieces_of(marked)) == read_prompt(pieces_of(bare))
    assert BODIES.read(marked).bytes == len(msgspec.json.encode(marked)), "all of it travels"
    # Deeper inside it is what somebody said.
    asked, other = (
        {"messages": [{"role": "user", "content": [{"type": "tool_use", "input": inside}]}]}
        for inside in ({mark: 1}, {})
    )
    assert read_prompt(pieces_of(asked)) != read_prompt(pieces_of(other))


@pytest.mark.parametrize("provider", ["deepseek", "anthropic", "openai"])
def test_every_dialects_own_body_is_read_whole(provider: str) -> None:
    facts = load_provider(provider)
    model = facts.default_model or ""
    target = Target(provider, model, capabilities_for(facts, model))
    body = plan_request(parse_request(EXAMPLE.read_bytes()), target).body
    parts = read_prompt(pieces_of(body))
    sections = [part.section for part in parts]
    assert sections == sorted(sections, key=ORDER.index)
    assert sections.count("tools") == len(body["tools"])
    said = [part for part in parts if part.path.startswith(("messages[", "input["))]
    assert len(said) == len(body.get("messages") or body["input"])
    assert sum(part.bytes for part in parts) > 0.9 * len(msgspec.json.encode(body))


@given(st.permutations(["model", "tools", "messages", "temperature", "response_format", "system", "thinking"]))
def test_the_order_of_the_wire_does_not_matter(fields: list[str]) -> None:
    lists = ("tools", "messages")
    body = {name: [{"type": name, "n": index} for index in range(3)] if name in lists else name for name in fields}
    assert read_prompt(pieces_of(body)) == read_prompt(pieces_of({name: body[name] for name in sorted(fields)}))
