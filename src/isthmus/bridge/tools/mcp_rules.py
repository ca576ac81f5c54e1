"""Which MCP servers may be called for a client, which of their tools, and which calls the user must approve.

In: a client's `mcp` tool, the operator's rules, a server's own list. Out: the rule that lets it in (or why none does),
the tools that are left, the names of those that ask. Worth knowing: both sides narrow, neither widens. A tool must be
allowed by the operator and by the client; a call asks if either of them wants it to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import msgspec

from isthmus.addresses import fault_of_call, is_named_private
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

Approval = Literal["always", "writes", "never"]
_ELSEWHERE: Final = ("connector_id", "tunnel_id")
_OURS: Final = frozenset(
    {
        *("host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer"),
        *("accept", "accept-encoding", "expect", "mcp-session-id", "mcp-protocol-version", "last-event-id"),
    }
)
"""Headers that the connection itself writes."""
MAX_HEADERS: Final = 64
"""Headers of one `mcp` tool."""


class McpRule(msgspec.Struct, frozen=True):
    """What the operator says of a server, or of clients' own servers on some hosts."""

    name: str
    url: str = ""
    """The operator's own server; empty: the rule is for clients' servers."""
    headers: frozenset[str] = frozenset()
    """Names, in small letters, of what the operator shows there."""
    allowed_hosts: tuple[str, ...] = ()
    private_hosts: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    """Names or globs; none: all."""
    read_only: bool = False
    approval: Approval = "never"

    def may_lead_anywhere(self, url: str) -> bool:
        """Whether the operator has named this very host, wherever it may lead."""
        return bool(self.url) or is_named_private(url, self.private_hosts)


def find_rule(tool: JsonObject, rules: Mapping[str, McpRule]) -> McpRule | str:
    """The rule by which this server is called from here; or, in words, why it is not."""
    if any(tool.get(name) for name in _ELSEWHERE):
        return "only its vendor can reach it"
    label, url = str(tool.get("server_label") or ""), tool.get("server_url")
    own = rules.get(label)
    if not url:
        if own is not None and own.url:
            return own
        return f"the operator has no server `{label}`; name one of theirs, or give its `server_url`"
    if not isinstance(url, str):
        raise RequestRefused("`server_url` must be a text", param="server_url")
    faults = [fault_of_call(url, rule.allowed_hosts, rule.private_hosts) for rule in rules.values() if not rule.url]
    hosts = [rule for rule in rules.values() if not rule.url]
    found = next((rule for rule, fault in zip(hosts, faults, strict=True) if fault is None), None)
    if found is not None:
        return found
    return f"its `server_url` {faults[0]}" if faults else "the operator lets clients name no servers of their own"


def read_credentials(tool: JsonObject, rule: McpRule) -> dict[str, str]:
    """The headers that the client's own words ask for. What the operator shows to a server nobody replaces."""
    found: dict[str, str] = {}
    given = tool.get("headers") or {}
    if not isinstance(given, dict) or len(given) > MAX_HEADERS:
        raise RequestRefused(f"`headers` must be an object of at most {MAX_HEADERS} texts", param="headers")
    for name, value in given.items():
        at = f"headers.{name}" if name.isascii() and name.isprintable() else "headers"
        if not isinstance(value, str) or not _is_line(value) or not _is_name(name):
            raise RequestRefused("`headers` must hold lines of plain text under the names of headers", param=at)
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise RequestRefused(f"`{name}` is written by the connection itself; leave it out", param=at)
        found[name.lower()] = value
    authorization = tool.get("authorization")
    if authorization:
        if not isinstance(authorization, str) or not _is_line(authorization):
            raise RequestRefused("`authorization` must be one line of plain text: a token", param="authorization")
        if "authorization" in found:
            raise RequestRefused("`authorization` stands in `headers`, too; keep one of them", param="authorization")
        found["authorization"] = authorization if " " in authorization.strip() else f"Bearer {authorization.strip()}"
    taken = sorted(rule.headers & found.keys())
    if taken:
        param = "authorization" if taken == ["authorization"] and authorization else f"headers.{taken[0]}"
        words = f"`{rule.name}` is shown the operator's own `{taken[0]}`; leave yours out"
        raise RequestRefused(words, param=param)
    return found


def narrow_tools(listed: Iterable[JsonObject], tool: JsonObject, rule: McpRule) -> tuple[JsonObject, ...]:
    """Those that both sides allow."""
    wanted = _read_allowed(tool.get("allowed_tools"))
    return tuple(
        one
        for one in listed
        if (not rule.allowed_tools or any(fnmatchcase(one["name"], pattern) for pattern in rule.allowed_tools))
        and (not rule.read_only or is_read_only(one))
        and (wanted is None or _matches(wanted, one))
    )


def find_asking(tools: Iterable[JsonObject], tool: JsonObject, rule: McpRule) -> frozenset[str]:
    """Names of the tools whose calls wait for the user."""
    given = tool.get("require_approval")
    return frozenset(one["name"] for one in tools if _operator_asks(one, rule) or _client_asks(one, given))


def is_read_only(tool: JsonObject) -> bool:
    """By the server's own word."""
    hints = tool.get("annotations")
    return isinstance(hints, dict) and (hints.get("readOnlyHint") or hints.get("read_only_hint")) is True


def depends_on_hints(rule: McpRule) -> bool:
    """Whether the operator's rule rests on what the server says of its tools; then nobody else's word will do."""
    return rule.read_only or rule.approval == "writes"


def known_tools(items: Sequence[JsonObject], label: str) -> tuple[JsonObject, ...] | None:
    """What the conversation holds of a server's list, newest first; `None`: nothing that can be used."""
    for item in reversed(items):
        if item.get("type") == "mcp_list_tools" and item.get("server_label") == label and not item.get("error"):
            tools = item.get("tools")
            if isinstance(tools, list) and all(_is_tool(one) for one in tools):
                return tuple(tools)
    return None


def _is_tool(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("input_schema"), dict)


def _operator_asks(one: JsonObject, rule: McpRule) -> bool:
    return rule.approval == "always" or (rule.approval == "writes" and not is_read_only(one))


def _client_asks(one: JsonObject, given: Any) -> bool:
    """As with OpenAI, a tool that is not named asks."""
    if given is None or given == "always":
        return True
    if given == "never":
        return False
    if not isinstance(given, dict) or not given.keys() <= {"always", "never"}:
        words = '`require_approval` must be `"always"`, `"never"`, or `{"always": …, "never": …}`'
        raise RequestRefused(words, param="require_approval")
    sides = {side: _read_filter(given[side], f"require_approval.{side}") for side in given if given[side] is not None}
    if "always" in sides and _matches(sides["always"], one):
        return True
    return not ("never" in sides and _matches(sides["never"], one))


def _read_allowed(given: Any) -> JsonObject | None:
    if given is None:
        return None
    return _read_filter({"tool_names": given} if isinstance(given, list) else given, "allowed_tools")


def _read_filter(given: Any, at: str) -> JsonObject:
    """`{tool_names, read_only}`, both optional."""
    given = {"tool_names": given} if isinstance(given, list) else given
    names, read_only = (given.get("tool_names"), given.get("read_only")) if isinstance(given, dict) else (0, 0)
    sound = names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
    if not sound or not (read_only is None or isinstance(read_only, bool)):
        raise RequestRefused(f'`{at}` must be a list of names, or `{{"tool_names": […], "read_only": …}}`', param=at)
    return {"tool_names": names, "read_only": read_only}


def _matches(wanted: JsonObject, one: JsonObject) -> bool:
    names, read_only = wanted["tool_names"], wanted["read_only"]
    return (names is None or one["name"] in names) and (read_only is None or is_read_only(one) is read_only)


def _is_line(text: str) -> bool:
    return text.isascii() and all(32 <= ord(character) != 127 for character in text)


def _is_name(name: str) -> bool:
    return bool(name) and name.isascii() and all(each.isalnum() or each in "!#$%&'*+-.^_`|~" for each in name)
