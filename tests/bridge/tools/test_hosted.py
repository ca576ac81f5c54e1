"""Declarations of tools that the provider runs: filled from its template, and what finds no place in it."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.tools.hosted import fill_declaration

SEARCH = {"type": "web_search"}
ZHIPU_LIKE = {
    "web_search": {
        "enable": True,
        "search_engine": "search_std",
        "content_size": {"{search_context_size}": {"high": "high", "*": "medium"}},
        "search_domain_filter": "{allowed_domain}",
        "user_location": "{user_location}",
        "search_result": True,
    }
}
XIAOMI_LIKE = {
    "max_keyword": 3,
    "limit": {"{content_size}": {"high": 5, "*": 3}},
    "user_location": "{user_location}",
}


def test_web_search_without_a_template_is_only_its_type() -> None:
    assert fill_declaration("web_search", SEARCH, None) == ({"type": "web_search"}, ())


def test_web_search_fills_the_providers_template() -> None:
    place = {"type": "approximate", "country": "DE"}
    tool = {
        "type": "web_search",
        "search_context_size": "high",
        "filters": {"allowed_domains": ["example.com"]},
        "user_location": place,
    }
    declaration, left_out = fill_declaration("web_search", tool, ZHIPU_LIKE)
    assert left_out == ()
    assert declaration == {
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
    assert fill_declaration("web_search", SEARCH, ZHIPU_LIKE)[0]["web_search"] == {
        "enable": True,
        "search_engine": "search_std",
        "content_size": "medium",
        "search_result": True,
    }


@pytest.mark.parametrize(("size", "limit"), [("high", 5), ("low", 3), (None, 3)])
def test_a_choice_in_a_template_picks_by_value(size: str | None, limit: int) -> None:
    tool = {**SEARCH, **({"search_context_size": size} if size else {})}
    expected = {"type": "web_search", "max_keyword": 3, "limit": limit}
    assert fill_declaration("web_search", tool, XIAOMI_LIKE) == (expected, ())


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
    assert fill_declaration("web_search", {**SEARCH, **options}, ZHIPU_LIKE)[1] == tuple(left_out)


def test_parts_of_a_place_and_lists_have_placeholders_of_their_own() -> None:
    template = {
        "city": "{city}",
        "all": "{allowed_domains}",
        "not": "{blocked_domains}",
        "stores": "{vector_store_ids}",
    }
    tool = {
        "type": "web_search",
        "user_location": {"type": "approximate", "city": "Ulm"},
        "filters": {"allowed_domains": ["a", "b"], "blocked_domains": ["c"]},
        "vector_store_ids": ["v1", "v2"],
    }
    filled = {"type": "web_search", "city": "Ulm", "all": ["a", "b"], "not": ["c"], "stores": ["v1", "v2"]}
    assert fill_declaration("web_search", tool, template) == (filled, ())
    assert fill_declaration("web_search", SEARCH, template) == (SEARCH, ())


def test_a_template_may_change_the_type() -> None:
    template = {"type": "builtin_function", "function": {"name": "$web_search"}}
    assert fill_declaration("web_search", SEARCH, template) == (template, ())
