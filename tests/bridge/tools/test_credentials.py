"""Credentials of tools go upstream and nowhere else: a Response repeats its tools without them."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.diagnostics import CompatibilityPlan
from isthmus.bridge.doors.responses.echo import echo_request
from isthmus.bridge.parse import parse_request
from isthmus.bridge.tools.credentials import (
    is_stripped,
    showable_body,
    showable_item,
    showable_items,
    showable_tool,
    tool_secrets,
)
from isthmus.bridge.toolset import Toolset

Json = dict[str, Any]


def echoed(*tools: Json) -> list[Json]:
    request = parse_request({"model": "m", "input": "Hi", "tools": list(tools)})
    told: list[Json] = echo_request(request, CompatibilityPlan())["tools"]
    return told


def server(**fields: Any) -> Json:
    return {"type": "mcp", "server_label": "files", **fields}


def test_the_credentials_of_an_mcp_server_are_not_repeated() -> None:
    given = server(
        server_url="https://mcp.example/mcp",
        authorization="token-1",
        headers={"Authorization": "Bearer token-2", "X-Team": "core"},
        allowed_tools=["read"],
    )
    before = repr(given)
    assert echoed(given) == [
        server(
            server_url="https://mcp.example/<redacted>",
            authorization="<redacted>",
            headers={"Authorization": "<redacted>", "X-Team": "<redacted>"},
            allowed_tools=["read"],
        )
    ]
    assert repr(given) == before, "what goes upstream is the client's own"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://mcp.example", "https://mcp.example"),
        ("https://mcp.example/", "https://mcp.example/"),
        ("https://MCP.example:8443/a/b", "https://mcp.example:8443/<redacted>"),
        ("https://mcp.example?key=1", "https://mcp.example/<redacted>"),
        ("https://joe:hush@mcp.example", "https://mcp.example/<redacted>"),
        ("http://token@[::1]:9/", "http://[::1]:9/<redacted>"),
        ("https://mcp.example#token", "https://mcp.example/<redacted>"),
        ("not an address, but hush", "<redacted>"),
        ("https://[", "<redacted>"),
        ("https://mcp.example:hush/", "<redacted>"),
    ],
)
def test_of_an_address_only_the_host_is_repeated(url: str, shown: str) -> None:
    assert showable_tool(server(server_url=url))["server_url"] == shown


def test_a_server_without_credentials_is_repeated_as_it_is() -> None:
    given = [server(connector_id="connector_gmail"), server(server_url="https://mcp.example")]
    assert echoed(given[0], {**given[1], "headers": None}) == given


def test_headers_of_a_wrong_kind_are_not_repeated_either() -> None:
    assert showable_tool(server(headers=["hush"]))["headers"] == "<redacted>"


def test_servers_inside_a_namespace_or_an_item_are_found() -> None:
    inner = server(authorization="hush")
    namespace = {"type": "namespace", "name": "n", "tools": [inner]}
    assert "hush" not in repr(echoed(namespace))
    for kind in ("additional_tools", "tool_search_output"):
        assert "hush" not in repr(showable_item({"type": kind, "tools": [inner, namespace]}))
    message = {"type": "message", "role": "user", "content": "hush"}
    assert showable_item(message) is message


def test_secrets_for_the_domains_of_a_container_are_not_repeated() -> None:
    policy = {"type": "allowlist", "domain_secrets": [{"domain": "a.example", "name": "KEY", "value": "hush-hush"}]}
    given = {"type": "code_interpreter", "container": {"type": "auto", "network_policy": policy}}
    (told,) = echoed(given)
    secret = told["container"]["network_policy"]["domain_secrets"][0]
    assert secret == {"domain": "a.example", "name": "KEY", "value": "<redacted>"}
    assert [secret.value for secret in tool_secrets([given])] == ["hush-hush"]


def test_a_body_of_either_dialect_is_shown_without_them() -> None:
    flat = server(authorization="hush", headers={"A": "hush"})
    nested = {"type": "mcp", "mcp": {"server_label": "files", "authorization": "hush", "headers": {"A": "hush"}}}
    assert "hush" not in repr(showable_body({"model": "m", "tools": [flat, nested, {"type": "function"}]}))
    assert {secret.value for secret in tool_secrets([nested])} == {"hush"}
    assert showable_body({"model": "m"}) == {"model": "m"}


def test_a_tool_that_was_shown_is_known_again() -> None:
    for fields in ({"authorization": "x"}, {"headers": {"A": "x"}}, {"server_url": "https://a.example/x"}):
        assert not is_stripped(server(**fields))
        assert is_stripped(showable_tool(server(**fields)))


def test_items_that_bring_no_tools_are_given_back_and_others_lose_their_secrets() -> None:
    plain = ({"type": "message", "role": "user", "content": "hush"},)
    assert showable_items(plain) is plain
    carrier = {"type": "additional_tools", "tools": [server(authorization="hush")]}
    shown = showable_items((*plain, carrier))
    assert shown[0] is plain[0]
    assert "hush" not in repr(shown[1])


def test_tools_that_remember_are_looked_through_once_and_keep_their_secrets_for_whoever_needs_them() -> None:
    tools = Toolset([server(authorization="hush"), {"type": "function", "name": "f"}])
    first, second = (showable_body({"model": model, "tools": tools}) for model in "ab")
    assert "hush" not in repr((first, second))
    assert (first["model"], second["model"]) == ("a", "b")
    assert second["tools"] is first["tools"]
    assert tools[0]["authorization"] == "hush"
    body = {"tools": Toolset([{"type": "function", "name": "f"}])}
    assert showable_body(body) is body
