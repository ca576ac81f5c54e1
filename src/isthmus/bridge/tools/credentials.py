"""What a client's tools carry for somebody else: the credentials of MCP servers, secrets of containers.

They go upstream with the tool that needs them and nowhere else. In: tools as the client declared them. Out: the same
as they may be shown and stored. As with OpenAI, a client sends them anew with every request: the path of an MCP
server's address counts as a secret, too, because some servers know their users by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final
from urllib.parse import urlsplit

from isthmus.bridge.tools.catalog import CARRIERS
from isthmus.bridge.toolset import Toolset
from isthmus.protocol.json import JsonObject
from isthmus.scrub import HIDDEN, Secret, header_secrets, url_secrets

_type_of: Final = itemgetter("type")
_PLACES: Final = ("container", "environment")
_KINDS: Final = ("mcp", "namespace")
_NO_WORD: Final = 16
"""A part of a path that is at least so long is hardly a word."""


def showable_tool(tool: JsonObject) -> JsonObject:
    """A tool without its credentials; one that has none is given back as it is."""
    kind = tool.get("type")
    if kind == "mcp":
        return _showable_server(tool)
    if kind == "namespace":
        return showable_body(tool)
    for place in _PLACES:
        if isinstance(tool.get(place), dict):
            tool = {**tool, place: _showable_container(tool[place])}
    return tool


def showable_items(items: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Those of a request: most bring no tools along."""
    return items if CARRIERS.isdisjoint(map(_type_of, items)) else [*map(showable_item, items)]


def showable_item(item: JsonObject) -> JsonObject:
    return showable_body(item) if item.get("type") in CARRIERS else item


def showable_body(body: JsonObject) -> JsonObject:
    """Whatever has `tools`: an upstream body, in whichever dialect, a namespace, an input item."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        return body
    make = partial(_showable_tools, tools)
    shown = tools.once("showable", make) if isinstance(tools, Toolset) else make()
    return body if shown is None else {**body, "tools": shown}


def _showable_tools(tools: list[Any]) -> list[Any] | None:
    """`None`: none of them carries anything."""
    if not any(map(_may_hold_secrets, tools)):
        return None
    return [showable_tool(tool) if isinstance(tool, dict) else tool for tool in tools]


def _may_hold_secrets(tool: Any) -> bool:
    """A look at the kind alone: most tools are functions, which have none."""
    return isinstance(tool, dict) and (tool.get("type") in _KINDS or "container" in tool or "environment" in tool)


def is_stripped(tool: JsonObject) -> bool:
    """Whether this is a tool as we showed or stored it: it cannot be used any more."""
    headers = tool.get("headers")
    told = [tool.get("authorization"), *(headers.values() if isinstance(headers, dict) else ())]
    url = tool.get("server_url")
    return HIDDEN in told or (isinstance(url, str) and url.endswith(f"/{HIDDEN}"))


def tool_secrets(tools: Any) -> Iterator[Secret]:
    """Everything in an upstream body's tools that its provider must not repeat to anybody."""
    for tool in filter(_may_hold_secrets, tools) if isinstance(tools, list) else ():
        if tool.get("type") == "mcp":
            inner = tool.get("mcp")
            yield from _server_secrets(inner if isinstance(inner, dict) else tool)
        for place in _PLACES:
            for one in _domain_secrets(tool[place]) if isinstance(tool.get(place), dict) else ():
                if isinstance(one, dict) and isinstance(one.get("value"), str):
                    yield Secret(one["value"], str(one.get("name") or ""))


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


def _domain_secrets(container: JsonObject) -> list[Any]:
    policy = container.get("network_policy")
    secrets = policy.get("domain_secrets") if isinstance(policy, dict) else None
    return secrets if isinstance(secrets, list) else []


def _showable_container(container: JsonObject) -> JsonObject:
    secrets = _domain_secrets(container)
    if not secrets:
        return container
    hidden = [{**one, "value": HIDDEN} if isinstance(one, dict) and "value" in one else one for one in secrets]
    return {**container, "network_policy": {**container["network_policy"], "domain_secrets": hidden}}


def _server_secrets(tool: JsonObject) -> Iterator[Secret]:
    authorization, headers, url = tool.get("authorization"), tool.get("headers"), tool.get("server_url")
    if isinstance(authorization, str):
        yield from header_secrets({"authorization": authorization})
    if isinstance(headers, dict):
        yield from header_secrets({name: value for name, value in headers.items() if isinstance(value, str)})
    if isinstance(url, str):
        yield from url_secrets(url)
        try:
            parts = urlsplit(url).path.split("/")
        except ValueError:
            return
        yield from (Secret(part, "path") for part in parts if len(part) >= _NO_WORD)
