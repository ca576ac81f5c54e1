"""A plan → the exact Chat Completions body, and the same body asked again."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.capabilities import MessageRules, ResponseFormatSupport, ToolChoiceSupport, ToolSupport
from isthmus.bridge.dialects.chat.write import again, write
from isthmus.bridge.types.history import History, Said, Words
from isthmus.testing.fold import plan_for

Json = dict[str, Any]

TOOL: Json = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
ASKED = History((Said("user", (Words("hi"),), "input[0]"),))


def test_the_body_holds_everything_the_plan_says_in_one_order() -> None:
    body: Json = {"instructions": "Be brief.", "tools": [TOOL], "tool_choice": "required", "temperature": 0.5}
    plan = plan_for(
        body,
        tool_choice=ToolChoiceSupport(supported=frozenset({"auto", "none", "required"})),
        extra_body={"top_k": 3},
    )
    written = write(ASKED, plan)
    assert written.body == {
        "model": "test-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": TOOL["parameters"]}}],
        "tool_choice": "required",
        "temperature": 0.5,
        "top_k": 3,
    }
    assert list(written.body) == ["model", "messages", "tools", "tool_choice", "temperature", "top_k"]
    assert plan.body == written.body


def test_a_schema_is_nested_as_chat_spells_it_and_plain_json_is_not() -> None:
    formats = ResponseFormatSupport(supported=frozenset({"text", "json_object", "json_schema"}))
    given = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": False}
    schema = plan_for({"text": {"format": given}}, response_formats=formats)
    sent = write(ASKED, schema).body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["name"] == "n"
    assert "type" not in sent["json_schema"]
    plain = plan_for({"text": {"format": {"type": "json_object"}}}, response_formats=formats)
    assert write(ASKED, plain).body["response_format"] == {"type": "json_object"}


def test_what_had_to_be_decided_about_messages_is_told() -> None:
    named = History((Said("user", (Words("hi"),), "input[0]", name="ann"),))
    written = write(named, plan_for(messages=MessageRules(names=False)))
    assert [(said.path, said.action) for said in written.decisions] == [("input[0].name", "ignored")]


def test_a_request_is_asked_again_behind_its_failed_answers() -> None:
    plan = plan_for(tools=ToolSupport())
    body = again(plan, [("{bad", "Try again."), ("", "Say something.")])
    assert body["messages"] == [
        *plan.body["messages"],
        {"role": "assistant", "content": "{bad"},
        {"role": "user", "content": "Try again."},
        {"role": "user", "content": "Say something."},
    ]
    assert {**body, "messages": 0} == {**plan.body, "messages": 0}


def test_asking_again_keeps_the_order_that_the_provider_wants() -> None:
    plan = plan_for(messages=MessageRules(turns="merged"))
    assert again(plan, [("", "Say something.")])["messages"] == [{"role": "user", "content": "hi\n\nSay something."}]
