"""Calls come back as what the client asked for: each row of the restoration table, and its way out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from isthmus.bridge.capabilities import ProviderCapabilities, ToolSupport
from isthmus.bridge.tools.custom_input import CustomInput, CustomInputReader, read_custom_input
from isthmus.bridge.tools.restore import find_identity, restore_tool_call
from isthmus.bridge.tools.survey import plan_tools, survey_tools
from isthmus.bridge.types.tools import ProviderCall, RestoredCall, ToolIdentityMap

PATCH = r"""
start: "*** Begin Patch" LF hunk+ "*** End Patch" LF?
hunk: "*** Delete File: " /(.+)/ LF | "*** Add File: " /(.+)/ LF ("+" /(.*)/ LF)+
%import common.LF
"""
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "files.read"},
    {"type": "shell"},
    {"type": "local_shell"},
    {"type": "apply_patch"},
    {"type": "custom", "name": "exec"},
    {"type": "custom", "name": "edit", "format": {"type": "grammar", "syntax": "lark", "definition": PATCH}},
    {"type": "custom", "name": "digits", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}},
    {"type": "custom", "name": "odd", "format": {"type": "grammar", "syntax": "gbnf", "definition": "x"}},
    {"type": "tool_search", "execution": "client"},
    {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]},
    {"type": "namespace", "name": "agents", "tools": [{"type": "custom", "name": "tell"}]},
    {"type": "namespace", "name": "functions", "tools": [{"type": "function", "name": "wait"}]},
    {"type": "namespace", "name": "a", "tools": [{"type": "function", "name": "twin"}]},
    {"type": "namespace", "name": "b", "tools": [{"type": "function", "name": "twin"}]},
    {"type": "web_search"},
]
CAPABILITIES = ProviderCapabilities(tools=ToolSupport(native=frozenset({"function", "web_search"})))
IDENTITIES = plan_tools(survey_tools(TOOLS, (), None, CAPABILITIES)).identities
OUTPUT_ITEM: TypeAdapter[Any] = TypeAdapter(ResponseOutputItem)


def restore(name: str, arguments: Any) -> RestoredCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return restore_tool_call(ProviderCall("call_1", name, text), find_identity(name, IDENTITIES))


def codes(restored: RestoredCall) -> list[str]:
    return [diagnostic.code.removeprefix("bridge.tool.") for diagnostic in restored.diagnostics]


DELETE = {"type": "delete_file", "path": "a"}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        pytest.param(
            "files_read",
            '{"path": "a"}',
            {"type": "function_call", "name": "files.read", "arguments": '{"path": "a"}'},
            id="function",
        ),
        pytest.param(
            "shell",
            {"commands": ["ls", "pwd"]},
            {
                "type": "shell_call",
                "action": {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": None},
            },
            id="shell",
        ),
        pytest.param(
            "shell",
            {"commands": ["ls"], "timeout_ms": 5.0, "max_output_length": 9},
            {"type": "shell_call", "action": {"commands": ["ls"], "timeout_ms": 5, "max_output_length": 9}},
            id="shell-with-limits",
        ),
        pytest.param(
            "shell",
            {"command": "ls"},
            {"type": "shell_call", "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}},
            id="shell-one-command",
        ),
        pytest.param(
            "local_shell",
            {
                "command": ["ls", "-l"],
                "env": {"A": "b"},
                "timeout_ms": 5,
                "user": "u",
                "working_directory": "/x",
            },
            {
                "type": "local_shell_call",
                "action": {
                    "type": "exec",
                    "command": ["ls", "-l"],
                    "env": {"A": "b"},
                    "timeout_ms": 5,
                    "user": "u",
                    "working_directory": "/x",
                },
            },
            id="local_shell",
        ),
        pytest.param(
            "local_shell",
            {"cmd": ["ls"]},
            {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
            id="local_shell-cmd",
        ),
        pytest.param(
            "local_shell",
            {"command": "ls | wc"},
            {"type": "local_shell_call", "action": {"type": "exec", "command": ["bash", "-lc", "ls | wc"], "env": {}}},
            id="local_shell-one-line",
        ),
        pytest.param(
            "apply_patch",
            {"operation": {"type": "update_file", "path": "a", "diff": "@@"}},
            {"type": "apply_patch_call", "operation": {"type": "update_file", "path": "a", "diff": "@@"}},
            id="apply_patch",
        ),
        pytest.param("apply_patch", DELETE, {"type": "apply_patch_call", "operation": DELETE}, id="apply_patch-flat"),
        pytest.param(
            "apply_patch",
            json.dumps(json.dumps({"operation": DELETE})),
            {"type": "apply_patch_call", "operation": DELETE},
            id="apply_patch-encoded-twice",
        ),
        pytest.param("exec", {"input": "x"}, {"type": "custom_tool_call", "name": "exec", "input": "x"}, id="custom"),
        pytest.param(
            "tool_search",
            {"query": "q"},
            {"type": "tool_search_call", "execution": "client", "arguments": {"query": "q"}},
            id="tool_search",
        ),
        pytest.param(
            "agents__spawn",
            "{}",
            {"type": "function_call", "name": "spawn", "arguments": "{}", "namespace": "agents"},
            id="namespaced-function",
        ),
        pytest.param(
            "agents__tell",
            {"input": "hi"},
            {"type": "custom_tool_call", "name": "tell", "input": "hi", "namespace": "agents"},
            id="namespaced-custom",
        ),
        pytest.param(
            "wait", "{}", {"type": "function_call", "name": "wait", "arguments": "{}"}, id="default-namespace-is-silent"
        ),
    ],
)
def test_restoration_table(name: str, arguments: Any, expected: dict[str, Any]) -> None:
    restored = restore(name, arguments)
    assert restored.item == {"id": "", "call_id": "call_1", "status": "completed", **expected}
    assert restored.diagnostics == ()
    OUTPUT_ITEM.validate_python(restored.item)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("shell", "{broken", id="shell-malformed"),
        pytest.param("shell", "{}", id="shell-missing-field"),
        pytest.param("shell", '{"commands": [1]}', id="shell-wrong-field"),
        pytest.param("local_shell", "not json", id="local_shell-malformed"),
        pytest.param("local_shell", '{"command": []}', id="local_shell-empty"),
        pytest.param("apply_patch", "[]", id="apply_patch-malformed"),
        pytest.param("apply_patch", '{"operation": {"type": "update_file", "path": "a"}}', id="apply_patch-no-diff"),
        pytest.param("apply_patch", '{"operation": {"type": "rename", "path": "a"}}', id="apply_patch-unknown-kind"),
        pytest.param("exec", '{"a": 1}', id="custom-without-string"),
        pytest.param("exec", '{"a": ', id="custom-malformed"),
        pytest.param("tool_search", '"q"', id="tool_search-no-object"),
    ],
)
def test_what_does_not_fit_falls_back_to_a_function_call(name: str, arguments: str) -> None:
    restored = restore(name, arguments)
    assert restored.item == {
        "type": "function_call",
        "id": "",
        "call_id": "call_1",
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }
    assert codes(restored) == ["call_fallback"]


@pytest.mark.parametrize(("arguments", "expected"), [("", "{}"), ("  ", "{}"), ("{bad", "{bad"), ("[1]", "[1]")])
def test_function_arguments_stay_verbatim_except_for_nothing(arguments: str, expected: str) -> None:
    restored = restore("files_read", arguments)
    assert restored.item["arguments"] == expected
    assert restored.diagnostics == ()


def test_an_unknown_tool_comes_back_under_the_name_that_was_called() -> None:
    restored = restore("ghost.tool", '{"a": 1}')
    assert (restored.item["type"], restored.item["name"]) == ("function_call", "ghost.tool")
    assert codes(restored) == ["unknown_call"]


def test_a_hosted_tool_that_is_called_like_a_function_is_reported() -> None:
    restored = restore("web_search", '{"query": "q"}')
    assert (restored.item["type"], restored.item["name"]) == ("function_call", "web_search")
    assert codes(restored) == ["unknown_call"]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("agents__spawn", "agents__spawn"),
        ("agents.spawn", "agents__spawn"),
        ("agents/spawn", "agents__spawn"),
        ("functions.wait", "wait"),
        ("functions.exec", "exec"),
        ("functions.agents__spawn", "agents__spawn"),
        ("files.read", "files_read"),
        ("spawn", "agents__spawn"),
        ("Files_Read", "files_read"),
        ("AGENTS.SPAWN", "agents__spawn"),
        (" exec ", "exec"),
        ("twin", None),
        ("a.twin", "a__twin"),
        ("ghost", None),
        ("", None),
    ],
)
def test_lenient_spellings(spelling: str, name: str | None) -> None:
    identity = find_identity(spelling, IDENTITIES)
    assert (identity.provider_name if identity else None) == name


def test_a_nameless_call_means_the_only_tool_there_is() -> None:
    only = plan_tools(
        survey_tools([{"type": "function", "name": "x"}, {"type": "web_search"}], (), None, CAPABILITIES)
    ).identities
    identity = find_identity("", only)
    assert identity is not None
    assert identity.provider_name == "x"
    assert find_identity("", ToolIdentityMap()) is None


# -- custom input: read, repair, check -----------------------------------------------------------------------------

GOOD = "*** Begin Patch\n*** Delete File: a\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "arguments", "text", "said"),
    [
        pytest.param("edit", {"input": GOOD}, GOOD, [], id="matches"),
        pytest.param("edit", {"patch": GOOD}, GOOD, [], id="other-key"),
        pytest.param("edit", GOOD, GOOD, [], id="raw-text"),
        pytest.param("edit", {"input": f"```\n{GOOD}\n```"}, GOOD, ["input_repaired"], id="fenced"),
        pytest.param("edit", {"input": "*** Delete File: a"}, GOOD, ["input_repaired"], id="no-envelope"),
        pytest.param("edit", {"input": f"apply_patch <<'X'\n{GOOD}\nX"}, GOOD, ["input_repaired"], id="heredoc"),
        pytest.param("edit", json.dumps(json.dumps({"input": GOOD})), GOOD, ["input_repaired"], id="encoded-twice"),
        pytest.param("edit", {"input": "make it good"}, "make it good", ["grammar_mismatch"], id="mismatch"),
        pytest.param(
            "edit",
            {"input": "*** Delete File: a\noops"},
            "*** Begin Patch\n*** Delete File: a\noops\n*** End Patch",
            ["input_repaired", "grammar_mismatch"],
            id="repaired-and-still-wrong",
        ),
        pytest.param("digits", {"input": "12"}, "12", [], id="regex-matches"),
        pytest.param("digits", {"input": "1x"}, "1x", ["grammar_mismatch"], id="regex-mismatch"),
        pytest.param("odd", {"input": "x"}, "x", ["grammar_unchecked"], id="not-checkable"),
    ],
)
def test_custom_input(name: str, arguments: Any, text: str, said: list[str]) -> None:
    restored = restore(name, arguments)
    assert restored.item["type"] == "custom_tool_call"
    assert restored.item["input"] == text
    assert codes(restored) == said


@pytest.mark.parametrize("name", ["edit", "exec"])
def test_json_that_breaks_off_is_no_custom_call_even_when_the_provider_calls_it_done(name: str) -> None:
    arguments = '{"input": "*** Begin Patch\\n*** Delete File: a'
    restored = restore(name, arguments)
    assert (restored.item["type"], restored.item["arguments"]) == ("function_call", arguments)
    assert codes(restored) == ["call_fallback"]


IGNORED = {
    "custom": ("exec", {"input": "ls", "timeout": 5}, "`timeout`"),
    "custom, another key": ("exec", {"why": "x", "code": "ls"}, "`why`"),
    "shell": ("shell", {"commands": ["ls"], "workdir": "/tmp"}, "`workdir`"),
    "shell, a limit that is none": ("shell", {"commands": ["ls"], "timeout_ms": "soon"}, "`timeout_ms`"),
    "local shell": ("local_shell", {"command": ["ls"], "shell": "zsh"}, "`shell`"),
    "local shell, a variable that is no text": ("local_shell", {"command": ["ls"], "env": {"N": 1}}, "`env.N`"),
    "apply patch": ("apply_patch", {"operation": {**DELETE, "mode": 1}}, "`mode`"),
    "apply patch, beside it": ("apply_patch", {"operation": DELETE, "why": "x"}, "`why`"),
}


@pytest.mark.parametrize(("name", "arguments", "named"), IGNORED.values(), ids=list(IGNORED))
def test_arguments_that_an_item_has_no_place_for_are_reported(name: str, arguments: Any, named: str) -> None:
    restored = restore(name, arguments)
    assert restored.item["type"] != "function_call"
    assert codes(restored) == ["arguments_ignored"]
    assert named in restored.diagnostics[0].message


def test_many_ignored_arguments_are_counted_not_listed() -> None:
    restored = restore("exec", {"input": "ls", **{f"k{number}": 1 for number in range(20)}})
    assert "and 12 more" in restored.diagnostics[0].message


patch_pieces = st.lists(
    st.sampled_from(
        ["*** Begin Patch\n", "*** End Patch", "*** Delete File: a\n", "*** Add File: b\n+x\n", "```\n", "\n", " ", "x"]
    ),
    max_size=6,
).map("".join)
custom_texts = st.one_of(patch_pieces, st.text(st.characters(exclude_categories=["Cs"]), max_size=30))


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["exec", "edit", "digits"]),
    custom_texts,
    st.sampled_from(["{}", '{{"input": {}}}', '{{"input": {}', '{{"input":{},"input":"z"}}', '{{"patch": {}}}']),
    st.integers(min_value=1, max_value=9),
    st.integers(min_value=0, max_value=5),
)
def test_the_restored_input_begins_with_everything_that_was_streamed(
    name: str, text: str, frame: str, size: int, lost: int
) -> None:
    arguments = frame.format(json.dumps(text))
    arguments = arguments[: len(arguments) - lost]
    identity = IDENTITIES.by_provider_name(name)
    assert identity is not None
    reader = CustomInputReader(identity.tool)
    told = "".join(reader.feed(arguments[start : start + size]) for start in range(0, len(arguments), size))
    restored = restore(name, arguments)
    if told and restored.item["type"] == "custom_tool_call":
        assert restored.item["input"].startswith(told)
    elif told:  # half a text is never passed on as a custom call
        assert restored.item["type"] == "function_call"
        assert read_custom_input(arguments) == CustomInput(told, "cut") or lost
