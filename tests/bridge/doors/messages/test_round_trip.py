"""Turns in at the Messages door: out again as they were where the upstream speaks Messages too, and on every other
upstream what the same conversation becomes that came in by the Responses door."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.bridge.doors.messages.read import receive_messages_request
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Target
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

Json = dict[str, Any]
TARGETS = {
    "chat": ("openai", "gpt-4o", "chat"),
    "chat with reasoning": ("deepseek", "deepseek-v4-pro", "chat"),
    "chat in strict order": ("mistral", "mistral-medium-3.5", "chat"),
    "chat taking turns": ("vllm", "google/gemma-3-12b-it", "chat"),
    "responses": ("openai", "gpt-5.6", "responses"),
    "messages": ("anthropic", "claude-opus-5-5", "messages"),
    "messages, with budgets": ("anthropic", "claude-haiku-4-5", "messages"),
    "codex": ("codex", "gpt-5.5", None),
}
TOOLS = [{"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}]
PLAIN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def target(name: str) -> Target:
    provider, model, dialect = TARGETS[name]
    return Target("p", model, capabilities_for(load_provider(provider), model, dialect))  # type: ignore[arg-type]


def through_messages(name: str, turns: list[Json]) -> Json:
    body = {"model": "m", "max_tokens": 4000, "messages": turns, "tools": TOOLS}
    asked = receive_messages_request(body)
    return plan_request(asked.request, target(name), Host(), noted=asked.decisions).body


def through_responses(name: str, items: list[Json]) -> Json:
    tools = [{"type": "function", "name": "look", "parameters": TOOLS[0]["input_schema"], "strict": False}]
    body = {"model": "m", "max_output_tokens": 4000, "input": items, "tools": tools, "store": False}
    return plan_request(parse_request(body), target(name), Host()).body


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip)
pictures = st.integers(0, 99_999_999).map(lambda number: f"{number:08d}")
inputs = st.dictionaries(st.sampled_from(["at", "by", "n"]), st.one_of(words, st.integers(-9, 9), st.booleans()))


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def picture(data: str) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


@st.composite
def conversations(draw: Any) -> list[Json]:
    """A user, and then answers with calls, whose results come in any order, and answers without."""
    turns: list[Json] = [{"role": "user", "content": [text(draw(words))]}]
    for number in range(draw(st.integers(0, 4))):
        spoken = [text(draw(words))] if draw(st.booleans()) else []
        ids = [f"toolu_{number}_{index}" for index in range(draw(st.integers(0, 3)))]
        calls = [{"type": "tool_use", "id": id, "name": "look", "input": draw(inputs)} for id in ids]
        if not spoken and not calls:
            spoken = [text(draw(words))]
        turns.append({"role": "assistant", "content": [*spoken, *calls]})
        results = [{"type": "tool_result", "tool_use_id": id, "content": draw(outputs())} for id in ids]
        more = [text(draw(words))] if not calls or draw(st.booleans()) else []
        turns.append({"role": "user", "content": [*draw(st.permutations(results)), *more]})
    return turns


@st.composite
def outputs(draw: Any) -> list[Json]:
    return [text(draw(words)), *([picture(draw(pictures))] if draw(st.booleans()) else [])]


def in_order(turns: list[Json]) -> list[Json]:
    """The turns with results in the order of their calls."""
    settled: list[Json] = []
    for turn in turns:
        called = [block["id"] for block in settled[-1]["content"] if block["type"] == "tool_use"] if settled else []
        blocks = sorted(
            turn["content"],
            key=lambda block: called.index(block["tool_use_id"]) if block["type"] == "tool_result" else len(called),
        )
        settled.append({**turn, "content": blocks})
    return settled


def bare(turns: list[Json]) -> list[Json]:
    """Without the marks of the prompt cache, and with every content as a list."""
    made: Any = json.loads(json.dumps(turns))
    for turn in made:
        for block in turn["content"]:
            block.pop("cache_control", None)
            if block["type"] == "tool_result" and isinstance(block["content"], str):
                block["content"] = [text(block["content"])]
    return list(made)


@pytest.mark.parametrize("name", ["messages", "messages, with budgets"])
@given(conversations())
@PLAIN
def test_turns_go_out_as_they_came_in(name: str, turns: list[Json]) -> None:
    assert bare(through_messages(name, turns)["messages"]) == in_order(turns)


def as_items(turns: list[Json]) -> list[Json]:
    """The same conversation as a client of Responses writes it."""
    items: list[Json] = []
    for turn in in_order(turns):
        said: list[Json] = []
        for block in turn["content"]:
            match block["type"]:
                case "tool_use":
                    arguments = json.dumps(block["input"], separators=(",", ":"), ensure_ascii=False)
                    call = {"call_id": block["id"], "name": "look", "arguments": arguments}
                    items += [*_message(turn["role"], said), {"type": "function_call", **call}]
                    said = []
                case "tool_result":
                    output = [_part(one, "user") for one in block["content"]]
                    plain = output[0]["text"] if len(output) == 1 else output
                    items.append({"type": "function_call_output", "call_id": block["tool_use_id"], "output": plain})
                case _:
                    said.append(_part(block, turn["role"]))
        items += _message(turn["role"], said)
    return items


def _message(role: str, content: list[Json]) -> list[Json]:
    return [{"type": "message", "role": role, "content": content}] if content else []


def _part(block: Json, role: str) -> Json:
    if block["type"] == "image":
        return {"type": "input_image", "image_url": f"data:image/png;base64,{block['source']['data']}"}
    return {"type": "output_text" if role == "assistant" else "input_text", "text": block["text"]}


@pytest.mark.parametrize("name", TARGETS)
@given(conversations())
@PLAIN
def test_a_conversation_is_the_same_whichever_door_it_came_in_by(name: str, turns: list[Json]) -> None:
    one, other = through_messages(name, turns), through_responses(name, as_items(turns))
    assert one == other
