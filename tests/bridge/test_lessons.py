"""Lessons as pure functions: what was refused, what is left of the capabilities, what is told."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest

from isthmus.bridge.lessons import config_lines, find_refusal, lasts, learn, leave_out, tell_lessons
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Lesson, Plan, Target
from isthmus.errors import UpstreamFailed
from isthmus.providers import load_provider

DAY = 1_794_000_000.0
TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
NAMED = {"type": "function", "name": "f"}
SCHEMA = {"type": "json_schema", "name": "a", "schema": {"type": "object"}}
UNKNOWN = Target("mine", "m", load_provider("openai-compatible").capabilities("m"))


def plan(target: Target = UNKNOWN, **body: Any) -> Plan:
    return plan_request(parse_request({"model": "m", "input": "hi", **body}), target)


def refusal(field: str) -> UpstreamFailed:
    return UpstreamFailed("no", code="invalid_prompt", status=400, metadata={"refused": field})


def lesson(parameter: str, value: str = "", at: float = DAY) -> Lesson:
    return Lesson("mine", "m", parameter, value, at)


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ({"tools": TOOLS, "tool_choice": "required"}, "tool_choice", "required"),
        ({"tools": TOOLS, "tool_choice": "auto"}, "tool_choice", "auto"),
        ({"tools": TOOLS, "tool_choice": NAMED}, "tool_choice", "function"),
        ({"text": {"format": SCHEMA}}, "response_format", "json_schema"),
        ({"text": {"format": {"type": "json_object"}}}, "response_format", "json_object"),
        ({"tools": TOOLS, "parallel_tool_calls": False}, "parallel_tool_calls", ""),
    ],
)
def test_a_refusal_says_which_kind_of_value_was_sent(body: dict[str, Any], field: str, value: str) -> None:
    found = find_refusal(refusal(field), plan(**body))
    assert found == lesson(field, value, at=0.0)


def test_only_what_was_sent_on_trust_can_be_refused() -> None:
    assert find_refusal(refusal("tool_choice"), plan()) is None, "it was not sent"
    assert find_refusal(UpstreamFailed("no"), plan(tools=TOOLS, tool_choice="required")) is None
    known = Target("openai", "gpt-4o", load_provider("openai").capabilities("gpt-4o"))
    assert find_refusal(refusal("tool_choice"), plan(known, tools=TOOLS, tool_choice="required")) is None


def test_a_lesson_takes_one_kind_of_value_and_leaves_the_rest() -> None:
    taught = learn(UNKNOWN, [lesson("tool_choice", "function"), lesson("response_format", "json_object")])
    assert taught.capabilities.tool_choice.supported == {"auto", "none", "required"}
    assert taught.capabilities.response_formats.supported == {"text", "json_schema"}
    assert plan(taught, tools=TOOLS, tool_choice=NAMED).body["tool_choice"] == "required"
    assert plan(taught, text={"format": SCHEMA}).body["response_format"]["type"] == "json_schema"
    assert UNKNOWN.capabilities.tool_choice.supported == {"auto", "none", "required", "function"}


def test_lessons_lead_down_to_nothing_at_all() -> None:
    taught = UNKNOWN
    for value in ("function", "required", "auto"):
        taught = learn(taught, [lesson("tool_choice", value)])
    body = plan(taught, tools=TOOLS, tool_choice=NAMED).body
    assert "tool_choice" not in body
    assert [tool["function"]["name"] for tool in body["tools"]] == ["f"]
    assert "call the tool `f`" in str(body["messages"])


@pytest.mark.parametrize("choice", ["auto", "required", NAMED, {"type": "allowed_tools", "tools": [NAMED]}], ids=str)
def test_the_second_asking_goes_without_the_field(choice: Any) -> None:
    fields = {"tool_choice", "response_format", "parallel_tool_calls"}
    asked = plan(
        leave_out(UNKNOWN, fields),
        tools=TOOLS,
        tool_choice=choice,
        parallel_tool_calls=False,
        text={"format": {**SCHEMA, "strict": True}},
    )
    assert not fields & set(asked.body)
    assert asked.contract.held, "our own contract takes over"


def test_a_lesson_about_what_nobody_assumes_any_more_is_not_believed() -> None:
    known = Target("openai", "gpt-4o", load_provider("openai").capabilities("gpt-4o"))
    assert learn(known, [lesson("tool_choice", "required")]) is known


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"tools": TOOLS, "tool_choice": "required"}, ["required"]),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [NAMED]}},
            ["required"],
        ),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [NAMED]}}, []),
        ({"tools": TOOLS, "tool_choice": NAMED}, []),
        ({"tools": TOOLS, "tool_choice": "auto"}, []),
        ({"tools": TOOLS}, []),
        ({"text": {"format": SCHEMA}}, []),
        ({"text": {"format": {"type": "json_object"}}}, ["json_object"]),
        ({"text": {"format": {"type": "text"}}}, []),
        ({"tools": TOOLS, "parallel_tool_calls": False}, [None]),
        ({"tools": TOOLS, "parallel_tool_calls": True}, []),
    ],
)
def test_a_lesson_is_told_to_those_whom_it_concerns(body: dict[str, Any], told: list[str | None]) -> None:
    known = [lesson("tool_choice", "required"), lesson("response_format", "json_object"), lesson("parallel_tool_calls")]
    said = tell_lessons(body, learn(UNKNOWN, known))
    assert [decision.metadata["refused_value"] for decision in said] == told
    assert {decision.code for decision in said} <= {"bridge.param.learned"}


def test_what_stands_in_for_a_refused_value_and_was_refused_too_is_told() -> None:
    both = learn(UNKNOWN, [lesson("tool_choice", "function"), lesson("tool_choice", "required")])
    assert len(tell_lessons({"tools": TOOLS, "tool_choice": NAMED}, both)) == 2


def test_the_words_say_when_and_what_to_write() -> None:
    (said,) = tell_lessons({"tool_choice": "required"}, learn(UNKNOWN, [lesson("tool_choice", "required")]))
    assert "`tool_choice` = `required` on 2026-11-06" in said.reason
    assert '`tool_choice = { supported = ["auto", "none", "function"] }`' in said.reason
    assert '`[providers.mine.models."m"]`' in said.reason


@pytest.mark.parametrize("provider", ["mine", "my-own", "häuschen", "a.b", 'quo"te'])
@pytest.mark.parametrize("model", ["m", "org/model:8b", 'a"b\\c', "tab\t", "del\x7f"])
def test_the_config_lines_are_toml_whatever_the_names(provider: str, model: str) -> None:
    target = Target(provider, model, UNKNOWN.capabilities)
    told = Lesson(provider, model, "tool_choice", "auto", DAY)
    read = tomllib.loads("\n".join(config_lines(told, learn(target, [told]))))
    assert read["providers"][provider]["models"][model] == {
        "tool_choice": {"supported": ["auto", "none"], "sent": False}
    }


def test_a_refused_signature_is_a_matter_of_one_conversation() -> None:
    block = {"type": "thinking", "thinking": "", "signature": "s"}
    facts = load_provider("anthropic").capabilities("claude-opus-5-5")
    target = Target("anthropic", "claude-opus-5-5", facts)
    asked = plan(target)
    assert find_refusal(refusal("thinking_blocks"), asked) is None, "none was sent"
    turn = {"role": "assistant", "content": [block, {"type": "text", "text": "a"}]}
    sent = msgspec.structs.replace(asked, body={**asked.body, "messages": [*asked.body["messages"], turn]})
    found = find_refusal(refusal("thinking_blocks"), sent)
    assert found is not None
    assert not lasts(found)
    assert learn(target, [found]) == target
    assert leave_out(target, {found.parameter}).capabilities.messages.replay_extras == ""
