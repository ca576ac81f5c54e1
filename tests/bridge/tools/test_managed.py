"""What the host runs: who wins, what the model is told instead, and what a call asks for, read and read again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ProviderCapabilities, ToolChoiceSupport, ToolSupport
from isthmus.bridge.tools.catalog import create_provider_name_allocator
from isthmus.bridge.tools.choice import plan_provider_tool_choice, read_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.tools.managed import (
    MAX_QUERIES,
    asked_by,
    managed_kind,
    plan_managed,
    read_arguments,
    recall,
    shape_managed,
)
from isthmus.bridge.tools.pictures import image_made
from isthmus.bridge.tools.search import search_tools
from isthmus.bridge.tools.survey import ToolSurvey, plan_tools, survey_tools
from isthmus.bridge.types.managed import PICTURES, Listing, Managed
from isthmus.bridge.types.tools import CatalogTool, ToolIdentity
from isthmus.protocol.json import write_json

PLAIN = ProviderCapabilities()
OWN = ProviderCapabilities(tools=ToolSupport(native=frozenset({"function", "web_search", "mcp"})))
CACHED = ProviderCapabilities(
    tools=ToolSupport(native=frozenset({"function", "web_search"}), cached_search=True, as_is=True)
)
SEARCH = Managed(search="searxng")
DOCS: dict[str, Any] = {
    "type": "mcp",
    "server_label": "docs",
    "server_url": "https://docs.example",
    "headers": {"k": "v"},
}
ASK = {
    "name": "ask",
    "description": "Ask.",
    "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
}
TOLD = {"name": "ask", "description": "Ask.", "parameters": ASK["input_schema"]}
READ = {"name": "read", "input_schema": {"type": "object", "properties": {}}}
SERVER = Managed(mcp={"docs": Listing((ASK, READ))})
NAMES = ["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"]


def survey(*tools: dict[str, Any], managed: Managed, facts: ProviderCapabilities = PLAIN, **more: Any) -> ToolSurvey:
    return survey_tools(list(tools), (), more.pop("choice", None), facts, managed=managed, **more)


def identities(found: ToolSurvey) -> list[ToolIdentity]:
    return [plan.identity for plan in found.offered if plan.identity is not None]


@pytest.mark.parametrize("name", NAMES)
def test_a_search_under_any_name_is_a_function_of_one_name(name: str) -> None:
    found = survey({"type": name}, managed=SEARCH)
    (identity,) = identities(found)
    assert (identity.provider_name, identity.provider_type, identity.managed) == (
        "web_search",
        "function",
        "web_search",
    )
    assert identity.requested_type == name
    (declared,) = found.declared
    assert declared.decision.action == "supported"
    assert "searxng" in declared.decision.reason
    assert declared.decision.metadata["runs"] == "here"
    (sent,) = render_provider_tool_declarations(plan_tools(found).declarations)
    assert sent["function"]["parameters"]["required"] == ["query"]


ROWS: list[tuple[str, dict[str, Any], ProviderCapabilities, Managed, str, str | None]] = [
    ("nobody runs it", {}, PLAIN, Managed(), "ignored", None),
    ("the provider's own wins", {}, OWN, SEARCH, "supported", None),
    ("unless ours is preferred", {}, OWN, Managed(search="x", prefers=frozenset({"web_search"})), "supported", "here"),
    ("off the live web", {"external_web_access": False}, PLAIN, SEARCH, "ignored", None),
    (
        "off the live web, kept results",
        {"external_web_access": False},
        PLAIN,
        Managed("x", offline=True),
        "supported",
        "here",
    ),
    (
        "the provider's own cannot be kept off",
        {"external_web_access": False},
        OWN,
        Managed("x", offline=True),
        "supported",
        "here",
    ),
    ("the provider's own can", {"external_web_access": False}, CACHED, Managed("x", offline=True), "supported", None),
    ("the live web, said aloud", {"external_web_access": True}, PLAIN, SEARCH, "supported", "here"),
]


@pytest.mark.parametrize(
    ("options", "facts", "managed", "action", "runs"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_who_runs_a_search(
    options: dict[str, Any], facts: ProviderCapabilities, managed: Managed, action: str, runs: str | None
) -> None:
    (declared,) = survey({"type": "web_search", **options}, managed=managed, facts=facts).declared
    assert (declared.decision.action, declared.decision.metadata.get("runs")) == (action, runs)


def test_the_tools_of_a_server_are_functions_of_their_own() -> None:
    found = survey(DOCS, managed=SERVER)
    assert [i.provider_name for i in identities(found)] == ["docs__ask", "docs__read"]
    assert {(i.namespace, i.requested_name, i.managed) for i in identities(found)} == {
        ("docs", "ask", "mcp"),
        ("docs", "read", "mcp"),
    }
    first, second = found.declared
    assert (first.decision.path, second.decision.path) == ("tools[0].tools[0]", "tools[0].tools[1]")
    assert (first.description, first.parameters) == ("Ask.", ASK["input_schema"])
    assert found.listings == dict(SERVER.mcp)
    assert plan_tools(found).listings == found.listings


def test_a_server_that_the_provider_calls_is_not_listed() -> None:
    found = survey(DOCS, managed=SERVER, facts=OWN)
    assert (found.listings, [i.managed for i in identities(found)]) == ({}, [None])


@pytest.mark.parametrize(
    ("listing", "word"),
    [(Listing(error={"type": "http_error", "code": 503, "message": "it sleeps"}), "it sleeps"), (Listing(), "no tool")],
    ids=["an error", "nothing"],
)
def test_a_server_without_tools_is_left_out_and_says_why(listing: Listing, word: str) -> None:
    found = survey(DOCS, managed=Managed(mcp={"docs": listing}))
    (declared,) = found.declared
    assert (declared.decision.action, found.offered) == ("ignored", ())
    assert word in declared.decision.reason
    assert "docs" in found.listings


def test_a_spent_budget_takes_the_offer_back_and_keeps_the_names() -> None:
    function = {"type": "function", "name": "mine"}
    found = survey({"type": "web_search"}, DOCS, function, managed=Managed("x", mcp=SERVER.mcp), spent=True)
    assert [i.requested_name for i in identities(found)] == ["mine"]
    assert found.identities.by_request("ask", "docs") is not None
    assert found.identities.by_request("web_search") is not None


def test_a_thread_of_codex_is_left_its_own_tools() -> None:
    (declared,) = survey({"type": "web_search"}, managed=SEARCH, facts=ProviderCapabilities(dialect="codex")).declared
    assert declared.identity is None
    (here,) = survey({"type": "web_search"}, managed=SEARCH).declared
    assert here.identity is not None


def test_pages_can_be_opened_only_where_the_host_does() -> None:
    (closed,) = survey({"type": "web_search"}, managed=SEARCH).declared
    (opened,) = survey({"type": "web_search"}, managed=Managed("x", pages=True)).declared
    assert closed.parameters is not None
    assert opened.parameters is not None
    assert "url" not in closed.parameters["properties"]
    assert {"url", "pattern"} <= opened.parameters["properties"].keys()


def test_tools_of_a_server_may_wait_for_a_search_that_shows_nothing_of_its_credentials() -> None:
    server = {**DOCS, "defer_loading": True, "authorization": "sk-1"}
    tools = [{"type": "tool_search"}, server, {"type": "function", "name": "mine"}]
    found = survey(*tools, managed=SERVER)
    assert [plan.source.name for plan in found.deferred] == ["ask", "read"]
    assert [i.requested_name for i in identities(found)] == ["tool_search", "mine"]
    shown = search_tools({"query": "ask"}, found.deferred)
    assert shown == [{"type": "namespace", "name": "docs", "description": "", "tools": [{"type": "function", **TOLD}]}]
    # What was found is offered from then on, and is nobody's but the server's.
    item = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": shown}
    later = survey_tools(tools, [item], None, PLAIN, managed=SERVER)
    assert [plan.source.name for plan in later.deferred] == ["read"]
    assert [(i.provider_name, i.managed) for i in identities(later)] == [
        ("tool_search", None),
        ("docs__ask", "mcp"),
        ("mine", None),
    ]
    assert later.identities.by_request("ask", "docs") is not None
    assert identities(later)[1].tool["authorization"] == "sk-1"


CHOICES: list[tuple[Any, str, frozenset[str] | None]] = [
    ({"type": "web_search_preview"}, "named", None),
    ({"type": "mcp", "server_label": "docs", "name": "read"}, "named", None),
    ({"type": "mcp", "server_label": "docs"}, "required", frozenset({"docs__ask", "docs__read"})),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "docs"}]},
        "auto",
        frozenset({"docs__ask", "docs__read"}),
    ),
]


@pytest.mark.parametrize(("choice", "mode", "keep"), CHOICES)
def test_a_choice_finds_what_runs_here(choice: Any, mode: str, keep: frozenset[str] | None) -> None:
    forces = ToolChoiceSupport(supported=frozenset({"auto", "none", "required", "function"}))
    found = survey({"type": "web_search"}, DOCS, managed=Managed("x", mcp=SERVER.mcp))
    plan = plan_provider_tool_choice(read_tool_choice(choice), found.offered, forces)
    assert (plan.mode, plan.keep) == (mode, keep)
    assert plan.decision is not None
    assert plan.decision.action == "supported"


def test_where_nothing_can_be_required_words_do_it() -> None:
    found = survey(DOCS, managed=SERVER)
    choice = read_tool_choice({"type": "mcp", "server_label": "docs"})
    plan = plan_provider_tool_choice(choice, found.offered, ToolChoiceSupport())
    assert (plan.mode, plan.decision.action if plan.decision else "", bool(plan.instruction)) == (
        "auto",
        "degraded",
        True,
    )


# A call and its item


def identity(kind: Any, **more: Any) -> ToolIdentity:
    return ToolIdentity(more.pop("name", kind), kind, kind, "function", managed=kind, **more)


SHAPES: list[tuple[ToolIdentity, str, dict[str, Any]]] = [
    (
        identity("web_search"),
        '{"query": "otters", "queries": ["sea otters"]}',
        {
            "type": "web_search_call",
            "action": {"type": "search", "query": "otters", "queries": ["otters", "sea otters"]},
        },
    ),
    (
        identity("web_search"),
        '{"url": "https://a.example"}',
        {"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.example"}},
    ),
    (
        identity("web_search"),
        '{"url": "https://a.example", "pattern": "otter"}',
        {"type": "web_search_call", "action": {"type": "find_in_page", "url": "https://a.example", "pattern": "otter"}},
    ),
    (
        identity("mcp", name="ask", namespace="docs"),
        '{"q": 1}',
        {
            "type": "mcp_call",
            "server_label": "docs",
            "name": "ask",
            "arguments": '{"q": 1}',
            "output": None,
            "error": None,
            "approval_request_id": None,
        },
    ),
    (
        identity("mcp", name="ask", namespace="docs", asks=True),
        "",
        {"type": "mcp_approval_request", "server_label": "docs", "name": "ask", "arguments": "{}"},
    ),
    (
        identity("image_generation"),
        '{"prompt": "an otter"}',
        {"type": "image_generation_call", "result": None, "revised_prompt": "an otter"},
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "expected"), SHAPES)
def test_a_call_is_told_as_the_item_of_its_kind(tool: ToolIdentity, arguments: str, expected: dict[str, Any]) -> None:
    assert shape_managed(tool, arguments) == {**expected, "id": "", "status": "in_progress"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"query": "a"}', {"query": "a"}),
        ('{"queries": ["a", "b", "a", 3, " "]}', {"query": "a", "queries": ["b"]}),
        ('{"query": "a", "queries": "b"}', {"query": "a", "queries": ["b"]}),
        ('"{\\"query\\": \\"a\\"}"', {"query": "a"}),
        ("otters in spring", {"query": "otters in spring"}),
        ("{}", {"query": ""}),
        ("", {"query": ""}),
    ],
)
def test_whatever_a_model_says_can_be_looked_for(arguments: str, expected: dict[str, Any]) -> None:
    assert read_arguments("web_search", arguments) == expected


def test_a_search_has_no_more_wordings_than_it_may() -> None:
    many = write_json({"queries": [f"q{number}" for number in range(50)]})
    assert len(read_arguments("web_search", many)["queries"]) == MAX_QUERIES - 1


texts = st.text(max_size=12)
queries = st.fixed_dictionaries({}, optional={"query": texts, "queries": st.lists(texts, max_size=12), "url": texts})


@given(queries)
def test_an_item_says_what_was_asked_in_the_same_words_again_and_again(asked: dict[str, Any]) -> None:
    item = shape_managed(identity("web_search"), write_json(asked))
    name, label, text = asked_by(item)
    assert (name, label) == ("web_search", None)
    assert read_arguments("web_search", text) == read_arguments("web_search", write_json(asked))
    assert asked_by(shape_managed(identity("web_search"), text))[2] == text


@given(st.text(max_size=30))
def test_the_arguments_of_a_past_call_are_always_an_object(given_text: str) -> None:
    for tool in (identity("mcp", name="ask", namespace="docs"), identity("image_generation"), identity("web_search")):
        assert isinstance(read_arguments("mcp", asked_by(shape_managed(tool, given_text))[2]), dict)


@pytest.mark.parametrize(("kind", "found"), [("function", None), ("mcp", "mcp"), ("file_search", None)])
def test_only_three_kinds_can_run_here(kind: str, found: str | None) -> None:
    assert managed_kind(kind) == found


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({}, []),
        ({"user_location": None}, []),
        ({"user_location": {"type": "approximate", "country": "DE"}}, ["user_location"]),
        ({"image_settings": {"max_results": 3}}, ["image_settings"]),
        ({"filters": {"allowed_domains": ["a.example"]}, "search_context_size": "low"}, []),
    ],
)
def test_what_an_engine_cannot_be_told_is_said(options: dict[str, Any], lost: list[str]) -> None:
    managed = Managed(search="searxng", unheard=frozenset({"user_location"}))
    tool = CatalogTool("tools[0]", "web_search", "web_search", None, {"type": "web_search", **options})
    (planned,) = plan_managed(tool, ToolSupport(), managed, create_provider_name_allocator())
    assert planned.decision.action == ("degraded" if lost else "supported")
    assert [
        name for name in ("user_location", "image_settings") if f"`{name}`" in (planned.decision.reason or "")
    ] == lost


PICTURE = "data:image/png;base64,iVBORw0KGgo="
SHOWN = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": PICTURE}]}
DRAWN = {"type": "image_generation_call", "result": "/9j/4AAQ", "status": "completed"}
FAR = {"type": "function_call_output", "output": [{"type": "input_image", "image_url": "https://x/y.png"}]}
SCREEN = {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": PICTURE}}


@pytest.mark.parametrize(
    ("action", "items", "edits", "asks"),
    [
        (None, [SHOWN], 5, True),
        ("auto", [SHOWN], 5, True),
        ("generate", [SHOWN], 5, False),
        ("edit", [SHOWN], 5, False),
        (None, [], 5, False),
        (None, [SHOWN], 0, False),
    ],
)
def test_the_model_chooses_to_change_an_image_only_where_that_is_open(
    action: str | None, items: Any, edits: int, asks: bool
) -> None:
    tool = {"type": "image_generation", **({"action": action} if action else {})}
    managed = Managed(images="demo/demo-image", edits=edits)
    (plan,) = survey_tools([tool], items, None, PLAIN, managed=managed).offered
    assert plan.parameters is not None
    assert ("change" in plan.parameters["properties"]) == asks
    assert plan.identity is not None
    assert plan.identity.tool[PICTURES] == ([PICTURE] if items and edits else [])
    assert plan.decision.action == "supported"


def test_options_that_are_not_had_are_told() -> None:
    managed = Managed(images="demo/demo-image", lost=("size", "background"))
    (plan,) = survey({"type": "image_generation", "size": "9x9"}, managed=managed).offered
    assert plan.decision.action == "degraded"
    assert plan.decision.metadata["left_out"] == ["size"]
    assert "does not take `size` as asked for" in plan.decision.reason


def test_what_the_model_is_told_of_an_image_is_read_back_from_its_item() -> None:
    assert recall(DRAWN) == image_made("/9j/4AAQ")
    assert recall({**DRAWN, "result": None}) is None
