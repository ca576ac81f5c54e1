"""One tool's fate, and the declaration that the provider gets to see."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ToolSupport
from isthmus.bridge.tools.catalog import build_tool_catalog, create_provider_name_allocator
from isthmus.bridge.tools.declare import plan_tool_declaration, render_provider_tool_declarations
from isthmus.bridge.types.tools import ToolDeclarationPlan
from isthmus.providers import load_provider
from isthmus.providers.responses import responses_capabilities

PLAIN = ToolSupport()
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "The weather.", "parameters": PARAMETERS}


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
        pytest.param({"type": "file_search"}, PLAIN, "ignored", None, id="no-vector-stores"),
        pytest.param(
            {"type": "shell", "environment": {"type": "local"}}, PLAIN, "degraded", "function", id="shell-here"
        ),
        pytest.param(
            {"type": "shell", "environment": {"type": "container_auto"}}, PLAIN, "ignored", None, id="shell-container"
        ),
        pytest.param(
            {"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}},
            PLAIN,
            "ignored",
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


def test_taking_keywords_out_of_our_own_schema_is_no_loss_to_the_client() -> None:
    planned = plan({"type": "apply_patch"}, ToolSupport(drop_keywords=frozenset({"oneOf", "const", "minLength"})))
    assert planned.decision.code == "bridge.tool.compatibility"
    assert "dropped_keywords" not in planned.decision.metadata


# -- tools that the provider runs itself ---------------------------------------------------------------------------


def hosted(declarations: dict[str, Any]) -> ToolSupport:
    return ToolSupport(
        native=frozenset({"function", "web_search", "mcp"}),
        degraded={"file_search": "retrieval"},
        declarations=declarations,
    )


def test_options_that_find_no_place_are_reported() -> None:
    template = {"web_search": {"web_search": {"search_domain_filter": "{allowed_domain}"}}}
    lost = plan({"type": "web_search", "filters": {"allowed_domains": ["a", "b"]}}, hosted(template)).decision
    assert (lost.action, lost.metadata["left_out"]) == ("degraded", ["filters.allowed_domains"])
    kept = plan({"type": "web_search", "filters": {"allowed_domains": ["a"]}}, hosted(template)).decision
    assert (kept.action, "left_out" in kept.metadata) == ("supported", False)


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
