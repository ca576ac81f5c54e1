"""A request from what its response repeats: it is planned as the first one was."""

from __future__ import annotations

import copy
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.gateway.attempts import HONOURED
from isthmus.observe.recall import request_again
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

EXAMPLES = Path(__file__).parents[2] / "examples"
PROVIDERS = ("deepseek", "anthropic", "openai", "zhipu", "gemini")


def plan(body: dict[str, Any], provider: str) -> Plan:
    facts = load_provider(provider)
    model = facts.default_model or ""
    target = Target(provider, model, capabilities_for(facts, model))
    return plan_request(parse_request(body), target, Host(HONOURED))


def again(body: dict[str, Any], provider: str, named: Collection[str] | None = None) -> dict[str, Any]:
    """From what the Response says, and the items as a store keeps them."""
    request = parse_request(copy.deepcopy(body))
    return request_again(plan(body, provider).echo, list(request.items), str(body.get("model")), named=named)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["codex.json", "tools.json", "structured.json", "images.json"])
def test_with_the_names_of_the_fields_the_same_bytes_go_upstream(name: str, provider: str) -> None:
    body = {**msgspec.json.decode((EXAMPLES / name).read_bytes()), "stream": False}
    body.pop("include", None)  # a Response does not repeat it
    first, second = (plan(each, provider).body for each in (body, again(body, provider, body.keys())))
    assert msgspec.json.encode(second) == msgspec.json.encode(first)


def test_what_was_not_said_is_not_said_again() -> None:
    asked = again({"model": "m", "input": "Hi"}, "deepseek")
    assert asked == {"model": "m", "input": list(parse_request({"input": "Hi"}).items)}


@pytest.mark.parametrize("named", [None, ["stream"], ["input", "stream", "model"]])
def test_a_stream_is_asked_for_as_one(named: list[str] | None) -> None:
    asked = request_again({}, [], "m", named=named, stream=True)
    assert asked["stream"] is True
    assert list(asked)[: len(named or ())] == (named or [])
    assert request_again({}, [], "m", named=["stream"])["stream"] is False
    assert "stream" not in request_again({}, [], "m", named=["input"])


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize(
    "fields",
    [
        {"instructions": "Be kind.", "max_output_tokens": 50},
        {"temperature": 0.3, "top_p": 0.5},
        {"tool_choice": "none", "parallel_tool_calls": False, "tools": [{"type": "function", "name": "f"}]},
        {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
        {"reasoning": {"effort": "high"}},
        {"metadata": {"a": "b"}, "prompt_cache_key": "k", "user": "u"},
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"store": False},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_was_said_is_said_again(fields: dict[str, Any], named: bool) -> None:
    asked = again({"model": "m", "input": "Hi", **fields}, "demo", fields.keys() if named else None)
    assert {name: value for name, value in asked.items() if name not in ("model", "input")} == fields


def test_a_field_that_said_the_usual_is_known_by_its_name_alone() -> None:
    body = {"model": "m", "input": "Hi", "tool_choice": "auto", "text": {"format": {"type": "text"}}}
    assert "tool_choice" not in again(body, "demo")
    assert {name: again(body, "demo", body.keys())[name] for name in ("tool_choice", "text")} == {
        "tool_choice": "auto",
        "text": {"format": {"type": "text"}},
    }
