"""One running `codex app-server`: start, handshake, requests, turns, shutdown.

One task reads stdout and never waits for anybody: answers go to their futures, what concerns a thread to the one
registry of threads, and questions are answered by policy on the spot. When the process ends, each open request and
each thread is told exactly once, with the end of its (redacted) stderr at hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from typing import Any, Final, Protocol

from isthmus.bridge.dialects.codex.wire import answer_server_request, build_initialize_params
from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber
from isthmus.upstream.codex import rpc
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.options import CodexOptions, child_environment, child_secrets, command_line
from isthmus.upstream.codex.stderr import StderrTail, redact_params
from isthmus.upstream.codex.turns import TurnMessage

KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Windows has no other."""
_CHUNK: Final = 65_536
_TOOL_CALL: Final = "item/tool/call"
_METHOD_NOT_FOUND: Final = -32601
_ERRORS: Final = ("error", "turn/completed")
_OLDEST: Final = (0, 147)
"""The first binary found to say when a model response is complete (0.144.4 does not)."""


class Listener(Protocol):
    """Who is told what concerns threads."""

    def hear(self, thread_id: str, message: TurnMessage) -> bool:
        """Whether somebody took it."""

    def lose(self, gone: CodexGone) -> None:
        """The process has ended."""


async def spawn(options: CodexOptions, *arguments: str, **streams: Any) -> asyncio.subprocess.Process:
    """The program with its environment, or an error that says why it does not run (it may be being replaced)."""
    command = command_line(options, *arguments)
    try:
        return await asyncio.create_subprocess_exec(
            *command, env=child_environment(options), cwd=options.cwd, start_new_session=True, **streams
        )
    except OSError as error:
        raise ConfigError(
            f"cannot start `{command[0]}`: {error.strerror}; check the codex `binary` and `folder`"
        ) from error


async def start_process(options: CodexOptions, listener: Listener) -> CodexProcess:
    """A process that has shaken hands, or an error that says why there is none."""
    pipe = asyncio.subprocess.PIPE
    child = await spawn(options, "app-server", stdin=pipe, stdout=pipe, stderr=pipe)
    process = CodexProcess(child, options, listener)
    try:
        await process.handshake()
    except BaseException:
        await process.close()
        raise
    return process


class CodexProcess:
    def __init__(self, child: asyncio.subprocess.Process, options: CodexOptions, listener: Listener) -> None:
        assert child.stdin is not None
        self.pid = child.pid
        self.ended = asyncio.Event()
        self.exit_code: int | None = None
        self.user_agent = ""
        self._child = child
        self._listener = listener
        self._stdin = child.stdin
        self._options = options
        self._messages = rpc.MessageReader(max_line=options.max_line)
        self._scrub = Scrubber(child_secrets(options)).text
        self._stderr = StderrTail(scrub=self._scrub)
        self._next_id = 0
        self._pending: dict[rpc.RequestId, tuple[str, asyncio.Future[Any]]] = {}
        self._closing = False
        self._tasks = (asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr()))

    @property
    def malformed(self) -> int:
        return self._messages.malformed

    @property
    def stderr(self) -> str:
        return self._stderr.text()

    async def handshake(self) -> None:
        options = self._options
        params = build_initialize_params(version=options.client_version)
        result = await self.request("initialize", params, within=options.handshake_timeout)
        self.user_agent = str(result.get("userAgent", ""))
        version = re.search(r"/(\d+)\.(\d+)\.", self.user_agent)
        if version is not None and (int(version[1]), int(version[2])) < _OLDEST:
            raise ConfigError(f"this `codex` ({version[0][1:-1]}) is too old; use 0.163 or newer")
        self._write(rpc.encode_notification("initialized"))

    async def request(self, method: str, params: JsonObject, *, within: float | None = None) -> JsonObject:
        """The result, or `RpcRefused`, `CodexGone`, or a timeout as `UpstreamFailed`."""
        seconds = self._options.request_timeout if within is None else within
        identity, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[identity] = (method, future)
        try:
            async with asyncio.timeout(seconds):
                await self._send(rpc.encode_request(identity, method, params))
                result = await future
        except TimeoutError as error:
            raise UpstreamFailed(
                f"codex did not answer `{method}` within {seconds:g} s", status=504, metadata={"stderr": self.stderr}
            ) from error
        finally:
            self._pending.pop(identity, None)
        return result if isinstance(result, dict) else {}

    def reply(self, identity: rpc.RequestId, result: JsonObject) -> None:
        self._write(rpc.encode_result(identity, result))

    def reject(self, identity: rpc.RequestId, message: str, *, code: int = -32600) -> None:
        self._write(rpc.encode_error(identity, code, message))

    async def close(self) -> None:
        """End of input, then SIGTERM, then SIGKILL to the whole group; each with a bounded wait."""
        self._closing = True
        with contextlib.suppress(OSError, RuntimeError):
            self._stdin.close()
        for sign in (None, signal.SIGTERM, KILL):
            if sign is not None:
                self._signal(sign)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.shutdown_grace):
                    await self._child.wait()
                    break
        self._signal(KILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.shutdown_grace):
                await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail_all()

    def _signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.pid, sign)
            else:  # Windows knows no groups, and one way to end a process
                self._child.kill()

    def _write(self, line: bytes) -> None:
        if self.ended.is_set() or self._stdin.is_closing():
            raise self._gone()
        self._stdin.write(line)

    async def _send(self, line: bytes) -> None:
        """A broken pipe is not told here: the reader knows better how the process ended, and fails the request."""
        if self.ended.is_set():
            raise self._gone()
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._stdin.write(line)
            await self._stdin.drain()

    async def _read(self) -> None:
        assert self._child.stdout is not None
        try:
            while data := await self._child.stdout.read(_CHUNK):
                for message in self._messages.feed(data):
                    self._dispatch(message)
            await self._await_exit()
        finally:
            self._fail_all()

    async def _await_exit(self) -> None:
        """A process that closed its output is of no use to anybody: do not let it linger."""
        try:
            async with asyncio.timeout(self._options.shutdown_grace):
                await self._child.wait()
        except TimeoutError:
            self._signal(KILL)
            await self._child.wait()
        self.exit_code = self._child.returncode
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.wait((self._tasks[1],))

    async def _read_stderr(self) -> None:
        assert self._child.stderr is not None
        rest = b""
        while data := await self._child.stderr.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._stderr.add(line)
            rest = rest[-_CHUNK:]
        self._stderr.add(rest)

    def _dispatch(self, message: rpc.Message) -> None:
        match message:
            case rpc.Result(identity, value):
                _, future = self._pending.get(identity, ("", None))
                if future is not None and not future.done():
                    future.set_result(value)
            case rpc.Refused(identity, code, text):
                method, future = self._pending.get(identity, ("", None)) if identity is not None else ("", None)
                if future is not None and not future.done():
                    future.set_exception(RpcRefused(method, code, redact_params(text, self._scrub)))
            case rpc.Notification(method, params):
                if method in _ERRORS:  # all others are the model's words
                    message = rpc.Notification(method, redact_params(params, self._scrub))
                self._listener.hear(str(params.get("threadId")), message)
            case rpc.Request():
                self._dispatch_request(message)

    def _dispatch_request(self, request: rpc.Request) -> None:
        if request.method == _TOOL_CALL and self._listener.hear(str(request.params.get("threadId")), request):
            return
        with contextlib.suppress(CodexGone):
            answer = answer_server_request(request.method, request.params, self._options.approvals)
            if answer is not None:
                self.reply(request.id, answer)
            else:
                self.reject(request.id, f"this client does not answer `{request.method}`", code=_METHOD_NOT_FOUND)

    def _fail_all(self) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        for method, future in self._pending.values():
            if not future.done():
                future.set_exception(self._gone(f" while `{method}` was waiting"))
        self._listener.lose(self._gone(" in the middle of a turn"))

    def _gone(self, when: str = "") -> CodexGone:
        how = "was shut down" if self._closing else f"ended (exit code {self.exit_code})"
        return CodexGone(f"the codex process {how}{when}", stderr=self.stderr)
