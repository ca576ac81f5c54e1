"""A body as a prompt cache reads it: in the order of the prompt, every piece known by its bytes, marks left out."""

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
from isthmus.observe.prefix import read_pieces
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

EXAMPLE = Path(__file__).parents[2] / "examples" / "codex.json"
MARK = {"cache_control": {"type": "ephemeral"}}


def paths(body: dict[str, Any]) -> list[str]:
    return [piece.path for piece in read_pieces(body)]


def test_a_chat_prompt_begins_with_its_tools_whatever_the_order_of_the_fields() -> None:
    body = {
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "temperature": 0.2,
        "tools": [{"type": "function", "function": {"name": "look"}}],
        "response_format": {"type": "json_object"},
        "model": "m",
        "tool_choice": "auto",
    }
    assert [(piece.path, piece.section, piece.what) for piece in read_pieces(body)] == [
        ("model", "model", "m"),
        ("tools[0]", "tools", "look"),
        ("response_format", "format", ""),
        ("messages[0]", "system", "system"),
        ("messages[1]", "messages", "user"),
    ]


def test_a_messages_prompt_has_its_system_blocks_and_what_its_messages_are_kept_apart_by() -> None:
    body = {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "tools": [{"name": "look"}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "disabled"},
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert paths(body) == ["model", "tools[0]", "system[0]", "system[1]", "thinking", "tool_choice", "messages[0]"]


def test_a_native_prompt_has_instructions_and_items() -> None:
    body = {"model": "m", "instructions": "x", "input": [{"type": "message", "role": "user"}, {"type": "reasoning"}]}
    assert [(piece.path, piece.what) for piece in read_pieces(body)] == [
        ("model", "m"),
        ("instructions", ""),
        ("input[0]", "user"),
        ("input[1]", "reasoning"),
    ]
    assert paths({"model": "m", "input": "Hi"}) == ["model", "input"]


@pytest.mark.parametrize("mark", [MARK, {"prompt_cache_breakpoint": {"type": "x"}}])
def test_a_mark_for_the_cache_is_no_part_of_the_prompt(mark: dict[str, Any]) -> None:
    def body(mark: dict[str, Any]) -> dict[str, Any]:
        said = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **mark}]}
        return {"tools": [{"name": "look", **mark}], "system": [{"text": "s", **mark}], "messages": [said]}

    assert read_pieces(body(mark)) == read_pieces(body({}))
    # Deeper inside it is what somebody said.
    asked = {"messages": [{"role": "user", "content": [{"type": "tool_use", "input": mark}]}]}
    bare = {"messages": [{"role": "user", "content": [{"type": "tool_use", "input": {}}]}]}
    assert read_pieces(asked) != read_pieces(bare)


@pytest.mark.parametrize("provider", ["deepseek", "anthropic", "openai"])
def test_every_dialects_own_body_is_read_whole(provider: str) -> None:
    facts = load_provider(provider)
    model = facts.default_model or ""
    target = Target(provider, model, capabilities_for(facts, model))
    body = plan_request(parse_request(EXAMPLE.read_bytes()), target).body
    pieces = read_pieces(body)
    sections = [piece.section for piece in pieces]
    assert sections.count("tools") == len(body["tools"])
    said = [piece for piece in pieces if piece.path.startswith(("messages[", "input["))]
    assert len(said) == len(body.get("messages") or body["input"])
    order = ["model", "tools", "format", "system", "settings", "messages"]
    assert sections == sorted(sections, key=order.index)
    assert sum(piece.size for piece in pieces) > 0.9 * len(msgspec.json.encode(body))


@given(st.lists(st.text(max_size=5), min_size=1, max_size=6), st.data())
def test_a_piece_changes_with_its_bytes_and_only_with_them(texts: list[str], data: st.DataObject) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}
    before = read_pieces(body)
    at = data.draw(st.integers(0, len(texts) - 1))
    body["messages"] = [
        *body["messages"][:at],
        {"role": "user", "content": texts[at] + "!"},
        *body["messages"][at + 1 :],
    ]
    changed = [one != other for one, other in zip(before, read_pieces(body), strict=True)]
    assert changed == [False] + [place == at for place in range(len(texts))]
