"""The model's own items: calls with their arguments, thoughts, and summaries of what came before."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.items import read_call, read_compaction, read_thought
from isthmus.bridge.types.history import Said, Words

KEY = b"k" * 32


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{ "b":2,\n"a":1 }', '{ "b":2,\n"a":1 }'),
        ("", "{}"),
        ("  ", "{}"),
        ("null", "{}"),
        ("[1]", '{"_raw":"[1]"}'),
        ('"text"', '{"_raw":"\\"text\\""}'),
        ('{"a": ', '{"_raw":"{\\"a\\": "}'),
        ("{'a': 1}", '{"_raw":"{\'a\': 1}"}'),
        ('{"a": "x\ny"}', '{"_raw":"{\\"a\\": \\"x\\ny\\"}"}'),
        ("[" * 5000, '{"_raw":"' + "[" * 5000 + '"}'),
    ],
    ids=["kept", "spacing kept", "empty", "blank", "null", "list", "string", "cut", "python", "control", "deep"],
)
def test_arguments_are_always_a_json_object(given: str, kept: str) -> None:
    name, arguments, problem = read_call({"type": "function_call", "call_id": "1", "name": "f", "arguments": given})
    assert (name, arguments, bool(problem)) == ("f", kept, given != kept)


CALLS: dict[str, tuple[dict[str, Any], str, str]] = {
    "function": (
        {"type": "function_call", "call_id": "1", "name": "echo", "arguments": '{"s": 1}'},
        "echo",
        '{"s": 1}',
    ),
    "custom": (
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "*** Begin\n"},
        "apply_patch",
        '{"input":"*** Begin\\n"}',
    ),
    "shell": (
        {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"], "timeout_ms": None}},
        "shell",
        '{"commands":["ls"]}',
    ),
    "local shell": (
        {
            "type": "local_shell_call",
            "call_id": "1",
            "action": {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 5, "user": None},
        },
        "local_shell",
        '{"command":["ls"],"timeout_ms":5}',
    ),
    "local shell with env": (
        {"type": "local_shell_call", "call_id": "1", "action": {"type": "exec", "command": ["ls"], "env": {"A": "1"}}},
        "local_shell",
        '{"command":["ls"],"env":{"A":"1"}}',
    ),
    "apply patch": (
        {"type": "apply_patch_call", "call_id": "1", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        '{"operation":{"type":"delete_file","path":"a"}}',
    ),
    "program": ({"type": "program", "call_id": "1", "code": "await f()"}, "program", '{"code":"await f()"}'),
    "tool search": (
        {"type": "tool_search_call", "call_id": "1", "arguments": {"query": "x", "limit": 2}},
        "tool_search",
        '{"query":"x","limit":2}',
    ),
    "tool search with text arguments": (
        {"type": "tool_search_call", "call_id": "1", "arguments": '{"query":"x"}'},
        "tool_search",
        '{"query":"x"}',
    ),
    "tool search without arguments": ({"type": "tool_search_call", "call_id": "1"}, "tool_search", "{}"),
}


@pytest.mark.parametrize(("item", "name", "arguments"), CALLS.values(), ids=CALLS.keys())
def test_each_call_type_goes_back_to_its_arguments(item: dict[str, Any], name: str, arguments: str) -> None:
    assert read_call(item) == (name, arguments, "")


def test_reasoning_reads_content_before_envelope_before_summary() -> None:
    sealed = seal(Sealed("p", "sealed text"), KEY)
    summary = [{"type": "summary_text", "text": "short"}]
    items: list[dict[str, Any]] = [
        {"content": [{"type": "reasoning_text", "text": "full"}], "summary": summary},
        {"content": None, "summary": summary, "encrypted_content": sealed},
        {"summary": summary},
    ]
    thoughts = [read_thought(item, "input[0]", KEY, "p", [])[0] for item in items]
    assert [(thought.text, thought.summarised) for thought in thoughts] == [
        ("full", False),
        ("sealed text", False),
        ("short", True),
    ]


@pytest.mark.parametrize(("provider", "extras", "calls"), [("p", {"x": 1}, {"1": 2}), ("q", {}, {})])
def test_vendor_state_is_for_the_provider_that_it_was_sealed_for(provider: str, extras: Any, calls: Any) -> None:
    item = {"encrypted_content": seal(Sealed("p", "t", {"x": 1}, {"1": 2}), KEY)}
    decisions: list[CompatibilityDecision] = []
    thought, state = read_thought(item, "input[0]", KEY, provider, decisions)
    assert (thought.text, thought.extras, state) == ("t", extras, calls)
    assert [one.path for one in decisions] == ([] if extras else ["input[0].encrypted_content"])


def test_our_compaction_expands_to_a_user_note() -> None:
    decisions: list[CompatibilityDecision] = []
    envelope = seal(Sealed("p", "we did x"), KEY, kind="compaction")
    said = read_compaction({"encrypted_content": envelope}, "input[0]", KEY, decisions)
    assert said == Said("user", (Words("[summary of the conversation so far]\nwe did x"),), "input[0]")
    assert not decisions


@pytest.mark.parametrize(
    "envelope", [None, "gAAAA", seal(Sealed("p", "a thought"), KEY)], ids=["empty", "foreign", "reasoning"]
)
def test_a_compaction_that_cannot_be_read_is_ignored(envelope: str | None) -> None:
    decisions: list[CompatibilityDecision] = []
    assert read_compaction({"encrypted_content": envelope}, "input[0]", KEY, decisions) is None
    assert (decisions[-1].path, decisions[-1].action, decisions[-1].code) == (
        "input[0]",
        "ignored",
        "bridge.item.ignored",
    )
