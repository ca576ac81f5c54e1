"""The functions that stand in for tool types: their words, and schemas as strict as the items they become."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from isthmus.bridge.tools.builtin import describe_as_function, expects_patch
from isthmus.bridge.tools.catalog import build_tool_catalog

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "The weather.", "parameters": PARAMETERS}
PATCH_GRAMMAR = 'start: "*** Begin Patch" LF /(.+)/ LF "*** End Patch" LF?\n%import common.LF'


def describe(tool: dict[str, Any]) -> tuple[str, Any]:
    (entry,) = build_tool_catalog([tool])
    return describe_as_function(entry)


def test_a_function_is_described_by_its_client() -> None:
    assert describe(WEATHER) == ("The weather.", PARAMETERS)


@pytest.mark.parametrize("kind", ["local_shell", "shell", "apply_patch", "web_search", "tool_search", "computer"])
def test_the_clients_own_words_come_first(kind: str) -> None:
    assert describe({"type": kind, "description": "Own words."})[0] == "Own words."


def test_an_unknown_type_keeps_its_parameters() -> None:
    assert describe({"type": "oracle", "parameters": PARAMETERS}) == ("The tool `oracle`.", PARAMETERS)


def test_the_words_of_a_namespace_reach_the_model() -> None:
    space = {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [WEATHER]}
    assert describe(space)[0] == "Part of `agents`: Helpers.\n\nThe weather."


def test_custom_becomes_one_required_string() -> None:
    words, parameters = describe({"type": "custom", "name": "exec", "description": "Run a script."})
    assert parameters["required"] == ["input"]
    assert parameters["properties"]["input"]["type"] == "string"
    assert list(parameters["properties"]) == ["input"]
    assert words.startswith("Run a script.")


def test_a_grammar_is_told_in_the_description_with_a_worked_patch() -> None:
    tool = {
        "type": "custom",
        "name": "edit",
        "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
    }
    words, _ = describe(tool)
    assert PATCH_GRAMMAR in words
    assert '{"input": "*** Begin Patch\\n*** Update File: ' in words


def test_a_regex_is_told_in_the_description_without_a_patch() -> None:
    tool = {"type": "custom", "name": "t", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}}
    words, _ = describe(tool)
    assert "regular expression:\n[0-9]+" in words
    assert "Begin Patch" not in words


def test_tool_search_keeps_its_own_parameters() -> None:
    tool = {"type": "tool_search", "execution": "client", "description": "Find.", "parameters": PARAMETERS}
    assert describe(tool) == ("Find.", PARAMETERS)


@pytest.mark.parametrize(
    ("tool", "good", "bad"),
    [
        pytest.param(
            {"type": "local_shell"},
            {"command": ["ls"], "env": {"A": "b"}, "timeout_ms": 5, "user": "u", "working_directory": "/"},
            [{}, {"command": []}, {"command": "ls"}, {"command": ["ls"], "x": 1}, {"command": ["l"], "env": {"A": 1}}],
            id="local_shell",
        ),
        pytest.param(
            {"type": "shell"},
            {"commands": ["ls", "pwd"], "timeout_ms": 5, "max_output_length": 9},
            [{}, {"commands": []}, {"commands": ["ls"], "timeout_ms": 0}, {"commands": ["ls"], "x": 1}],
            id="shell",
        ),
        pytest.param(
            {"type": "apply_patch"},
            {"operation": {"type": "update_file", "path": "a", "diff": "@@"}},
            [
                {},
                {"operation": {"type": "update_file", "path": "a"}},
                {"operation": {"type": "delete_file", "path": "a", "diff": "x"}},
                {"operation": {"type": "move_file", "path": "a"}},
                {"operation": {"type": "create_file", "path": "", "diff": "+"}},
            ],
            id="apply_patch",
        ),
        pytest.param({"type": "web_search"}, {"query": "a", "queries": ["b"]}, [{}, {"query": 1}], id="web_search"),
        pytest.param(
            {"type": "web_search_preview"}, {"query": "a"}, [{"queries": ["b"]}, {"query": "a", "x": 1}], id="preview"
        ),
        pytest.param(
            {"type": "mcp", "server_label": "wiki", "allowed_tools": ["ask"]},
            {"name": "ask", "arguments": {}},
            [{}, {"name": "ask"}, {"name": "tell", "arguments": {}}],
            id="mcp",
        ),
    ],
)
def test_builtin_schemas_are_real(tool: dict[str, Any], good: dict[str, Any], bad: list[dict[str, Any]]) -> None:
    words, parameters = describe(tool)
    assert words
    jsonschema_rs.meta.validate(parameters)
    validator = jsonschema_rs.Draft202012Validator(parameters)
    assert validator.is_valid(good)
    assert not any(validator.is_valid(arguments) for arguments in bad)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        pytest.param({"type": "custom", "name": "apply_patch"}, True, id="by-name"),
        pytest.param({"type": "custom", "name": "exec"}, False, id="other-name"),
        pytest.param(
            {
                "type": "custom",
                "name": "apply_patch",
                "format": {"type": "grammar", "syntax": "regex", "definition": ""},
            },
            False,
            id="another-grammar-decides",
        ),
    ],
)
def test_which_tools_expect_a_patch(tool: dict[str, Any], expected: bool) -> None:
    assert expects_patch(tool) is expected
