"""One connection to an MCP server, through the official SDK (extra `mcp`): its tools as it lists them, calls as it
answers them.

In: `Stdio` or `Http`, and a name for logs. Out: an `McpSession`, for the library's tools (`tools.mcp`) and for the
servers that a gateway calls for its clients alike. Worth knowing: the connection lives in a task of its own, because it
must be opened and closed by the same one. A changed list is read again, at most once in a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from isthmus.errors import ConfigError
from isthmus.log import tell
from isthmus.scrub import Scrubber, Secret, header_secrets, url_secrets
from isthmus.tools.results import words_of

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from mcp import Client

log = logging.getLogger("isthmus.mcp")

PATIENCE: Final = 30.0
"""Seconds for a server to start and list its tools."""
MAX_TOOLS: Final = 1_000
"""Tools of one server: a list that never ends must end somewhere."""
MAX_PAGES: Final = 100
"""Pages of that list: they may be empty."""
_PACE: Final = 1.0
"""Seconds between two readings of a list that is said to have changed."""
_FAREWELL: Final = 10.0
"""Seconds for a server to say goodbye, and as many again for what is left of it."""
OLDEST: Final = "2.1"
"""The first version of the SDK whose `Client` starts a program (2.0.1 cannot; 1.x has no `Client`)."""

Way = Callable[[Mapping[str, str]], "AsyncClient"]
"""Makes the HTTP client of a connection, which shows these headers."""


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
    way: Way | None = field(default=None, repr=False)
    """Who connects; `None`: the SDK itself."""
    max_event: int | None = None
    """Bytes of one event of a stream; `None`: what the SDK thinks."""


McpTarget = Stdio | Http


def target_secrets(target: McpTarget) -> Iterator[Secret]:
    """What it takes to get in: nobody hears of it when something goes wrong."""
    if isinstance(target, Http):
        yield from header_secrets(target.headers)
        yield from url_secrets(target.url)
    else:
        yield from (Secret(value, name) for name, value in (target.env or {}).items() if not value.startswith("/"))


class Progress(Protocol):
    """Hears how far a call is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class NotConnected(Exception):
    """The connection is gone; nothing was sent."""


class TooMuch(Exception):
    """A list that is too long to be taken."""


class McpSession:
    """One connected server."""

    def __init__(
        self, target: McpTarget, name: str, *, max_tools: int = MAX_TOOLS, max_list: int | None = None
    ) -> None:
        """`max_list`: bytes of the whole list."""
        self.name = name
        self._max_list = max_list
        self.listed: Sequence[Any] = ()
        """Its tools in the SDK's own words."""
        self.listed_at = 0.0
        """When, by the loop's clock."""
        self._max_tools = max_tools
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
        """Disconnect; whoever calls from now on hears that nobody is there."""
        self._stop.set()
        self.listed = ()
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

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: Progress | None = None) -> Any:
        """The SDK's own result; raises whatever the SDK does, or `NotConnected`."""
        client = self._client
        if client is None:
            raise NotConnected(f"the MCP server `{self.name}` is not connected any more")
        if progress is None:
            return await client.call_tool(tool, dict(arguments))
        return await client.call_tool(tool, dict(arguments), progress_callback=progress)

    async def refresh(self) -> None:
        """Read the list anew."""
        client = self._client
        if client is None:
            raise NotConnected(f"the MCP server `{self.name}` is not connected any more")
        await self._refresh(client)

    def reason(self, error: BaseException) -> str:
        """What went wrong, in words without the secrets of the way there."""
        return self._scrub(innermost_reason(error))

    def take(self, found: Sequence[Any], *, cut: bool) -> None:
        """A list has come; `cut`: there were more."""
        self.listed = found

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
        elif self._target.headers or self._target.way is not None:
            from mcp.client.streamable_http import DEFAULT_MAX_SSE_EVENT_SIZE, streamable_http_client

            target = self._target
            http = await stack.enter_async_context((target.way or _plain_way)(target.headers))
            size = target.max_event or DEFAULT_MAX_SSE_EVENT_SIZE
            transport = streamable_http_client(target.url, http_client=http, max_sse_event_size=size)
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
                    await asyncio.wait({stopping}, timeout=_PACE)  # however often it is said to have changed
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
        cursor, size = None, 0
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            found += page.tools
            size += 0 if self._max_list is None else len(page.model_dump_json())
            if self._max_list is not None and size > self._max_list:
                raise TooMuch(f"its list of tools is longer than {self._max_list} bytes (`max_reply`)")
            # The same page again says that there is no other.
            if page.next_cursor == cursor or not page.next_cursor or len(found) > self._max_tools:
                break
            cursor = page.next_cursor
        cut = len(found) > self._max_tools
        if cut:
            tell(log, "warning", "mcp.tools.too_many", name=self.name, limit=self._max_tools)
        self.take(found[: self._max_tools], cut=cut)
        self.listed_at = asyncio.get_running_loop().time()
        self.refreshed += 1


def _plain_way(headers: Mapping[str, str]) -> AsyncClient:
    import httpx2

    return httpx2.AsyncClient(headers=dict(headers), timeout=None)


def innermost_reason(error: BaseException) -> str:
    """The innermost reason of a group of errors, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return words_of(error) or type(error).__name__
