"""Each mistake in `[mcp]` is found, with its fix."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.config.check_mcp import check_mcp
from isthmus.config.schema import McpConfig
from isthmus.values.problems import dotted

SOUND: dict[str, Any] = {"url": "https://mcp.example.org/mcp", "headers": {"Authorization": "Bearer x"}}


@pytest.mark.parametrize(
    ("name", "given", "at", "words"),
    [
        ("a", {}, "mcp.a.url", "is missing"),
        ("a b", SOUND, 'mcp."a b"', "no usable label"),
        ("a", {"url": "mcp.example.org"}, "mcp.a.url", "must be a URL"),
        ("a", {"url": "file:///x"}, "mcp.a.url", "must be a URL"),
        ("a", {**SOUND, "allowed_hosts": ["x.example"]}, "mcp.a.allowed_hosts", "excludes `url`"),
        ("a", {**SOUND, "private_hosts": ["x.example"]}, "mcp.a.private_hosts", "excludes `url`"),
        ("a", {"allowed_hosts": ["x.example"], "headers": {"k": "v"}}, "mcp.a.headers", "whatever server a client"),
        ("a", {"allowed_hosts": ["https://x.example"]}, "mcp.a.allowed_hosts[0]", "is no host"),
        ("a", {"private_hosts": ["x.example", "a b"]}, "mcp.a.private_hosts[1]", "is no host"),
        ("a", {**SOUND, "headers": {"Authorization": "Bearer x\n"}}, "mcp.a.headers.Authorization", "line break"),
    ],
)
def test_what_makes_no_sense_is_an_error(name: str, given: dict[str, Any], at: str, words: str) -> None:
    (problem,) = check_mcp({name: McpConfig(**given)})
    assert problem.severity == "error"
    assert dotted(problem.key) == at
    assert words in problem.message
    assert problem.fix


@pytest.mark.parametrize(
    "given", [SOUND, {"url": "http://127.0.0.1:9000/mcp"}, {"allowed_hosts": ["x.example", "*.y.example:8443"]}]
)
def test_what_makes_sense_is_fine(given: dict[str, Any]) -> None:
    assert list(check_mcp({"a-b_1": McpConfig(**given)})) == []


def test_headers_over_plain_http_are_worth_a_warning() -> None:
    (problem,) = check_mcp({"a": McpConfig(url="http://mcp.example.org/", headers={"k": "v"})})
    assert problem.severity == "warning"
    assert "plain HTTP" in problem.message


def test_without_the_sdk_nothing_can_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.config.check_mcp.find_spec", lambda name: None)
    assert list(check_mcp({})) == []
    (problem,) = check_mcp({"a": McpConfig(**SOUND)})
    assert problem.fix == "install `isthmus[mcp]`"
