"""A model provider for tests: a real server on a real socket that does what its script says.

In: steps (see `script`). Out: recorded requests. Each request takes the next step, whatever its path;
`routes` answer fixed paths beside the script. Strict by default: steps that nobody asked for, and
requests that no step was left for, fail the test at the end of the `with` block. A gateway asks a server about its
models in the background (`/v1/models`, `/props` …): where no route answers that, it gets a 404 and stands in
`questions`, apart from the requests, so that a script need not know of it.

    async with ScriptedUpstream([chat("Hello")]) as upstream: ...      # in a coroutine
    with ScriptedUpstream.running([chat("Hello")]) as upstream: ...    # in a thread of its own
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from isthmus.testing.connection import Connection
from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import Answer, Step, as_answer, error
from isthmus.testing.signals import PATIENCE, Signal

_TURNS: Final = 5
"""Of the loop, until whoever was accepted has arrived at `_connected`. asyncio makes a transport in a task of its own,
and a server that was closed meanwhile refuses it without closing its socket (Python 3.11): stop accepting, wait, close.
"""
_ASKS = "isthmus (models)"
"""The user agent of questions about models (`upstream.asking`)."""


class ScriptedUpstream:
    """Speaks HTTP/1.1 on a loopback port of its own choice, and remembers everything."""

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        default: Step | None = None,
        routes: Mapping[str, Step] | None = None,
        strict: bool = True,
        port: int = 0,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        """Every request, in order of arrival, those to `routes` included."""
        self.questions: list[RecordedRequest] = []
        """What was asked about the models, and answered with 404 because no route does."""
        self.unexpected: list[RecordedRequest] = []
        """Requests that no step was left for; they got a 500 that says so."""
        self.failures: list[Exception] = []
        """What handlers raised; they fail the test, strict or not."""
        self._connections = 0
        self._asking: set[int] = set()
        self._script = deque(script)
        self._default = default
        self._routes = dict(routes or {})
        self._strict = strict
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], Connection] = {}
        self._arrivals: dict[int, Signal] = {}
        self._lock = threading.Lock()

    @classmethod
    @contextlib.contextmanager
    def running(
        cls,
        script: Iterable[Step] = (),
        *,
        default: Step | None = None,
        routes: Mapping[str, Step] | None = None,
        strict: bool = True,
        port: int = 0,
    ) -> Iterator[Self]:
        """The same server in a thread with its own loop, for plain tests and for gateways in a subprocess.

        Use a `Gate` to hold an answer here: an `asyncio.Event` set from another thread wakes nobody.
        """
        upstream = cls(script, default=default, routes=routes, strict=strict, port=port)
        started, stop = Signal("the upstream's start"), Signal("the upstream's stop")
        trouble: list[BaseException] = []
        thread = threading.Thread(
            target=upstream._run, args=(started, stop, trouble), name="scripted-upstream", daemon=True
        )
        thread.start()
        started.wait()
        if trouble:
            raise trouble[0]
        try:
            yield upstream
        finally:
            stop.set()
            thread.join(PATIENCE)
        if trouble:
            raise trouble[0]
        upstream.check()

    @property
    def port(self) -> int:
        """The port it listens on; known once it runs."""
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What a client of Chat Completions takes as its base URL."""
        return f"{self.url}/v1"

    @property
    def connections(self) -> int:
        """How many there were, without those that only asked about the models."""
        return self._connections - len(self._asking)

    @property
    def remaining(self) -> int:
        """How many steps nobody has asked for yet."""
        return len(self._script)

    def push(self, *steps: Step) -> None:
        """Add steps to the script's end, from any thread."""
        self._script.extend(steps)

    def wait_received(self, count: int = 1, within: float = PATIENCE) -> RecordedRequest:
        """Block until so many requests have come in, and give the last of those."""
        self._arrival(count).wait(within)
        return self.requests[count - 1]

    async def received(self, count: int = 1, within: float = PATIENCE) -> RecordedRequest:
        """Await so many requests, and give the last of those."""
        await self._arrival(count).waited(within)
        return self.requests[count - 1]

    def check(self) -> None:
        """Fail when a handler failed or, if strict, when script and requests did not match."""
        for failure in self.failures:
            raise AssertionError(f"a step of the script failed: {failure!r}") from failure
        if self._strict and self.unexpected:
            asked = ", ".join(f"{request.method} {request.target}" for request in self.unexpected)
            raise AssertionError(f"the script had no step left for {len(self.unexpected)} request(s): {asked}")
        if self._strict and self._script:
            raise AssertionError(f"{len(self._script)} step(s) of the script were never asked for")

    async def start(self) -> None:
        """Listen. The port is free of choice the first time, and the same after a `stop`."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse new connections and tear the open ones down."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await stop_accepting(server)
        server.close()
        for task, connection in list(self._open.items()):
            connection.abort()
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await server.wait_closed()
        await asyncio.sleep(0)  # the transports close their sockets in the turn after they were aborted

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if kind is None:
            self.check()

    def _run(self, started: Signal, stop: Signal, trouble: list[BaseException]) -> None:
        async def live() -> None:
            await self.start()
            started.set()
            await stop.waited(None)
            await self.stop()

        try:
            asyncio.run(live())
        except BaseException as error:
            trouble.append(error)
        finally:
            started.set()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        connection = Connection(self._connections, reader, writer, self._choose)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._open[task] = connection
        task.add_done_callback(self._disconnected)

    def _disconnected(self, task: asyncio.Task[None]) -> None:
        del self._open[task]
        if not task.cancelled() and isinstance(failure := task.exception(), Exception):
            self.failures.append(failure)

    async def _choose(self, request: RecordedRequest) -> Answer:
        step = self._routes.get(request.path)
        if step is None and request.headers.get("user-agent") == _ASKS:
            self.questions.append(request)
            self._asking.add(request.connection)
            return error(404, f"no route answers {request.method} {request.target}")
        self._record(request)
        if step is None and self._script:
            step = self._script.popleft()
        if step is None:
            step = self._default
        if step is None:
            self.unexpected.append(request)
            return error(500, f"the script has no step left for {request.method} {request.target}")
        try:
            return await _resolve(step, request)
        except Exception as failure:
            self.failures.append(failure)
            return error(500, f"a step of the script failed: {failure!r}")

    def _record(self, request: RecordedRequest) -> None:
        self.requests.append(request)
        self._arrival(len(self.requests)).set()

    def _arrival(self, count: int) -> Signal:
        with self._lock:
            return self._arrivals.setdefault(count, Signal(f"request {count}"))


async def stop_accepting(server: asyncio.Server) -> None:
    """To be awaited before a server is closed: whoever was accepted has its connection by then."""
    with contextlib.suppress(NotImplementedError):  # not every loop has readers to take away
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def _resolve(step: Step, request: RecordedRequest) -> Answer:
    """Call handlers until a plain answer is there."""
    while callable(step):
        made = step(request)
        step = await made if inspect.isawaitable(made) else made
    return as_answer(step)
