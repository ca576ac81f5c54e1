"""One running `codex app-server`: start, handshake, requests, turns, shutdown.

One task reads stdout and never waits for anybody: answers go to their futures, turn messages to their
turn's mailbox, questions are answered by policy on the spot. When the process ends, each open request and
each open turn fails exactly once, with the end of its (redacted) stderr at hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from typing import Any, Final

from isthmus.bridge.dialects.codex.wire import answer_server_request, build_initialize_params
from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber
from isthmus.upstream.codex import rpc
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.options import ProcessOptions, child_environment, child_secrets, command_line
from isthmus.upstream.codex.stderr import StderrTail, redact_params
from isthmus.upstream.codex.turns import TurnQueue

KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Windows has no other."""
_CHUNK = 65_536
_TOOL_CALL = "item/tool/call"
_METHOD_NOT_FOUND = -32601
_MARKS_RESPONSES = (0, 147)
"""The first binary found to send `rawResponse/completed` (0.144.4 does not)."""


async def start_process(options: ProcessOptions) -> CodexProcess:
    """A process that has shaken hands, or an error that says why there is none."""
    try:
        child = await asyncio.create_subprocess_exec(
            *command_line(options, "app-server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(options),
            cwd=options.cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigError(f"cannot start `{options.binary}`: {error.strerror}; check the codex `binary`") from error
    process = CodexProcess(child, options)
    try:
        await process.handshake()
    except BaseException:
        await process.close()
        raise
    return process


class CodexProcess:
    def __init__(self, child: asyncio.subprocess.Process, options: ProcessOptions) -> None:
        assert child.stdin is not None
        self.pid = child.pid
        self.ended = asyncio.Event()
        self.exit_code: int | None = None
        self.user_agent = ""
        self.older_methods = False
        """Whether this binary knows only the older methods; found out by the first thread start."""
        self.marks_responses = True
        """Whether it says when a model response is complete; found out by the handshake."""
        self._child = child
        self._stdin = child.stdin
        self._options = options
        self._messages = rpc.MessageReader(max_line=options.max_line)
        self._scrub = Scrubber(child_secrets(options)).text
        self._stderr = StderrTail(scrub=self._scrub)
        self._next_id = 0
        self._pending: dict[rpc.RequestId, tuple[str, asyncio.Future[Any]]] = {}
        self._turns: dict[str, TurnQueue] = {}
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
        params = build_initialize_params(name=options.client_name, version=options.client_version)
        result = await self.request("initialize", params, within=options.handshake_timeout)
        self.user_agent = str(result.get("userAgent", ""))
        version = re.search(r"/(\d+)\.(\d+)\.", self.user_agent)
        self.marks_responses = version is None or (int(version[1]), int(version[2])) >= _MARKS_RESPONSES
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

    def open_turn(self, thread_id: str) -> TurnQueue:
        """A mailbox for the thread's next turn; open it before asking for the turn."""
        queue = TurnQueue(self._options.queue_size)
        if self.ended.is_set():
            queue.fail(self._gone())
        self._turns[thread_id] = queue
        return queue

    def close_turn(self, thread_id: str, queue: TurnQueue) -> None:
        if self._turns.get(thread_id) is queue:
            del self._turns[thread_id]

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
                queue = self._turns.get(_thread_of(params))
                if queue is not None:
                    telling = _tells_error(method, params)
                    queue.put(rpc.Notification(method, redact_params(params, self._scrub)) if telling else message)
            case rpc.Request():
                self._dispatch_request(message)

    def _dispatch_request(self, request: rpc.Request) -> None:
        if request.method == _TOOL_CALL:
            queue = self._turns.get(_thread_of(request.params))
            if queue is not None:
                queue.put(request)
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
        for queue in self._turns.values():
            queue.fail(self._gone(" in the middle of a turn"))
        self._turns = {}

    def _gone(self, when: str = "") -> CodexGone:
        how = "was shut down" if self._closing else f"ended (exit code {self.exit_code})"
        return CodexGone(f"the codex process {how}{when}", stderr=self.stderr)


def _tells_error(method: str, params: JsonObject) -> bool:
    """Whether this is one of the few messages that speak of an error; all others are the model's."""
    if method in ("error", "turn/completed"):
        return True
    event = params.get("msg") if method.startswith("codex/event") else None
    return isinstance(event, dict) and event.get("type") in ("error", "stream_error")


def _thread_of(params: JsonObject) -> str:
    return str(params.get("threadId") or params.get("conversationId") or "")
