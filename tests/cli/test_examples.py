"""The examples are what their page says: right in size and shape, and explained by every provider."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isthmus.cli.explain_plan import ask, choose_model, explain
from isthmus.providers import load_provider, provider_names

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.json"))


def test_the_page_lists_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert NAMES == ["chat.json", "codex.json", "images.json", "structured.json", "tools.json"]
    assert all(f"`{name}`" in page for name in NAMES)


def test_the_codex_example_has_the_size_and_the_shape_of_the_real_thing() -> None:
    raw = (EXAMPLES / "codex.json").read_bytes()
    body = json.loads(raw)
    assert 40_000 <= len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) <= 60_000
    assert len(body["tools"]) == 10
    assert {tool["type"] for tool in body["tools"]} == {"function", "custom", "namespace", "tool_search", "web_search"}
    assert 30 <= len(body["input"]) <= 35
    calls = {item["call_id"] for item in body["input"] if item["type"].endswith("_call") and "call_id" in item}
    outputs = {item["call_id"] for item in body["input"] if item["type"].endswith("_output")}
    assert calls == outputs
    assert len(calls) >= 9


def test_the_patch_in_the_codex_example_follows_its_own_grammar() -> None:
    lark = pytest.importorskip("lark")
    body = json.loads((EXAMPLES / "codex.json").read_text())
    grammar = next(tool["format"]["definition"] for tool in body["tools"] if tool["type"] == "custom")
    patch = next(item["input"] for item in body["input"] if item["type"] == "custom_tool_call")
    assert lark.Lark(grammar).parse(patch).data == "start"


@pytest.mark.parametrize("provider", provider_names())
@pytest.mark.parametrize("name", NAMES)
def test_every_example_can_be_explained_everywhere(name: str, provider: str) -> None:
    asked = ask(json.loads((EXAMPLES / name).read_text()), chat=name == "chat.json")
    facts = load_provider(provider)
    explained = explain(asked, facts, choose_model(asked, facts))
    assert explained.decisions
    assert (explained.plan is None) == (explained.refusal is not None)
    assert json.loads(json.dumps(explained.to_json()))["provider"] == provider
