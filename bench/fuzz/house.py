"""A gateway in a thread of this process, a provider that answers what a case says, and a count of the work done.

The counter follows every line of the product that the gateway's own thread runs: how many there are is the work of a
case, which no busy machine changes, and which ones there are is what the fuzzer learns from.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import sys
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from bench.fuzz.case import Case

import isthmus
from isthmus.config import load_config
from isthmus.config.schema import Limits
from isthmus.server.serve import serve
from isthmus.testing import ScriptedUpstream
from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import Answer

HANG: Final = 30.0
PRODUCT: Final = str(Path(isthmus.__file__).parent)
MAX_BODY: Final = 400_000
CONFIG: Final = f"""
[server]
port = 0
max_body = {MAX_BODY}
grace = 1
heartbeat = 0
ping = 0
[models]
demo = false
default = "up/model"
[store]
url = "memory:"
max_chain = 20
[checks]
workers = 1
deadline = 2
"""
PROVIDERS: Final = {
    "up": ("openai-compatible", "chat"),
    "full": ("openai", "chat"),
    "deep": ("deepseek", "chat"),
    "zhipu": ("zhipu", "chat"),
    "native": ("openai", "responses"),
}
TIGHT: Final = {
    "max_values": 6_000,
    "max_depth": 60,
    "max_fields": 100,
    "max_items": 200,
    "max_parts": 300,
    "max_tools": 50,
    "max_answer": 40_000,
    "max_chunks": 150,
}
"""Limits that a case can exceed without being large: whether they are kept is seen sooner."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a case."""

    status: int
    headers: dict[str, str]
    body: bytes
    lines: int
    """Lines of the product that the gateway's thread ran for it."""
    cpu: float
    """Seconds of CPU time of that thread."""
    new: int
    """Lines that no case before it had reached."""
    asked: int
    """Bytes of the request."""
    answered: int
    """Bytes of all answers of the provider."""
    sent: int
    """Requests that the provider was sent for it."""
    traces: tuple[str, ...]
    """Bugs that the log tells of."""
    stored: bytes | None
    """The response as it was kept, if it was."""
    problem: str = ""


class _Counter:
    """Installed in the gateway's thread. Frames of others (libraries, the standard library) cost one call each."""

    def __init__(self) -> None:
        self.lines = 0
        self.reached: set[tuple[CodeType, int]] = set()

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return self._line if frame.f_code.co_filename.startswith(PRODUCT) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line":
            self.lines += 1
            self.reached.add((frame.f_code, frame.f_lineno))
        return self._line


class _Bugs(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.told.append(self.format(record)[-2_000:])


class House:
    def __init__(self, upstream: ScriptedUpstream, config: str, hang: float = HANG) -> None:
        self._hang = hang
        self.counter = _Counter()
        self._upstream = upstream
        self._config = config
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fuzzed gateway", daemon=True)
        self._trouble: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._port = 0
        self._clock = 0
        self._bugs = _Bugs()
        self._connection: http.client.HTTPConnection | None = None
        self._answer: Case | None = None
        self._answered = 0
        self.counts = True
        """Whether the lines of the product are counted: that takes four fifths of the time."""
        self.key = ""
        """What is shown with every request, where a key is needed."""
        self.gateway: Any = None
        """Belongs to its thread: `do` something with it there."""
        self.item = "msg_none"
        """An item that is stored, for references."""
        self.limits: dict[str, int] = {}
        """What `[limits]` says."""

    def start(self) -> None:
        logging.getLogger("isthmus").addHandler(self._bugs)
        self._upstream._default = self._say
        self._thread.start()
        if not self._ready.wait(HANG) or self._trouble is not None:
            raise RuntimeError("the gateway did not start") from self._trouble
        first = Case(False, {"input": "a stored question"}, ({"choices": [{"delta": {"content": "yes"}}]},))
        id = json.loads(self.send(first).body)["id"]
        _, _, items = self._exchange("GET", f"/v1/responses/{id}/input_items", None)
        self.item = json.loads(items)["data"][0]["id"]

    def stop(self) -> None:
        logging.getLogger("isthmus").removeHandler(self._bugs)
        self.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(HANG)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self) -> None:
        async def main() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            with TemporaryDirectory() as folder:
                file = Path(folder) / "isthmus.toml"
                file.write_text(self._config)
                config = load_config(file, environ={}).config

            def started(address: str, gateway: object) -> None:
                self.gateway = gateway
                self._port = urlsplit(address).port or 0
                if self.counts:
                    sys.settrace(self.counter.trace)
                self._ready.set()

            await serve(config, started=started, stop=self._stop)

        try:
            asyncio.run(main())
        except BaseException as error:
            self._trouble = error
            self._ready.set()

    def _say(self, request: RecordedRequest) -> Answer:
        assert self._answer is not None
        streamed = b'"stream":true' in request.body or b'"stream": true' in request.body
        answer = self._answer.answer(streamed, native=request.path.endswith("/responses"))
        self._answered += sum(len(part) for part in answer.parts if isinstance(part, bytes))
        return answer

    def answer_with(self, case: Case) -> None:
        """Whatever the provider is asked from now on."""
        self._answer = case

    def send(self, case: Case) -> Seen:
        """Ask, read all of the answer, and look at what was kept."""
        self._answer, self._answered = case, 0
        self._upstream.requests.clear()
        raw = case.raw().replace(b"{stored item}", self.item.encode())
        lines, cpu, known = self.counter.lines, self._cpu(), len(self.counter.reached)
        self._bugs.told.clear()
        status, headers, body, problem = 0, {}, b"", ""
        try:
            status, headers, body = self._exchange("POST", case.path, raw)
        except (OSError, http.client.HTTPException) as error:
            problem = f"no answer: {error!r}"
            self.close()
        lines, cpu, new = self.counter.lines - lines, self._cpu() - cpu, len(self.counter.reached) - known
        stored = self._look(body) if status == 200 else None
        traces, sent = tuple(self._bugs.told), len(self._upstream.requests)
        return Seen(
            *(status, headers, body, lines, cpu, new, len(raw), self._answered, sent, traces, stored), problem=problem
        )

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have something done on the gateway's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(self._hang)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _cpu(self) -> float:
        return time.clock_gettime(self._clock)

    def _look(self, body: bytes) -> bytes | None:
        _, found, rest = body.partition(b'"id":"resp_')
        if not found or b'"store":false' in body[:20_000]:
            return None
        id = rest.split(b'"', 1)[0].decode()
        try:
            status, _, kept = self._exchange("GET", f"/v1/responses/resp_{id}", None)
        except (OSError, http.client.HTTPException):
            self.close()
            return None
        return kept if status == 200 else None

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        used = self._connection is not None
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._hang)
        try:
            shown = {"authorization": f"Bearer {self.key}"} if self.key else {}
            self._connection.request(method, path, body, shown)
            answer = self._connection.getresponse()
        except (BrokenPipeError, ConnectionResetError):  # it answered before all was sent, and closed
            self.close()
            if used:  # closed since the last answer, as a connection may be: every client tries another one then
                return self._exchange(method, path, body)
            if body is None or len(body) < 100_000:
                raise
            return 413, {}, b'{"error":{"message":"","type":"","param":null,"code":"payload_too_large"}}'
        data = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close:
            self.close()
        return answer.status, headers, data


@contextmanager
def running_house(
    hang: float = HANG,
    limits: Mapping[str, int] | None = None,
    *,
    key: str = "",
    operator: str = "",
    counts: bool = True,
) -> Iterator[House]:
    """`hang`: seconds after which an answer that does not come is called one. `limits`: other ones than the default.
    `key`: what clients need to show, and what is shown; `operator`: what opens more."""
    given = limits or {}
    with ScriptedUpstream.running(strict=False) as upstream:
        providers = "".join(
            f'[providers.{name}]\nuses = "{uses}"\ndialect = "{dialect}"\napi_key = "k"\nretries = 0\n'
            f'base_url = "{upstream.base_url}"\n'
            for name, (uses, dialect) in PROVIDERS.items()
        )
        bounds = "".join(f"{name} = {value}\n" for name, value in given.items())
        keys = f'[server]\napi_keys = ["{key}"]\nadmin_key = "{operator}"' if key else "[server]"
        house = House(upstream, f"{CONFIG.replace('[server]', keys)}[limits]\n{bounds}{providers}", hang)
        house.key, house.counts = key, counts
        house.limits = {**msgspec.structs.asdict(Limits()), **given}
        house.start()
        try:
            yield house
        finally:
            house.stop()
