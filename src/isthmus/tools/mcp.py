"""MCP servers as tools, through the official SDK (extra `mcp`), over stdio or HTTP.

In: `stdio(…)` or `http(…)`, and a name. Out: an `McpServer` whose tools are called `<name>_<tool>`. Worth knowing: the
connection is that of `tools.mcp_session`; a tool that cannot be taken over is reported in `problems` and costs nobody
else anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from isthmus.errors import ConfigError, RequestRefused
from isthmus.log import tell
from isthmus.scrub import Scrub, unscrubbed
from isthmus.tools.calls import compact_json
from isthmus.tools.context import ToolFailed, ToolReturn
from isthmus.tools.definition import MAX_NAME, Tool
from isthmus.tools.mcp_session import (
    MAX_TOOLS,
    OLDEST,
    PATIENCE,
    Http,
    McpSession,
    McpTarget,
    NotConnected,
    Stdio,
    innermost_reason,
    log,
)
from isthmus.tools.messages import DocumentPart, ImagePart, Part, TextPart

__all__ = ["MAX_TOOLS", "OLDEST", "PATIENCE", "McpServer", "McpTarget", "http", "join_tools", "open_mcp", "stdio"]

_HASH: Final = 8


def stdio(command: str, *args: str, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Stdio:
    """A server that is started as a program and spoken to over its standard input and output."""
    return Stdio(command, args, env, cwd)


def http(url: str, *, headers: Mapping[str, str] | None = None) -> Http:
    """A server at an address (Streamable HTTP)."""
    return Http(url, dict(headers or {}))


async def open_mcp(server: McpServer, *, required: bool, within: float = PATIENCE) -> bool:
    """Connect and read the tools; `False` only for a server that is not required.

    Whoever made the server closes it, whatever comes of this: one that gives no answer may take its time to go.
    """
    try:
        await server.start(within)
        return True
    except Exception as error:
        reason = server.reason(error)
        if not required:
            tell(log, "warning", "mcp.unavailable", name=server.name, reason=reason)
            return False
        if isinstance(error, ConfigError):
            raise
    words = f"MCP server `{server.name}` cannot be used: {reason}; with `required=False` the rest goes on without it"
    raise ConfigError(words, code="mcp_unavailable")  # out here: the library's own error may hold the address


class McpServer(McpSession):
    """One connected server, its tools ready to run."""

    def __init__(self, target: McpTarget, name: str, *, max_tools: int = MAX_TOOLS) -> None:
        super().__init__(target, name, max_tools=max_tools)
        self.tools: list[Tool[..., Any]] = []
        self.problems: list[str] = []
        """Tools that could not be taken over, and why."""

    async def aclose(self) -> None:
        """Disconnect; its tools answer with a failure from now on."""
        self.tools = []
        await super().aclose()

    def take(self, found: Sequence[Any], *, cut: bool) -> None:
        super().take(found, cut=cut)
        tools, problems = _adopt(self.name, found, self._handler, self._scrub)
        if cut:
            problems.append(f"it lists more than {self._max_tools} tools (`max_tools`); the rest is left out")
        self.tools, self.problems = tools, problems

    def _handler(self, tool_name: str) -> Callable[[Mapping[str, Any]], Any]:
        async def handle(arguments: Mapping[str, Any]) -> Any:
            try:
                answer = await self.call(tool_name, arguments)
            except NotConnected as error:
                raise ToolFailed(str(error)) from None
            except Exception as error:
                said = f"`{tool_name}` failed: {type(error).__name__}: {self.reason(error)}"
                tell(log, "warning", "mcp.call.failed", name=self.name, tool=tool_name, reason=self.reason(error))
            else:
                return self._read(tool_name, answer)
            raise ToolFailed(said)  # out here: the library's own error may hold the address

        return handle

    def _read(self, tool_name: str, answer: Any) -> ToolReturn:
        content = [_part(block) for block in answer.content]
        if answer.is_error:
            words = " ".join(part.text for part in content if isinstance(part, TextPart))
            raise ToolFailed(self._scrub(words) or f"`{tool_name}` failed")
        value = answer.structured_content
        if not content and value is not None:
            content = [TextPart(compact_json(value))]
        return ToolReturn(value if value is not None else content, content)


def _adopt(
    server: str,
    found: Sequence[Any],
    handler: Callable[[str], Callable[[Mapping[str, Any]], Any]],
    scrub: Scrub = unscrubbed,
) -> tuple[list[Tool[..., Any]], list[str]]:
    """One bad tool costs only itself."""
    tools: list[Tool[..., Any]] = []
    problems: list[str] = []
    wanted = Counter(scoped_name(server, one.name) for one in found)
    seen: set[str] = set()
    for one in found:
        try:
            if one.name in seen:
                raise RequestRefused("it is listed twice")
            seen.add(one.name)
            name = scoped_name(server, one.name)
            if wanted[name] > 1 and name != f"{server}_{one.name}":
                name = _marked_name(name, server, one.name)  # `a.b` beside `a_b`, which keeps its name
            schema = {"type": "object", **(one.input_schema or {})}
            tools.append(Tool.from_schema(name, one.description or "", schema, handler(one.name)))
        except Exception as error:
            problems.append(f"`{one.name}`: {scrub(innermost_reason(error))}")
            tell(
                log, "warning", "mcp.tool.left_out", server=server, tool=one.name, reason=scrub(innermost_reason(error))
            )
    return tools, problems


def scoped_name(server: str, tool: str) -> str:
    """`github` and `search` → `github_search`: two servers may well have a tool of the same name."""
    full = "".join(one if one.isascii() and (one.isalnum() or one in "_-") else "_" for one in f"{server}_{tool}")
    if len(full) <= MAX_NAME:
        return full
    return _marked_name(full, server, tool)


def join_tools(own: Iterable[Tool[..., Any]], servers: Iterable[McpServer]) -> list[Tool[..., Any]]:
    """All tools together. A name that is taken (`a` has `b_c`, `a_b` has `c`) is marked: no run fails because of it."""
    tools = list(own)
    taken = {one.name for one in tools}
    for server in servers:
        for one in server.tools:
            if one.name in taken:
                one = replace(one, name=_marked_name(one.name, server.name, one.name))
            if one.name not in taken:
                taken.add(one.name)
                tools.append(one)
    return tools


def _marked_name(full: str, server: str, tool: str) -> str:
    """A name of its own for this tool of this server, and the same one every time."""
    tail = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{full[: MAX_NAME - _HASH - 1]}_{tail}"


def _part(block: Any) -> Part:
    match getattr(block, "type", ""):
        case "text":
            return TextPart(block.text)
        case "image":
            return ImagePart.from_bytes(base64.b64decode(block.data), block.mime_type)
        case "resource":
            inner = block.resource
            text = getattr(inner, "text", None)
            if text is not None:
                return TextPart(text)
            kind = inner.mime_type or "application/octet-stream"
            return DocumentPart(str(inner.uri), data=f"data:{kind};base64,{inner.blob}")
        case _:
            return TextPart(block.model_dump_json(exclude_none=True))
