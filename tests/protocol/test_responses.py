"""An optional field that is `null` says no more than one that is absent: in requests, items, tools and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Required, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import pytest

from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Plan, Target
from isthmus.protocol import responses
from isthmus.protocol.json import without_nulls
from isthmus.protocol.responses import ITEM_SHAPES, TOOL_SHAPES, CreateResponse
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

Json = dict[str, Any]

SAMPLES: dict[str, Any] = {
    "role": "user",
    "content": "hi",
    "call_id": "call_1",
    "name": "look",
    "arguments": "{}",
    "input": "text",
    "action": {"command": ["ls"], "commands": ["ls"]},
    "operation": {"type": "delete_file", "path": "a"},
    "output": "done",
    "tools": [{"type": "function", "name": "inner"}],
    "code": "1",
    "result": "1",
    "type": "text",
}
"""A value for each field that some shape requires."""
OPTIONS: dict[str, Json] = {
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "moderation": {"policy": {"input": {"mode": "score"}}},
}
"""What an object needs so that the field below it can be there at all."""


def required(shape: Any) -> set[str]:
    if not is_typeddict(shape):
        return {field.name for field in msgspec.structs.fields(shape) if field.required}
    hints = get_type_hints(shape, include_extras=True)
    return {name for name, hint in hints.items() if get_origin(hint) is Required}


def optional(shape: Any) -> list[str]:
    return sorted(set(get_type_hints(shape)) - required(shape))


def needed(shape: Any) -> Json:
    return {name: SAMPLES[name] for name in required(shape)}


def nested(shape: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every optional field of a request, also inside its options."""
    for name, hint in get_type_hints(shape).items():
        if name not in required(shape):
            yield (*path, name)
        for inner in get_args(hint):
            if is_typeddict(inner):
                yield from nested(inner, (*path, name))


def target(dialect: Any) -> Target:
    capabilities = capabilities_for(load_provider("openai"), "gpt-5.6", dialect)
    return Target("openai", "gpt-5.6", capabilities)


TARGETS = [target("chat"), target("responses")]


def planned(where: Target, body: Json) -> Plan:
    return plan_request(parse_request({"model": "m", "input": "hi", **body}), where)


def told(plan: Plan, where: Target) -> Json:
    """The body; an item that goes back as it came keeps its nulls."""
    items = plan.body.get("input", ())
    own = where.capabilities.messages.items
    return {**plan.body, "input": [without_nulls(item) if item["type"] in own else item for item in items]}


def same(one: Json, other: Json) -> None:
    for where in TARGETS:
        plain, nulls = planned(where, one), planned(where, other)
        assert told(nulls, where) == told(plain, where)
        assert nulls.decisions == plain.decisions
        assert nulls.echo == plain.echo


def put(body: Json, path: tuple[str, ...], value: Any) -> Json:
    head, *rest = path
    inner = body.get(head)
    return {**body, head: put(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value}


@pytest.mark.parametrize("path", list(nested(CreateResponse)), ids=".".join)
def test_a_null_in_a_request_asks_for_nothing(path: tuple[str, ...]) -> None:
    if path in (("model",), ("input",), ("text", "format", "name"), ("text", "format", "schema")):
        return  # these are there in every sample
    base = {path[0]: OPTIONS.get(path[0], {})} if len(path) > 1 else {}
    parent = base
    for name in path[:-1]:
        parent = parent.get(name, {})
    without = {name: value for name, value in parent.items() if name != path[-1]}
    plain = put(base, path[:-1], without) if len(path) > 1 else base
    same(plain, put(base, path, None))


@pytest.mark.parametrize("kind", [kind for kind in ITEM_SHAPES if kind != "item_reference"])
def test_nulls_in_an_item_change_nothing(kind: str) -> None:
    shape = ITEM_SHAPES[kind]
    item = {"type": kind, **needed(shape)}
    base = [{"role": "user", "content": "hi"}]
    if kind == "function_call_output":
        base.append({"type": "function_call", "call_id": "call_0", "name": "look", "arguments": "{}"})
    for name in optional(shape):
        same({"input": [*base, item]}, {"input": [*base, {**item, name: None}]})
    same({"input": [*base, item]}, {"input": [*base, {**dict.fromkeys(optional(shape)), **item}]})


@pytest.mark.parametrize("kind", [*TOOL_SHAPES, "web_search", "mcp", "shell", "tool_search"])
def test_nulls_in_a_tool_change_nothing(kind: str) -> None:
    shape = TOOL_SHAPES.get(kind)
    tool = {"type": kind, **(needed(shape) if shape else {})}
    fields = optional(shape) if shape else ["description", "parameters", "filters", "environment", "headers"]
    for name in fields:
        same({"tools": [tool]}, {"tools": [{**tool, name: None}]})
    twice = {**dict.fromkeys(fields), **tool}
    same({"tools": [tool]}, {"tools": [twice]})
    assert planned(TARGETS[0], {"tools": [tool, twice]}).body == planned(TARGETS[0], {"tools": [tool]}).body


PARTS: list[Json] = [
    {"type": "input_text", "text": "hi"},
    {"type": "output_text", "text": "hi"},
    {"type": "input_image", "image_url": "https://a.example/b.png"},
    {"type": "input_file", "file_data": "data:text/plain;base64,aGk="},
    {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
]
PART_FIELDS = [
    "annotations", "logprobs", "detail", "file_id", "file_url", "filename", "prompt_cache_breakpoint", "phase"
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS, ids=[part["type"] for part in PARTS])
@pytest.mark.parametrize("field", PART_FIELDS)
def test_nulls_in_a_part_change_nothing(part: Json, field: str) -> None:
    for wrap in (
        lambda one: {"type": "message", "role": "user", "content": [one]},
        lambda one: {"type": "function_call_output", "call_id": "c", "output": [one]},
    ):
        call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
        same({"input": [call, wrap(part)]}, {"input": [call, wrap({**part, field: None})]})


def test_a_type_that_is_null_is_found_as_if_it_were_absent() -> None:
    same({"input": [{"role": "user", "content": "hi"}]}, {"input": [{"type": None, "role": "user", "content": "hi"}]})


@pytest.mark.parametrize("tool_choice", [{"type": "function", "name": "f"}, {"type": "allowed_tools"}])
def test_nulls_in_a_tool_choice_are_not_repeated(tool_choice: Json) -> None:
    tool = {"type": "function", "name": "f"}
    if tool_choice["type"] == "allowed_tools":
        tool_choice = {**tool_choice, "tools": [tool]}
    asked = {"tools": [tool], "tool_choice": tool_choice}
    same(asked, {**asked, "tool_choice": {**tool_choice, "namespace": None, "mode": None}})


def test_every_shape_of_the_protocol_is_reached() -> None:
    reached = {CreateResponse, *ITEM_SHAPES.values(), *TOOL_SHAPES.values()}
    for shape in tuple(reached):
        stack = [shape]
        while stack:
            for hint in get_type_hints(stack.pop()).values():
                for inner in (hint, *get_args(hint)):
                    if is_typeddict(inner) and inner not in reached:
                        reached.add(inner)
                        stack.append(inner)
    known = {value for name, value in vars(responses).items() if is_typeddict(value) and not name.startswith("_")}
    assert known <= reached
