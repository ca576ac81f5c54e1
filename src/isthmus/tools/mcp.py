"""MCP servers as tools, through the official SDK (extra `mcp`), over stdio or HTTP.

In: `stdio(…)` or `http(…)`, and a name. Out: an `McpServer` whose tools are called `<name>_<tool>`. Worth knowing: the
connection lives in a task of its own, because it must be opened and closed by the same one. A tool that cannot be
taken over is reported in `problems` and costs nobody else anything; a changed list is read again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from isthmus.errors import ConfigError
from isthmus.log import tell
from isthmus.scrub import Scrubber, Secret, header_secrets, url_secrets
from isthmus.tools.calls import compact_json
from isthmus.tools.context import ToolFailed, ToolReturn
from isthmus.tools.definition import MAX_NAME, Tool
from isthmus.tools.messages import DocumentPart, ImagePart, Part, TextPart

if TYPE_CHECKING:
    from mcp import Client

log = logging.getLogger("isthmus.mcp")

_PATIENCE: Final = 30.0
"""Seconds for a server to start and list its tools."""
_HASH: Final = 8
OLDEST: Final = "2.1"
"""The first version of the SDK whose `Client` starts a program (2.0.1 cannot; 1.x has no `Client`)."""


@dataclass(frozen=True, slots=True)
class Stdio:
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class Http:
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


McpTarget = Stdio | Http


def target_secrets(target: McpTarget) -> Iterator[Secret]:
    """What it takes to get in: nobody hears of it when something goes wrong."""
    if isinstance(target, Http):
        yield from header_secrets(target.headers)
        yield from url_secrets(target.url)
    else:
        yield from (Secret(value, name) for name, value in (target.env or {}).items() if not value.startswith("/"))


def stdio(command: str, *args: str, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Stdio:
    """A server that is started as a program and spoken to over its standard input and output."""
    return Stdio(command, args, env, cwd)


def http(url: str, *, headers: Mapping[str, str] | None = None) -> Http:
    """A server at an address (Streamable HTTP)."""
    return Http(url, dict(headers or {}))


async def open_mcp(target: McpTarget, *, name: str, required: bool, within: float = _PATIENCE) -> McpServer | None:
    """Connect and read the tools; `None` only for a server that is not required."""
    server = McpServer(target, name)
    try:
        await server.start(within)
        return server
    except Exception as error:
        await server.aclose()
        reason = server.reason(error)
        if not required:
            tell(log, "warning", "mcp.unavailable", name=name, reason=reason)
            return None
        if isinstance(error, ConfigError):
            raise
    words = f"MCP server `{name}` cannot be used: {reason}; with `required=False` the rest goes on without it"
    raise ConfigError(words, code="mcp_unavailable")  # out here: the library's own error may hold the address


class McpServer:
    """One connected server."""

    def __init__(self, target: McpTarget, name: str) -> None:
        self.name = name
        self.tools: list[Tool[..., Any]] = []
        self.problems: list[str] = []
        """Tools that could not be taken over, and why."""
        self._target = target
        self._scrub = Scrubber(target_secrets(target)).text
        self._client: Client | None = None
        self._life: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self.listening = asyncio.Event()
        """Set once it is known how changes of the list will be heard of."""
        self.refreshed = 0
        """How often the list of tools was read."""

    async def start(self, within: float) -> None:
        """Connect, shake hands, read the tools."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(ready), name=f"isthmus-mcp-{self.name}")
        try:
            await asyncio.wait_for(asyncio.shield(ready), within)
        except TimeoutError as error:
            raise ConfigError(f"MCP server `{self.name}` did not answer within {within:g} s") from error

    async def aclose(self) -> None:
        """Disconnect; its tools answer with a failure from now on."""
        self._stop.set()
        life, self._life = self._life, None
        if life is not None:
            _, running = await asyncio.wait({life}, timeout=10.0)
            for task in running:
                task.cancel()
            await asyncio.gather(life, return_exceptions=True)
        self.tools = []

    def reason(self, error: BaseException) -> str:
        """What went wrong, in words without the secrets of the way there."""
        return self._scrub(_reason(error))

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._client = client = await self._connect(stack)
                await self._refresh(client)
                ready.set_result(None)
                await self._follow(client)
        except Exception as error:
            if ready.done():
                tell(log, "warning", "mcp.lost", name=self.name, reason=self.reason(error))
            else:
                ready.set_exception(error)
        finally:
            self._client = None

    async def _connect(self, stack: AsyncExitStack) -> Client:
        try:
            from mcp import Client, StdioServerParameters
        except ImportError as error:
            raise ConfigError(f"MCP needs the official SDK, {OLDEST} or newer; install `isthmus[mcp]`") from error
        transport: Any
        if isinstance(self._target, Stdio):
            given = self._target
            transport = StdioServerParameters(
                command=given.command, args=list(given.args), env=dict(given.env) if given.env else None, cwd=given.cwd
            )
        elif self._target.headers:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(self._target.headers), timeout=None))
            transport = streamable_http_client(self._target.url, http_client=http)
        else:
            transport = self._target.url
        return await stack.enter_async_context(Client(transport, message_handler=self._hear))

    async def _hear(self, message: object) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self._changed.set()

    async def _follow(self, client: Client) -> None:
        """Until it is told to stop: read the tools again whenever the server says that they changed."""
        stopping = asyncio.create_task(self._stop.wait())
        listening = asyncio.create_task(self._listen(client))
        try:
            while not self._stop.is_set():
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({stopping, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if self._changed.is_set() and not self._stop.is_set():
                    self._changed.clear()
                    await self._refresh(client)
        finally:
            stopping.cancel()
            listening.cancel()
            await asyncio.gather(stopping, listening, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Newer servers tell of changes only to those who subscribed; older ones tell everybody."""
        try:
            async with client.listen(tools_list_changed=True) as news:
                self.listening.set()
                async for _ in news:
                    self._changed.set()
        except Exception as error:
            tell(log, "debug", "mcp.listen.unavailable", name=self.name, reason=self.reason(error))
        finally:
            self.listening.set()

    async def _refresh(self, client: Client) -> None:
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        self.tools, self.problems = _adopt(self.name, found, self._handler)
        self.refreshed += 1

    def _handler(self, tool_name: str) -> Callable[[Mapping[str, Any]], Any]:
        async def handle(arguments: Mapping[str, Any]) -> Any:
            client = self._client
            if client is None:
                raise ToolFailed(f"the MCP server `{self.name}` is not connected any more")
            answer = await client.call_tool(tool_name, dict(arguments))
            content = [_part(block) for block in answer.content]
            if answer.is_error:
                words = " ".join(part.text for part in content if isinstance(part, TextPart))
                raise ToolFailed(words or f"`{tool_name}` failed")
            value = answer.structured_content
            if not content and value is not None:
                content = [TextPart(compact_json(value))]
            return ToolReturn(value if value is not None else content, content)

        return handle


def _adopt(
    server: str, found: Sequence[Any], handler: Callable[[str], Callable[[Mapping[str, Any]], Any]]
) -> tuple[list[Tool[..., Any]], list[str]]:
    """One bad tool costs only itself."""
    tools: list[Tool[..., Any]] = []
    problems: list[str] = []
    for one in found:
        try:
            name = scoped_name(server, one.name)
            schema = {"type": "object", **(one.input_schema or {})}
            tools.append(Tool.from_schema(name, one.description or "", schema, handler(one.name)))
        except Exception as error:
            problems.append(f"`{one.name}`: {_reason(error)}")
            tell(log, "warning", "mcp.tool.left_out", server=server, tool=one.name, reason=_reason(error))
    return tools, problems


def scoped_name(server: str, tool: str) -> str:
    """`github` and `search` → `github_search`: two servers may well have a tool of the same name."""
    full = "".join(one if one.isascii() and (one.isalnum() or one in "_-") else "_" for one in f"{server}_{tool}")
    if len(full) <= MAX_NAME:
        return full
    tail = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH]
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


def _reason(error: BaseException) -> str:
    """The innermost reason of a group of errors, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return str(error) or type(error).__name__
