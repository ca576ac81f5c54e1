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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from isthmus.errors import ConfigError, RequestRefused
from isthmus.log import tell
from isthmus.scrub import Scrub, Scrubber, Secret, header_secrets, unscrubbed, url_secrets
from isthmus.tools.calls import compact_json
from isthmus.tools.context import ToolFailed, ToolReturn
from isthmus.tools.definition import MAX_NAME, Tool
from isthmus.tools.messages import DocumentPart, ImagePart, Part, TextPart
from isthmus.tools.results import words_of

if TYPE_CHECKING:
    from mcp import Client

log = logging.getLogger("isthmus.mcp")

PATIENCE: Final = 30.0
"""Seconds for a server to start and list its tools."""
MAX_TOOLS: Final = 1_000
"""Tools of one server: a list that never ends must end somewhere."""
_FAREWELL: Final = 10.0
"""Seconds for a server to say goodbye, and as many again for what is left of it."""
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


class McpServer:
    """One connected server."""

    def __init__(self, target: McpTarget, name: str, *, max_tools: int = MAX_TOOLS) -> None:
        self.name = name
        self._max_tools = max_tools
        self.tools: list[Tool[..., Any]] = []
        self.problems: list[str] = []
        """Tools that could not be taken over, and why."""
        self._target = target
        self._scrub = Scrubber(target_secrets(target)).text
        self._client: Client | None = None
        self._life: asyncio.Task[None] | None = None
        self._serving = False
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self.listening = asyncio.Event()
        """Set once it is known how changes of the list will be heard of."""
        self.refreshed = 0
        """How often the list of tools was read."""

    async def start(self, within: float) -> None:
        """Connect, shake hands, read the tools."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = life = asyncio.create_task(self._live(ready), name=f"isthmus-mcp-{self.name}")
        try:
            await asyncio.wait({ready}, timeout=within)
            if not ready.done():
                raise ConfigError(f"MCP server `{self.name}` did not answer within {within:g} s")
            ready.result()
        except BaseException:
            # Once and no more: a second cancellation would reach the SDK while it ends the server's process.
            life.cancel()
            raise

    @property
    def gone(self) -> bool:
        """Whether nothing of the connection is left."""
        return self._life is None or self._life.done()

    async def aclose(self) -> None:
        """Disconnect; its tools answer with a failure from now on."""
        self._stop.set()
        self.tools = []
        life, self._life = self._life, None
        if life is None:
            return
        if not self._serving and not life.cancelling():
            life.cancel()  # it is still on its way in, and looks at nothing else
        await asyncio.wait({life}, timeout=_FAREWELL)
        if not life.done():
            life.cancel()
            await asyncio.wait({life}, timeout=_FAREWELL)
        if not life.done():
            tell(log, "warning", "mcp.abandoned", name=self.name)
        elif not life.cancelled():
            life.exception()  # looked at, so that nobody calls it forgotten

    def reason(self, error: BaseException) -> str:
        """What went wrong, in words without the secrets of the way there."""
        return self._scrub(_reason(error))

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._client = client = await self._connect(stack)
                await self._refresh(client)
                ready.set_result(None)
                self._serving = True
                await self._follow(client)
        except Exception as error:
            if ready.done():  # a cancelled start has told its reason already
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
                    await self._refresh_or_keep(client)
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

    async def _refresh_or_keep(self, client: Client) -> None:
        """A server that tells of a new list and then does not give it keeps the tools that it had."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._refresh(client)
        except Exception as error:
            tell(log, "warning", "mcp.refresh.failed", name=self.name, reason=self.reason(error))

    async def _refresh(self, client: Client) -> None:
        found: list[Any] = []
        cursor: str | None = None
        while len(found) <= self._max_tools:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            found += page.tools
            if page.next_cursor == cursor or not page.next_cursor:  # the same page again says that there is no other
                break
            cursor = page.next_cursor
        tools, problems = _adopt(self.name, found[: self._max_tools], self._handler, self._scrub)
        if len(found) > self._max_tools:
            problems.append(f"it lists more than {self._max_tools} tools (`max_tools`); the rest is left out")
            tell(log, "warning", "mcp.tools.too_many", name=self.name, limit=self._max_tools)
        self.tools, self.problems = tools, problems
        self.refreshed += 1

    def _handler(self, tool_name: str) -> Callable[[Mapping[str, Any]], Any]:
        async def handle(arguments: Mapping[str, Any]) -> Any:
            client = self._client
            if client is None:
                raise ToolFailed(f"the MCP server `{self.name}` is not connected any more")
            try:
                answer = await client.call_tool(tool_name, dict(arguments))
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
            problems.append(f"`{one.name}`: {scrub(_reason(error))}")
            tell(log, "warning", "mcp.tool.left_out", server=server, tool=one.name, reason=scrub(_reason(error)))
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


def _reason(error: BaseException) -> str:
    """The innermost reason of a group of errors, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return words_of(error) or type(error).__name__
