"""Who may be called, what, and what is asked first: both sides narrow, neither widens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.tools.mcp_rules import (
    MAX_HEADERS,
    McpRule,
    depends_on_hints,
    find_asking,
    find_rule,
    known_tools,
    narrow_tools,
    read_credentials,
)
from isthmus.errors import RequestRefused

OWN = McpRule("github", "https://api.github.example/mcp", frozenset({"authorization"}))
HOSTS = McpRule("partners", allowed_hosts=("mcp.example.org", "*.partner.example"), private_hosts=("127.0.0.1:9000",))
RULES = {"github": OWN, "partners": HOSTS}


def tool(name: str, read_only: bool | None = None) -> dict[str, Any]:
    hints = None if read_only is None else {"readOnlyHint": read_only}
    return {"name": name, "input_schema": {"type": "object"}, "annotations": hints}


LIST = (tool("get", True), tool("put", False), tool("odd"))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"server_label": "github"}, OWN),
        ({"server_label": "other"}, "the operator has no server `other`"),
        ({"server_label": "partners"}, "the operator has no server `partners`"),
        ({"server_label": "x", "server_url": "https://mcp.example.org/mcp"}, HOSTS),
        ({"server_label": "github", "server_url": "https://a.partner.example/mcp"}, HOSTS),
        ({"server_label": "x", "server_url": "http://127.0.0.1:9000/mcp"}, HOSTS),
        ({"server_label": "x", "server_url": "https://api.github.example/mcp"}, "which `allowed_hosts` does not name"),
        ({"server_label": "x", "server_url": "https://mcp.example.org:444/"}, "which `allowed_hosts` does not name"),
        ({"server_label": "x", "server_url": "http://mcp.example.org/"}, "must begin with `https`"),
        ({"server_label": "x", "server_url": "https://partner.example/"}, "which `allowed_hosts` does not name"),
        ({"server_label": "x", "server_url": "http://127.0.0.1:9001/"}, "must begin with `https`"),
        ({"server_label": "x", "server_url": "https://u:p@mcp.example.org/"}, "has a user or a password"),
        ({"server_label": "github", "connector_id": "connector_gmail"}, "only its vendor"),
        ({"server_label": "github", "tunnel_id": "t"}, "only its vendor"),
    ],
)
def test_only_who_was_named_is_called(asked: dict[str, Any], found: McpRule | str) -> None:
    given = find_rule({"type": "mcp", **asked}, RULES)
    if isinstance(found, str):
        assert isinstance(given, str)
        assert found in given
    else:
        assert given is found


def test_where_no_hosts_are_named_clients_name_no_servers() -> None:
    asked = {"server_label": "x", "server_url": "https://mcp.example.org/"}
    assert find_rule(asked, {"github": OWN}) == "the operator lets clients name no servers of their own"


@pytest.mark.parametrize(
    ("asked", "rule", "left"),
    [
        (None, McpRule("r"), ["get", "put", "odd"]),
        ([], McpRule("r"), []),
        (["put", "none"], McpRule("r"), ["put"]),
        ({"tool_names": ["get"]}, McpRule("r"), ["get"]),
        ({"read_only": True}, McpRule("r"), ["get"]),
        ({"read_only": False}, McpRule("r"), ["put", "odd"]),
        ({"tool_names": ["get", "put"], "read_only": True}, McpRule("r"), ["get"]),
        (None, McpRule("r", allowed_tools=("g*", "odd")), ["get", "odd"]),
        (["put"], McpRule("r", allowed_tools=("get",)), []),
        (None, McpRule("r", read_only=True), ["get"]),
        ({"read_only": False}, McpRule("r", read_only=True), []),
    ],
)
def test_a_tool_must_be_allowed_by_both_sides(asked: Any, rule: McpRule, left: list[str]) -> None:
    assert [one["name"] for one in narrow_tools(LIST, {"allowed_tools": asked}, rule)] == left


@pytest.mark.parametrize(
    ("asked", "approval", "asking"),
    [
        (None, "never", {"get", "put", "odd"}),
        ("always", "never", {"get", "put", "odd"}),
        ("never", "never", set()),
        ("never", "always", {"get", "put", "odd"}),
        ("never", "writes", {"put", "odd"}),
        ({"never": {"tool_names": ["get"]}}, "never", {"put", "odd"}),
        ({"never": {"read_only": True}}, "never", {"put", "odd"}),
        ({"never": {"read_only": True}}, "always", {"get", "put", "odd"}),
        ({"always": {"tool_names": ["put"]}, "never": {"tool_names": ["get", "put"]}}, "never", {"put", "odd"}),
        ({"never": ["put"]}, "writes", {"get", "put", "odd"}),
        ({"always": {"tool_names": ["put"]}}, "never", {"get", "put", "odd"}),
        ({"never": None, "always": None}, "never", {"get", "put", "odd"}),
    ],
)
def test_a_call_asks_if_either_side_wants_it(asked: Any, approval: Any, asking: set[str]) -> None:
    assert find_asking(LIST, {"require_approval": asked}, McpRule("r", approval=approval)) == asking


@given(
    st.sampled_from([None, "always", "never", {"never": {"tool_names": ["get", "put", "odd"]}}]),
    st.sampled_from(["always", "writes", "never"]),
    st.sampled_from([None, ["get", "put"], {"read_only": False}]),
)
def test_no_client_weakens_what_the_operator_says(asked: Any, approval: Any, allowed: Any) -> None:
    rule = McpRule("r", allowed_tools=("get", "put"), approval=approval)
    given = {"require_approval": asked, "allowed_tools": allowed}
    tools = narrow_tools(LIST, given, rule)
    assert {one["name"] for one in tools} <= {"get", "put"}
    strictest = find_asking(tools, {"require_approval": "never"}, rule)
    assert find_asking(tools, given, rule) >= strictest


@pytest.mark.parametrize(
    ("field", "value", "at"),
    [
        ("allowed_tools", "get", "allowed_tools"),
        ("allowed_tools", {"tool_names": "get"}, "allowed_tools"),
        ("allowed_tools", [1], "allowed_tools"),
        ("allowed_tools", {"read_only": "yes"}, "allowed_tools"),
        ("require_approval", "sometimes", "require_approval"),
        ("require_approval", {"often": {}}, "require_approval"),
        ("require_approval", {"never": 3}, "require_approval.never"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(field: str, value: Any, at: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        find_asking(narrow_tools(LIST, {field: value}, McpRule("r")), {field: value}, McpRule("r"))
    assert refused.value.param == at


def test_a_token_is_shown_as_a_bearer_and_headers_as_they_are() -> None:
    given = {"authorization": "ya29.x", "headers": {"X-Team": "blue"}}
    assert read_credentials(given, McpRule("r")) == {"x-team": "blue", "authorization": "Bearer ya29.x"}
    assert read_credentials({"authorization": "Basic eDp5"}, McpRule("r")) == {"authorization": "Basic eDp5"}
    assert read_credentials({}, OWN) == {}


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"authorization": "x"}, "authorization"),
        ({"headers": {"Authorization": "x"}}, "headers.authorization"),
        ({"authorization": "x\r\nhost: y"}, "authorization"),
        ({"authorization": 3}, "authorization"),
        ({"headers": {"x": "a\nb"}}, "headers.x"),
        ({"headers": {"Host": "inside"}}, "headers.Host"),
        ({"headers": {"Mcp-Session-Id": "1"}}, "headers.Mcp-Session-Id"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "headers.Transfer-Encoding"),
        ({"headers": {"Proxy-Authorization": "x"}}, "headers.Proxy-Authorization"),
        ({"headers": {"a b": "x"}}, "headers.a b"),
        ({"headers": {"x": "ä"}}, "headers.x"),
        ({"headers": ["x"]}, "headers"),
        ({"headers": {f"x-{number}": "" for number in range(MAX_HEADERS + 1)}}, "headers"),
        ({"authorization": "x", "headers": {"authorization": "y"}}, "authorization"),
    ],
)
def test_what_must_not_be_shown_is_refused_by_name(given: dict[str, Any], at: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_credentials(given, OWN)
    assert refused.value.param == at
    assert "\n" not in refused.value.message


def test_the_newest_list_of_a_conversation_counts() -> None:
    def told(label: str, *names: str, **more: Any) -> dict[str, Any]:
        return {"type": "mcp_list_tools", "server_label": label, "tools": [tool(name) for name in names], **more}

    items = [told("a", "old"), told("a", "new"), told("b", "other"), told("a", "failed", error="x")]
    assert [one["name"] for one in known_tools(items, "a") or ()] == ["new"]
    assert known_tools(items, "c") is None
    assert known_tools([{**told("a"), "tools": [{"name": 1}]}], "a") is None
    assert known_tools([{**told("a"), "tools": "x"}], "a") is None


def test_the_servers_own_word_is_needed_where_the_rule_rests_on_it() -> None:
    assert depends_on_hints(McpRule("r", read_only=True))
    assert depends_on_hints(McpRule("r", approval="writes"))
    assert not depends_on_hints(McpRule("r", approval="always"))
