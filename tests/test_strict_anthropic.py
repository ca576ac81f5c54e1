"""The strict server of the tests is strict: each rule that it knows is broken once, and refused."""

from __future__ import annotations

from typing import Any

import pytest

from speaking_messages import called, said, thought
from strict_anthropic import refused_by_anthropic

Json = dict[str, Any]
USER: Json = {"role": "user", "content": [said("go")]}
LOOK: Json = {"name": "look", "input_schema": {"type": "object"}}
GOOD: Json = {"model": "claude-opus-4-6", "max_tokens": 9_000, "messages": [USER], "tools": [LOOK]}
RESULT: Json = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}


def turn(*content: Json) -> Json:
    return {"role": "assistant", "content": list(content)}


def results(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


def schema(**form: Any) -> Json:
    return {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", **form}}}}


MARK: Json = {"cache_control": {"type": "ephemeral"}}
LONG: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BREACHES: dict[str, Json] = {
    "an unknown field": {"context_management": {}},
    "no limit": {"max_tokens": None},
    "the assistant first": {"messages": [turn(said("a")), USER]},
    "the assistant last": {"messages": [USER, turn(said("a"))]},
    "one role twice": {"messages": [USER, USER]},
    "an instruction in between": {"messages": [USER, {"role": "system", "content": [said("x")]}]},
    "blank text": {"messages": [results(said(" "))]},
    "no content": {"messages": [results()]},
    "a call without its result": {"messages": [USER, turn(called("a", "look")), USER]},
    "a result behind text": {"messages": [USER, turn(called("a", "look")), results(said("x"), RESULT)]},
    "a result without its call": {"messages": [results(RESULT)]},
    "an odd id": {"messages": [USER, turn(called("a|b", "look")), results({**RESULT, "tool_use_id": "a|b"})]},
    "an id twice": {"messages": [USER, *[turn(called("a", "look")), results(RESULT)] * 2]},
    "calls without tools": {"tools": [], "messages": [USER, turn(called("a", "look")), results(RESULT)]},
    "a union at the root": {"tools": [{"name": "look", "input_schema": {"type": "object", "anyOf": []}}]},
    "a forged signature": {"messages": [USER, turn({**thought("a"), "signature": "x"}, said("b")), USER]},
    "thinking last": {"messages": [USER, turn(said("b"), thought("a")), USER]},
    "a budget on a newer model": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    "a small budget": {"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 9}},
    "a budget above the limit": {"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 9_000}},
    "a tool turn without thinking": {
        "model": "claude-haiku-4-5",
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": [USER, turn(called("a", "look")), results(RESULT)],
    },
    "no thinking where it is always on": {"model": "claude-opus-5-5", "thinking": {"type": "disabled"}},
    "a display of nothing": {"thinking": {"type": "disabled", "display": "omitted"}},
    "a forced call while thinking": {"thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}},
    "a forced call on a newest model": {"model": "claude-opus-5-5", "tool_choice": {"type": "any"}},
    "a choice of nothing": {"tools": [], "tool_choice": {"type": "auto"}},
    "a choice of an unknown tool": {"tool_choice": {"type": "tool", "name": "x"}},
    "sampling while thinking": {"thinking": {"type": "adaptive"}, "temperature": 1},
    "sampling on a newest model": {"model": "claude-opus-5-5", "temperature": 1},
    "sampling twice": {"temperature": 1, "top_p": 1},
    "a high temperature": {"temperature": 1.1},
    "an unknown effort": {"output_config": {"effort": "xhigh"}},
    "an open schema": schema(),
    "a refused keyword": schema(additionalProperties=False, properties={"a": {"minimum": 1}}),
    "a blank stop": {"stop_sequences": [" "]},
    "more metadata": {"metadata": {"a": "b"}},
    "another tier": {"service_tier": "flex"},
    "five marks": {"messages": [results(*({**said(str(n)), **MARK} for n in range(5)))]},
    "a long mark behind a short one": {"messages": [results({**said("a"), **MARK}, {**said("b"), **LONG})]},
    "a bitmap": {
        "messages": [
            results({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "aGk="}})
        ]
    },
}


def test_a_sound_request_is_taken() -> None:
    assert refused_by_anthropic(GOOD, {"x-api-key": "k", "anthropic-version": "2023-06-01"}) is None


@pytest.mark.parametrize("breach", BREACHES.values(), ids=list(BREACHES))
def test_a_breach_is_refused(breach: Json) -> None:
    changed = {name: value for name, value in {**GOOD, **breach}.items() if value not in (None, [])}
    assert refused_by_anthropic(changed) is not None


def test_a_request_without_its_headers_is_refused() -> None:
    assert refused_by_anthropic(GOOD, {}) is not None
    assert refused_by_anthropic(GOOD, {"x-api-key": "k"}) is not None
