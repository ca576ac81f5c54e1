"""Turns become Chat Completions messages by the model's rules."""

from __future__ import annotations

from typing import Any

import pytest

from chat_sequence import validate_chat_sequence
from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.dialects.chat.messages import CONTINUE, build_messages
from isthmus.bridge.dialects.chat.order import MessageOrder
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.tools.catalog import name_past_call
from isthmus.bridge.types.tools import ToolIdentity, ToolIdentityMap

IDENTITIES = ToolIdentityMap(
    (
        ToolIdentity("view image", "function", "view_image", "function"),
        ToolIdentity("exec", "custom", "exec", "function", "functions"),
        ToolIdentity("echo", "function", "mcp__demo__echo", "function", "mcp__demo"),
        ToolIdentity("shell", "shell", "shell_2", "function"),
        ToolIdentity("plain", "function", "plain", "function"),
    )
)


def build(items: list[dict[str, Any]], rules: MessageRules | None = None, **options: Any) -> MessageOrder:
    history = normalise_history(items)
    plan = build_messages(history, rules=rules or MessageRules(), identities=IDENTITIES, **options)
    assert validate_chat_sequence(plan.messages) is None
    return plan


def say(role: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}], **fields}


def call(call_id: str = "1", name: str = "plain", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **fields}


def output(call_id: str = "1", given: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": given}


def test_a_whole_tool_turn() -> None:
    plan = build([say("user", "hi"), say("assistant", "let me see"), call(), output(), say("assistant", "done")])
    assert plan.messages == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "let me see",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "plain", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "assistant", "content": "done"},
    ]
    assert plan.decisions == []


@pytest.mark.parametrize(
    ("rules", "instructions", "preamble", "items", "expected"),
    [
        ({}, "I", "", [say("user", "u")], [("system", "I"), ("user", "u")]),
        ({}, "I", "P", [say("user", "u")], [("system", "I\n\nP"), ("user", "u")]),
        ({}, None, "P", [say("user", "u")], [("system", "P"), ("user", "u")]),
        (
            {},
            "I",
            "P",
            [say("developer", "d"), say("user", "u")],
            [("system", "I\n\nP"), ("system", "d"), ("user", "u")],
        ),
        (
            {},
            None,
            "P",
            [say("developer", "d"), say("user", "u"), say("system", "s")],
            [("system", "d"), ("system", "P"), ("user", "u"), ("system", "s")],
        ),
        (
            {"developer": "developer"},
            "I",
            "",
            [say("developer", "d"), say("system", "s"), say("user", "u")],
            [("system", "I"), ("developer", "d"), ("system", "s"), ("user", "u")],
        ),
        (
            {"system": "leading"},
            "I",
            "P",
            [say("developer", "d"), say("system", "s"), say("user", "u")],
            [("system", "I\n\nd\n\ns\n\nP"), ("user", "u")],
        ),
        (
            {"system": "leading"},
            None,
            "",
            [say("user", "u"), say("developer", "d"), say("system", "s")],
            [("user", "u"), ("user", "[developer instruction]\nd"), ("user", "[system instruction]\ns")],
        ),
    ],
    ids=[
        "instructions first",
        "preamble follows the instructions",
        "preamble alone",
        "developer is system, in place",
        "preamble without instructions closes the opening",
        "developer kept where known",
        "one leading system message",
        "later system messages become marked user messages",
    ],
)
def test_roles_and_the_opening(
    rules: dict[str, Any],
    instructions: str | None,
    preamble: str,
    items: list[dict[str, Any]],
    expected: list[tuple[str, str]],
) -> None:
    plan = build(items, MessageRules(**rules), instructions=instructions, preamble=preamble)
    assert [(message["role"], message["content"]) for message in plan.messages] == expected


def test_a_later_system_message_that_became_a_note_is_told() -> None:
    plan = build([say("user", "u"), say("developer", "d")], MessageRules(system="leading"))
    assert [(d.path, d.action, d.code) for d in plan.decisions] == [("input[1]", "degraded", "bridge.item.degraded")]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("null", {"content": None}), ("empty", {"content": ""}), ("omit", {})],
    ids=["null", "empty", "omit"],
)
def test_content_of_a_message_that_only_calls_tools(rule: Any, expected: dict[str, Any]) -> None:
    message = build([call(), output()], MessageRules(empty_content=rule)).messages[0]
    assert {key: value for key, value in message.items() if key == "content"} == expected


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("view image", None, "view_image"),
        ("echo", "mcp__demo", "mcp__demo__echo"),
        ("exec", None, "exec"),
        ("exec", "functions", "exec"),
        ("plain", "functions", "plain"),
        ("gone away", None, "gone_away"),
        ("gone", "ns", "ns__gone"),
        ("gone", "functions", "gone"),
        ("x" * 80, None, "x" * 64),
    ],
)
def test_names_go_through_the_identity_map(name: str, namespace: str | None, expected: str) -> None:
    assert name_past_call(name, namespace, IDENTITIES) == expected


def test_a_builtin_call_takes_the_name_its_tool_got() -> None:
    item = {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}}
    function = build([item]).messages[0]["tool_calls"][0]["function"]
    assert function == {"name": "shell_2", "arguments": '{"commands":["ls"]}'}


def test_found_tools_are_listed_under_their_upstream_names() -> None:
    tools = [
        {
            "type": "namespace",
            "name": "mcp__demo",
            "tools": [{"type": "function", "name": "echo", "description": "Say it.\nAgain."}],
        },
        {"type": "function", "name": "plain"},
    ]
    items = [
        {"type": "tool_search_call", "call_id": "1", "arguments": {}},
        {"type": "tool_search_output", "call_id": "1", "tools": tools},
        {"type": "tool_search_call", "call_id": "2", "arguments": {}},
        {"type": "tool_search_output", "call_id": "2", "tools": []},
    ]
    messages = build(items).messages
    assert messages[1]["content"] == "These tools can be called now:\n- mcp__demo__echo: Say it.\n- plain"
    assert messages[3]["content"] == "No tools found."


PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}


def test_images_in_tool_outputs_follow_in_one_user_message() -> None:
    items = [
        call("1", "view image"),
        call("2"),
        output("1", [{"type": "input_text", "text": "here"}, PICTURE]),
        output("2", [PICTURE]),
        say("user", "next"),
    ]
    plan = build(items, MessageRules(input=frozenset({"image"})))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert [message["role"] for message in plan.messages] == ["assistant", "tool", "tool", "user", "user"]
    assert plan.messages[1]["content"] == "here\n[image: see the user message that follows]"
    assert plan.messages[3]["content"] == [
        {"type": "text", "text": "[from the output of `view_image`]"},
        image,
        {"type": "text", "text": "[from the output of `plain`]"},
        image,
    ]
    assert [d.path for d in plan.decisions] == ["input[2].output[1]", "input[3].output[0]"]


def test_images_in_tool_outputs_become_notes_where_the_model_is_blind() -> None:
    plan = build([call(), output("1", [PICTURE])])
    assert plan.messages[1]["content"] == "[image omitted: this model reads no images]"
    assert [(d.path, d.code) for d in plan.decisions] == [("input[1].output[0]", "bridge.item.degraded")]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], ["user"]),
        ([say("developer", "d")], ["system", "user"]),
        ([say("developer", "d"), say("assistant", "a")], ["system", "user", "assistant"]),
        ([say("assistant", "a"), say("user", "u")], ["assistant", "user"]),
    ],
    ids=["nothing", "only instructions", "only an assistant", "there is one"],
)
def test_a_provider_that_needs_a_user_message_gets_one(items: list[dict[str, Any]], expected: list[str]) -> None:
    plan = build(items, MessageRules(needs_user=True))
    assert [message["role"] for message in plan.messages] == expected
    added = [message for message in plan.messages if message["content"] == CONTINUE]
    assert [d.code for d in plan.decisions] == ["bridge.history.repaired"] * len(added)


def test_names_of_speakers_go_only_where_accepted() -> None:
    items = [say("user", "u", name="ada")]
    assert build(items, MessageRules(names=True)).messages == [{"role": "user", "content": "u", "name": "ada"}]
    plan = build(items)
    assert plan.messages == [{"role": "user", "content": "u"}]
    assert [(d.path, d.action) for d in plan.decisions] == [("input[0].name", "ignored")]


def test_call_ids_and_their_results_follow_the_codec() -> None:
    items = [call("call_abc"), call("Zz3456789"), output("Zz3456789"), output("call_abc")]
    messages = build(items, MessageRules(call_ids="alphanumeric9")).messages
    first, second = (made["id"] for made in messages[0]["tool_calls"])
    assert (len(first), first.isalnum(), second) == (9, True, "Zz3456789")
    assert [message["tool_call_id"] for message in messages[1:]] == [first, second]


def test_a_refusal_in_the_history_is_text() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}
    assert build([item]).messages == [{"role": "assistant", "content": "I will not."}]


def test_adjacent_assistant_messages_are_joined_by_an_empty_line() -> None:
    assert build([say("assistant", "a"), say("assistant", "b")]).messages == [
        {"role": "assistant", "content": "a\n\nb"}
    ]
