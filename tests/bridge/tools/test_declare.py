"""One tool's fate, and the declaration that the provider gets to see."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from isthmus.bridge.capabilities import ToolSupport
from isthmus.bridge.tools.builtin import expects_patch
from isthmus.bridge.tools.catalog import build_tool_catalog
from isthmus.bridge.tools.declare import plan_tool_declaration, render_provider_tool_declarations
from isthmus.bridge.tools.names import create_provider_name_allocator
from isthmus.bridge.types.tools import ToolDeclarationPlan
from isthmus.providers import load_provider
from isthmus.providers.responses import responses_capabilities

PLAIN = ToolSupport()
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "The weather.", "parameters": PARAMETERS}
PATCH_GRAMMAR = 'start: "*** Begin Patch" LF /(.+)/ LF "*** End Patch" LF?\n%import common.LF'


def plan(tool: dict[str, Any], support: ToolSupport = PLAIN) -> ToolDeclarationPlan:
    (entry,) = build_tool_catalog([tool])
    return plan_tool_declaration(entry, support, create_provider_name_allocator())


def declare(tool: dict[str, Any], support: ToolSupport = PLAIN) -> dict[str, Any]:
    (declaration,) = render_provider_tool_declarations([plan(tool, support)])
    return declaration


SEARCHING = ToolSupport(
    native=frozenset({"function", "web_search", "mcp"}),
    degraded={"custom": "function", "web_search_preview": "web_search", "file_search": "retrieval"},
)


@pytest.mark.parametrize(
    ("tool", "support", "action", "provider_type"),
    [
        pytest.param(WEATHER, PLAIN, "supported", "function", id="native-function-is-supported"),
        pytest.param({"type": "web_search"}, SEARCHING, "supported", "web_search", id="native-search-is-supported"),
        pytest.param({"type": "custom", "name": "x"}, PLAIN, "degraded", "function", id="custom-is-degraded"),
        pytest.param({"type": "local_shell"}, PLAIN, "degraded", "function", id="local_shell-is-degraded"),
        pytest.param({"type": "shell"}, PLAIN, "degraded", "function", id="shell-is-degraded"),
        pytest.param({"type": "apply_patch"}, PLAIN, "degraded", "function", id="apply_patch-is-degraded"),
        pytest.param(
            {"type": "tool_search", "execution": "client"},
            PLAIN,
            "degraded",
            "function",
            id="client-tool-search",
        ),
        pytest.param({"type": "web_search_preview"}, SEARCHING, "degraded", "web_search", id="preview-is-degraded"),
        pytest.param(
            {"type": "file_search", "vector_store_ids": ["v"]}, SEARCHING, "degraded", "retrieval", id="files-degraded"
        ),
        pytest.param({"type": "code_interpreter"}, PLAIN, "ignored", None, id="unsupported-is-ignored"),
        pytest.param({"type": "mcp", "server_label": "w"}, PLAIN, "ignored", None, id="mcp-without-support-is-ignored"),
        pytest.param({"type": "tool_search"}, PLAIN, "degraded", "function", id="server-tool-search"),
        pytest.param({"type": "file_search"}, SEARCHING, "ignored", None, id="file-search-without-store-is-ignored"),
        pytest.param({"type": "namespace", "name": "n", "tools": []}, PLAIN, "ignored", None, id="empty-namespace"),
        pytest.param({"type": "image_generation"}, PLAIN, "ignored", None, id="images-are-ignored"),
        pytest.param({"type": "computer"}, PLAIN, "ignored", None, id="computer-is-ignored"),
        pytest.param({"type": "programmatic_tool_calling"}, PLAIN, "ignored", None, id="programs-are-ignored"),
        pytest.param(
            {**WEATHER, "allowed_callers": ["programmatic"]}, PLAIN, "degraded", "function", id="called-by-programs"
        ),
        pytest.param(
            {**WEATHER, "allowed_callers": ["direct", "programmatic"]}, PLAIN, "supported", "function", id="by-both"
        ),
        pytest.param({**WEATHER, "async": True}, PLAIN, "degraded", "function", id="async"),
        pytest.param({**WEATHER, "async": False}, PLAIN, "supported", "function", id="not-async"),
        pytest.param({"type": "file_search"}, PLAIN, "rejected", None, id="no-vector-stores"),
        pytest.param(
            {"type": "shell", "environment": {"type": "local"}}, PLAIN, "degraded", "function", id="shell-here"
        ),
        pytest.param(
            {"type": "shell", "environment": {"type": "container_auto"}}, PLAIN, "rejected", None, id="shell-container"
        ),
        pytest.param(
            {"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}},
            PLAIN,
            "rejected",
            None,
            id="shell-in-a-named-container",
        ),
        pytest.param(
            {"type": "mcp", "server_label": "w", "connector_id": "c"}, PLAIN, "rejected", None, id="mcp-connector"
        ),
    ],
)
def test_decision_table(tool: dict[str, Any], support: ToolSupport, action: str, provider_type: str | None) -> None:
    planned = plan(tool, support)
    assert planned.decision.action == action
    assert planned.decision.path == "tools[0]"
    assert planned.decision.code == "bridge.tool.compatibility"
    assert planned.decision.reason
    assert (planned.identity.provider_type if planned.identity else None) == provider_type


def test_mcp_degrades_to_a_function_where_the_provider_file_says_so() -> None:
    support = ToolSupport(degraded={"mcp": "function"})
    shape = declare({"type": "mcp", "server_label": "wiki", "allowed_tools": ["ask"]}, support)["function"]
    assert shape["name"] == "wiki"
    assert shape["parameters"]["properties"]["name"]["enum"] == ["ask"]


def test_an_ignored_tool_takes_no_name_and_is_not_rendered() -> None:
    planned = plan({"type": "computer_use_preview"})
    assert planned.identity is None
    assert render_provider_tool_declarations([planned]) == []


def test_function_declaration() -> None:
    assert declare(WEATHER) == {
        "type": "function",
        "function": {"name": "weather", "description": "The weather.", "parameters": PARAMETERS},
    }


def test_a_function_without_description_or_parameters() -> None:
    assert declare({"type": "function", "name": "ping"}) == {
        "type": "function",
        "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}},
    }


@pytest.mark.parametrize("strict", [True, False])
def test_strict_is_forwarded_where_it_is_taken(strict: bool) -> None:
    shape = declare({**WEATHER, "strict": strict}, ToolSupport(strict=True))
    assert shape["function"]["strict"] is strict


def test_strict_that_cannot_be_had_is_reported() -> None:
    planned = plan({**WEATHER, "strict": True})
    assert planned.decision.action == "degraded"
    assert "strict" not in render_provider_tool_declarations([planned])[0]["function"]
    assert plan({**WEATHER, "strict": False}).decision.action == "supported"


def test_a_projected_schema_is_reported_and_the_original_kept() -> None:
    tool = {**WEATHER, "parameters": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}}
    planned = plan(tool, ToolSupport(drop_keywords=frozenset({"minimum"})))
    assert planned.decision.action == "degraded"
    assert planned.decision.code == "bridge.tool.schema_projected"
    assert planned.decision.metadata["dropped_keywords"] == ["minimum"]
    assert planned.source.tool["parameters"]["properties"]["n"]["minimum"] == 1
    assert planned.parameters is not None
    assert "minimum" not in planned.parameters["properties"]["n"]


def test_the_words_of_a_namespace_reach_the_model() -> None:
    space = {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [WEATHER]}
    (entry,) = build_tool_catalog([space])
    planned = plan_tool_declaration(entry, PLAIN, create_provider_name_allocator())
    assert planned.description == "Part of `agents`: Helpers.\n\nThe weather."


def test_custom_becomes_one_required_string() -> None:
    shape = declare({"type": "custom", "name": "exec", "description": "Run a script."})["function"]
    assert shape["parameters"]["required"] == ["input"]
    assert shape["parameters"]["properties"]["input"]["type"] == "string"
    assert list(shape["parameters"]["properties"]) == ["input"]
    assert shape["description"].startswith("Run a script.")


def test_a_grammar_is_told_in_the_description_with_a_worked_patch() -> None:
    tool = {
        "type": "custom",
        "name": "edit",
        "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
    }
    words = declare(tool)["function"]["description"]
    assert PATCH_GRAMMAR in words
    assert '{"input": "*** Begin Patch\\n*** Update File: ' in words


def test_a_regex_is_told_in_the_description_without_a_patch() -> None:
    tool = {"type": "custom", "name": "t", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}}
    words = declare(tool)["function"]["description"]
    assert "regular expression:\n[0-9]+" in words
    assert "Begin Patch" not in words


def test_tool_search_keeps_its_own_parameters() -> None:
    tool = {"type": "tool_search", "execution": "client", "description": "Find.", "parameters": PARAMETERS}
    assert declare(tool)["function"] == {"name": "tool_search", "description": "Find.", "parameters": PARAMETERS}


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
    ],
)
def test_builtin_schemas_are_real(tool: dict[str, Any], good: dict[str, Any], bad: list[dict[str, Any]]) -> None:
    shape = declare(tool)["function"]
    assert shape["name"] == tool["type"]
    assert shape["description"]
    jsonschema_rs.meta.validate(shape["parameters"])
    validator = jsonschema_rs.Draft202012Validator(shape["parameters"])
    assert validator.is_valid(good)
    assert not any(validator.is_valid(arguments) for arguments in bad)


def test_taking_keywords_out_of_our_own_schema_is_no_loss_to_the_client() -> None:
    planned = plan({"type": "apply_patch"}, ToolSupport(drop_keywords=frozenset({"oneOf", "const", "minLength"})))
    assert planned.decision.code == "bridge.tool.compatibility"
    assert "dropped_keywords" not in planned.decision.metadata


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


# -- tools that the provider runs itself ---------------------------------------------------------------------------

ZHIPU_LIKE = {
    "web_search": {
        "web_search": {
            "enable": True,
            "search_engine": "search_std",
            "content_size": {"{search_context_size}": {"high": "high", "*": "medium"}},
            "search_domain_filter": "{allowed_domain}",
            "user_location": "{user_location}",
            "search_result": True,
        }
    }
}
XIAOMI_LIKE = {
    "web_search": {
        "max_keyword": 3,
        "limit": {"{content_size}": {"high": 5, "*": 3}},
        "user_location": "{user_location}",
    }
}


def hosted(declarations: dict[str, Any]) -> ToolSupport:
    return ToolSupport(
        native=frozenset({"function", "web_search", "mcp"}),
        degraded={"file_search": "retrieval"},
        declarations=declarations,
    )


def test_web_search_without_a_template_is_only_its_type() -> None:
    assert declare({"type": "web_search"}, hosted({})) == {"type": "web_search"}


def test_web_search_fills_the_providers_template() -> None:
    place = {"type": "approximate", "country": "DE"}
    tool = {
        "type": "web_search",
        "search_context_size": "high",
        "filters": {"allowed_domains": ["example.com"]},
        "user_location": place,
    }
    planned = plan(tool, hosted(ZHIPU_LIKE))
    assert planned.decision.action == "supported"
    assert planned.fields == {
        "type": "web_search",
        "web_search": {
            "enable": True,
            "search_engine": "search_std",
            "content_size": "high",
            "search_domain_filter": "example.com",
            "user_location": place,
            "search_result": True,
        },
    }


def test_placeholders_without_a_value_leave_their_key_out() -> None:
    assert declare({"type": "web_search"}, hosted(ZHIPU_LIKE))["web_search"] == {
        "enable": True,
        "search_engine": "search_std",
        "content_size": "medium",
        "search_result": True,
    }


@pytest.mark.parametrize(("size", "limit"), [("high", 5), ("low", 3), (None, 3)])
def test_a_choice_in_a_template_picks_by_value(size: str | None, limit: int) -> None:
    tool = {"type": "web_search", **({"search_context_size": size} if size else {})}
    expected = {"type": "web_search", "max_keyword": 3, "limit": limit}
    assert declare(tool, hosted(XIAOMI_LIKE)) == expected


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        pytest.param({"filters": {"allowed_domains": ["a", "b"]}}, ["filters.allowed_domains"], id="only-the-first"),
        pytest.param({"filters": {"blocked_domains": ["a"]}}, ["filters.blocked_domains"], id="no-room"),
        pytest.param({"search_content_types": ["text"]}, ["search_content_types"], id="unknown-option"),
        pytest.param({"external_web_access": True}, [], id="the-default-is-no-loss"),
    ],
)
def test_options_that_find_no_place_are_reported(options: dict[str, Any], left_out: list[str]) -> None:
    decision = plan({"type": "web_search", **options}, hosted(ZHIPU_LIKE)).decision
    assert decision.metadata.get("left_out", []) == left_out
    assert decision.action == ("degraded" if left_out else "supported")


def test_retrieval_takes_the_first_store_and_says_so_when_there_are_more() -> None:
    planned = plan({"type": "file_search", "vector_store_ids": ["v1", "v2"]}, hosted({}))
    assert planned.fields == {"type": "retrieval", "retrieval": {"knowledge_id": "v1"}}
    assert planned.decision.metadata["left_out"] == ["vector_store_ids"]


def test_mcp_declaration_carries_the_servers_settings() -> None:
    settings = {
        "server_label": "wiki",
        "server_url": "https://example.com/mcp",
        "headers": {"X-Key": "secret"},
        "allowed_tools": ["ask"],
        "require_approval": "never",
    }
    planned = plan({"type": "mcp", **settings}, hosted({"mcp": {"mcp": {"transport_type": "streamable-http"}}}))
    assert planned.fields == {"type": "mcp", "mcp": {**settings, "transport_type": "streamable-http"}}
    assert planned.decision.action == "supported"
    assert "secret" not in str(planned.decision)


def test_a_template_may_change_the_type() -> None:
    template = {"web_search": {"type": "builtin_function", "function": {"name": "$web_search"}}}
    assert declare({"type": "web_search"}, hosted(template)) == template["web_search"]


@pytest.mark.parametrize("kind", ["web_search", "web_search_preview"])
def test_a_search_that_is_always_live_is_not_sent_where_the_client_forbids_it(kind: str) -> None:
    facts = load_provider("zhipu").capabilities("glm-5").tools
    assert plan({"type": kind}, facts).identity is not None
    forbidden = plan({"type": kind, "external_web_access": False}, facts)
    assert (forbidden.identity, forbidden.decision.action) == (None, "ignored")
    assert "external_web_access" in forbidden.decision.reason


def test_a_search_that_can_stay_off_the_live_web_is_told_to() -> None:
    provider = load_provider("openai")
    assert provider.responses is not None
    facts = responses_capabilities(provider.capabilities("gpt-5.6"), provider.responses).tools
    search = {"type": "web_search", "external_web_access": False}
    assert plan(search, facts).fields == search
