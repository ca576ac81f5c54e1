"""Which tools a search finds, and what the model is told of those that it could look for."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.tools.catalog import build_tool_catalog
from isthmus.bridge.tools.search import search_tools
from isthmus.bridge.tools.survey import ToolSurvey, survey_tools

Json = dict[str, Any]
SEARCH: Json = {"type": "tool_search"}


def function(name: str, description: str = "", **properties: str) -> Json:
    fields = {key: {"type": "string", "description": words} for key, words in properties.items()}
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": fields},
        "defer_loading": True,
    }


MAIL = function("send_mail", "Send a letter to somebody.", address="Who gets it.")
ROUTE = function("find_route", "The way from one town to another.", start="Town", end="Town")
TICKETS: Json = {
    "type": "namespace",
    "name": "tickets",
    "description": "Everything about support tickets.",
    "tools": [function("listOpen", "All that wait."), function("close", "Settle one.", number="Which ticket.")],
}
TOOLS = [SEARCH, MAIL, ROUTE, TICKETS]


def survey(tools: list[Json] = TOOLS, items: list[Json] | None = None, choice: Any = None, **more: Any) -> ToolSurvey:
    return survey_tools(tools, items or [], choice, more.pop("capabilities", ProviderCapabilities()), **more)


def names(tools: list[Json]) -> list[str]:
    return [name for tool in tools for name in ([tool["name"]] if "tools" not in tool else names(tool["tools"]))]


def offered(found: ToolSurvey) -> list[str]:
    return [plan.source.name for plan in found.offered]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("send mail", ["send_mail"]),
        ("mails", ["send_mail"]),
        ("SendMail", ["send_mail"]),
        ("somebody's address", ["send_mail"]),
        ("towns", ["find_route"]),
        ("tickets", ["listOpen", "close"]),
        ("close a ticket", ["close", "listOpen"]),
        ("list open", ["listOpen"]),
        ("paint a picture", []),
        ("", []),
    ],
)
def test_the_best_fit_comes_first(query: str, found: list[str]) -> None:
    assert names(search_tools({"query": query}, survey().deferred)) == found


def test_a_namespace_comes_with_its_own_words_and_only_with_what_was_found() -> None:
    assert search_tools({"query": "settle"}, survey().deferred) == [
        {
            "type": "namespace",
            "name": "tickets",
            "description": "Everything about support tickets.",
            "tools": [TICKETS["tools"][1]],
        }
    ]


@pytest.mark.parametrize(("limit", "count"), [(None, 8), (3, 3), (0, 1), (99, 20), ("many", 8)])
def test_a_search_loads_a_bounded_number(limit: Any, count: int) -> None:
    many = survey([SEARCH, *(function(f"tool_{number}", "Does things.") for number in range(30))])
    assert len(search_tools({"query": "things", "limit": limit}, many.deferred)) == count


def test_arguments_of_another_shape_are_read_all_the_same() -> None:
    assert names(search_tools({"paths": ["tickets"], "queries": [{"q": "mail"}]}, survey().deferred))[0] == "send_mail"


def test_what_is_found_stands_for_the_same_tool_when_it_comes_back() -> None:
    found = search_tools({"query": "settle"}, survey().deferred)
    items = [{"type": "tool_search_output", "tools": found, "execution": "server"}]
    again = survey(items=items)
    assert [entry.path for entry in build_tool_catalog(TOOLS, items)] == [plan.source.path for plan in again.declared]
    assert offered(again) == ["tool_search", "close"]
    assert [plan.identity for plan in survey().declared] == [plan.identity for plan in again.declared]


def test_the_model_is_told_what_there_is_to_find_in_few_words() -> None:
    told = survey().offered[0].description
    assert told.splitlines()[2:] == [
        "- send_mail: Send a letter to somebody.",
        "- find_route: The way from one town to another.",
        "- tickets: Everything about support tickets.",
    ]


def test_a_long_list_is_cut_and_says_so() -> None:
    tools = [SEARCH, *(function(f"tool_{number}", "word " * 100) for number in range(150))]
    told = survey(tools).offered[0].description
    assert "… and 50 more" in told
    assert len(told) < 20_000


def test_nothing_is_deferred_without_a_search_that_runs_here() -> None:
    client = {"type": "tool_search", "execution": "client"}
    assert survey([MAIL]).deferred == survey([client, MAIL]).deferred == ()
    assert offered(survey([client, MAIL])) == ["tool_search", "send_mail"]


def test_a_search_with_nothing_to_find_is_not_offered() -> None:
    found = survey([SEARCH, {**MAIL, "defer_loading": False}])
    assert offered(found) == ["send_mail"]
    assert found.declared[0].decision.action == "ignored"


def test_whoever_has_searched_enough_is_told_of_every_tool() -> None:
    assert offered(survey(search=False)) == ["send_mail", "find_route", "listOpen", "close"]


def test_a_tool_that_the_choice_names_does_not_wait() -> None:
    found = survey(choice={"type": "function", "name": "find_route"})
    assert offered(found) == ["tool_search", "find_route"]
    assert found.forced == "function"


def test_a_codex_thread_is_told_of_all_tools_at_its_start() -> None:
    found = survey(capabilities=ProviderCapabilities(dialect="codex"))
    assert (found.deferred, "tool_search" in offered(found)) == ((), False)


def test_tools_deferred_by_themselves_are_called_in_a_namespace_of_their_own_name() -> None:
    spaces = {plan.source.name: plan.identity.namespace for plan in survey().declared if plan.identity is not None}
    assert spaces == {
        "tool_search": None, "send_mail": "send_mail", "find_route": "find_route", "listOpen": "tickets",
        "close": "tickets",
    }  # fmt: skip
