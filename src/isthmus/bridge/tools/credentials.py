"""What a client's tools carry for somebody else: the credentials of MCP servers, secrets of containers.

They go upstream with the tool that needs them and nowhere else. In: tools as the client declared them. Out: the same
as they may be shown and stored. As with OpenAI, a client sends them anew with every request: the path of an MCP
server's address counts as a secret, too, because some servers know their users by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from isthmus.protocol.json import JsonObject
from isthmus.scrub import HIDDEN, Secret, header_secrets, url_secrets

_CARRIERS: Final = ("additional_tools", "tool_search_output")
_PLACES: Final = ("container", "environment")
_NO_WORD: Final = 16
"""A part of a path that is at least so long is hardly a word."""


def showable_tool(tool: JsonObject) -> JsonObject:
    """A tool without its credentials; one that has none is given back as it is."""
    kind = tool.get("type")
    if kind == "mcp":
        return _showable_server(tool)
    if kind == "namespace" and isinstance(tool.get("tools"), list):
        return {**tool, "tools": _showable_all(tool["tools"])}
    for place in _PLACES:
        if isinstance(tool.get(place), dict):
            tool = {**tool, place: _showable_container(tool[place])}
    return tool


def showable_item(item: JsonObject) -> JsonObject:
    """An input item, whose tools (if it carries any) are shown without their credentials."""
    if item.get("type") in _CARRIERS and isinstance(item.get("tools"), list):
        return {**item, "tools": _showable_all(item["tools"])}
    return item


def showable_body(body: JsonObject) -> JsonObject:
    """An upstream body, in whichever dialect."""
    tools = body.get("tools")
    return {**body, "tools": _showable_all(tools)} if isinstance(tools, list) else body


def is_stripped(tool: JsonObject) -> bool:
    """Whether this is a tool as we showed or stored it: it cannot be used any more."""
    headers = tool.get("headers")
    told = [tool.get("authorization"), *(headers.values() if isinstance(headers, dict) else ())]
    url = tool.get("server_url")
    return HIDDEN in told or (isinstance(url, str) and url.endswith(f"/{HIDDEN}"))


def tool_secrets(tools: Any) -> Iterator[Secret]:
    """Everything in an upstream body's tools that its provider must not repeat to anybody."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "mcp":
            inner = tool.get("mcp")
            yield from _server_secrets(inner if isinstance(inner, dict) else tool)
        for place in _PLACES:
            if isinstance(tool.get(place), dict):
                yield from _container_secrets(tool[place])


def _showable_all(tools: list[Any]) -> list[Any]:
    return [showable_tool(tool) if isinstance(tool, dict) else tool for tool in tools]


def _showable_server(tool: JsonObject) -> JsonObject:
    shown = dict(tool)
    if isinstance(shown.get("mcp"), dict):  # as the chat dialect nests it
        shown["mcp"] = _showable_server(shown["mcp"])
    if shown.get("authorization"):
        shown["authorization"] = HIDDEN
    headers = shown.get("headers")
    if headers:
        shown["headers"] = dict.fromkeys(headers, HIDDEN) if isinstance(headers, dict) else HIDDEN
    if shown.get("server_url"):
        shown["server_url"] = _showable_address(str(shown["server_url"]))
    return shown


def _showable_address(url: str) -> str:
    """Host and port; whatever stands before or behind them may let somebody in."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return HIDDEN
    if not parts.scheme or not host:
        return HIDDEN
    place = f"[{host}]" if ":" in host else host
    told = f"{parts.scheme}://{place}" + (f":{port}" if port is not None else "")
    more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    return f"{told}/{HIDDEN}" if more else told + parts.path


def _showable_container(container: JsonObject) -> JsonObject:
    policy = container.get("network_policy")
    secrets = policy.get("domain_secrets") if isinstance(policy, dict) else None
    if not isinstance(secrets, list):
        return container
    hidden = [{**one, "value": HIDDEN} if isinstance(one, dict) and "value" in one else one for one in secrets]
    return {**container, "network_policy": {**policy, "domain_secrets": hidden}}  # type: ignore[dict-item]


def _server_secrets(tool: JsonObject) -> Iterator[Secret]:
    authorization, headers, url = tool.get("authorization"), tool.get("headers"), tool.get("server_url")
    if isinstance(authorization, str):
        yield from header_secrets({"authorization": authorization})
    if isinstance(headers, dict):
        yield from header_secrets({name: value for name, value in headers.items() if isinstance(value, str)})
    if isinstance(url, str):
        yield from url_secrets(url)
        yield from (Secret(part, "path") for part in _path_parts(url) if len(part) >= _NO_WORD)


def _path_parts(url: str) -> list[str]:
    try:
        return urlsplit(url).path.split("/")
    except ValueError:
        return []


def _container_secrets(container: JsonObject) -> Iterator[Secret]:
    policy = container.get("network_policy")
    secrets = policy.get("domain_secrets") if isinstance(policy, dict) else None
    for one in secrets if isinstance(secrets, list) else ():
        if isinstance(one, dict) and isinstance(one.get("value"), str):
            yield Secret(one["value"], str(one.get("name") or ""))
