"""Which models and tools a key is narrowed to."""

from __future__ import annotations

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.types.plan import Target
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.directory import Candidate
from isthmus.gateway.scopes import check_target, check_tool, denied_tools, may_use, permitted
from isthmus.ports.keys import Grant


def candidate(name: str) -> Candidate:
    provider, model = name.split("/", 1)
    return Candidate(Target(provider, model, ProviderCapabilities()), None)  # type: ignore[arg-type]


def narrowed(*models: str, team: tuple[str, ...] = (), admin: bool = False) -> Caller:
    return Caller(key="key_1", name="ann", grant=Grant(models=models, admin=admin), team_models=team)


@pytest.mark.parametrize(
    ("models", "asked", "target", "allowed"),
    [
        ((), "anything", "a/x", True),
        (("*",), "anything", "a/x", True),
        (("a/*",), "a/x", "a/x", True),
        (("a/*",), "fast", "a/x", True),
        (("a/*",), "fast", "b/x", False),
        (("a/x",), "a/x-large", "a/x-large", False),
        (("a/x",), "a/y", "a/y", False),
        (("fast",), "fast", "b/x", True),
        (("fast",), " fast ", "b/x", True),
        (("fast",), "slow", "b/x", False),
        (("fast",), "b/x", "b/x", False),
        (("x",), "b/x", "b/x", False),
        (("f*t", "z"), "fast", "b/x", True),
        (("a/[x]",), "a/x", "a/x", False),
        (("a/[x]",), "a/[x]", "a/[x]", True),
        (("a?x",), "a/x", "a/x", False),
        (("openrouter/*",), "openrouter/meta/llama", "openrouter/meta/llama", True),
    ],
)
def test_a_model_is_open_by_its_target_or_by_the_name_that_the_operator_gave_it(
    models: tuple[str, ...], asked: str, target: str, allowed: bool
) -> None:
    caller = narrowed(*models)
    assert may_use(caller, asked, candidate(target)) is allowed
    assert may_use(narrowed(*models, admin=True), asked, candidate(target))
    if allowed:
        assert permitted(caller, asked, [candidate(target)])
    else:
        with pytest.raises(RequestRefused) as caught:
            permitted(caller, asked, [candidate(target)])
        assert (caught.value.code, caught.value.param, caught.value.meaning.status) == ("not_allowed", "model", 403)
        assert all(word in caught.value.message for word in ("`ann` (`key_1`)", f"`{target}`", f"`{models[0]}`"))


def test_fallbacks_that_are_not_open_are_no_way() -> None:
    first, second, third = (candidate(name) for name in ("a/x", "b/y", "a/z"))
    assert permitted(narrowed("a/*"), "a/x", [first, second, third]) == [first, third]
    assert permitted(narrowed("fast"), "fast", [first, second]) == [first, second], "an alias opens all it leads to"
    assert permitted(LOCAL, "a/x", [first, second]) == [first, second]


def test_a_team_and_its_key_both_have_to_open_it() -> None:
    caller = narrowed("a/*", team=("*/x",))
    assert may_use(caller, "a/x", candidate("a/x"))
    assert not may_use(caller, "a/y", candidate("a/y"))
    assert not may_use(caller, "b/x", candidate("b/x"))
    assert not may_use(Caller(team_models=("a/*",)), "b/x", candidate("b/x"))


def test_what_has_no_name_of_the_clients_is_open_by_its_target_alone() -> None:
    check_target(narrowed("demo/*"), candidate("demo/image").target)
    with pytest.raises(RequestRefused, match="`demo/image`"):
        check_target(narrowed("a/*"), candidate("demo/image").target)


def tooled(*tools: str) -> Caller:
    return Caller(key="key_1", name="ann", grant=Grant(tools=tools))


SEARCH, DATED, IMAGE = {"type": "web_search"}, {"type": "web_search_2025_08_26"}, {"type": "image_generation"}
DOCS, WIKI = ({"type": "mcp", "server_label": label} for label in ("docs", "wiki"))


def test_tools_are_denied_by_their_kind_and_label() -> None:
    tools = [SEARCH, DATED, IMAGE, DOCS, WIKI, {"type": "function", "name": "f"}, {}]
    assert set(denied_tools(tooled(), tools)) == {"web_search", "image_generation", "mcp:docs", "mcp:wiki"}
    assert set(denied_tools(tooled("web_search", "mcp:docs"), tools)) == {"image_generation", "mcp:wiki"}
    assert set(denied_tools(tooled("mcp"), tools)) == {"web_search", "image_generation"}
    assert set(denied_tools(tooled("mcp:d*"), [DOCS, WIKI])) == {"mcp:wiki"}
    assert denied_tools(LOCAL, tools) == {}
    assert denied_tools(Caller(grant=Grant(tools=(), admin=True)), tools) == {}


def test_the_reason_names_the_key_and_what_it_opens() -> None:
    (reason,) = denied_tools(tooled("mcp:docs"), [SEARCH]).values()
    assert reason == "the key `ann` (`key_1`) may not use `web_search`: it opens `mcp:docs`"
    assert "none of the tools that run here" in denied_tools(tooled(), [SEARCH])["web_search"]


def test_a_tool_that_is_asked_for_by_itself_is_refused() -> None:
    check_tool(LOCAL, "web_search")
    check_tool(tooled("web_search"), "web_search")
    with pytest.raises(RequestRefused, match="ask whoever gave you the key") as caught:
        check_tool(tooled(), "web_search")
    assert caught.value.code == "not_allowed"
