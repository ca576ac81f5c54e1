"""A model for tests that needs no socket: it says what its script says, through the real planner and assembler.

    model = ScriptedModel([say(calls=[("call_1", "add", {"a": 1, "b": 2})]), "It is 3."])
    async with Bridge(connect=model) as bridge:
        run = await bridge.run("any", "What is 1 + 2?", tools=[add])
    assert model.requests[1]["input"][-1]["output"] == "3"

For bytes on a wire use `ScriptedUpstream`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, Reasoning, Refusal, Text, Usage, Used
from isthmus.bridge.types.plan import Plan
from isthmus.client.line import Batch, Line, Route
from isthmus.client.local import LocalLine
from isthmus.ports import OURS, Behalf
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider
from isthmus.testing.checker import InlineChecker
from isthmus.testing.replies import Call


@dataclass(frozen=True, slots=True)
class Say:
    """One answer of a scripted model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    refusal: str = ""
    finish: str = ""
    usage: tuple[int, int] = (10, 5)


def say(
    text: str = "",
    *,
    calls: Sequence[Call] = (),
    thinking: str = "",
    refusal: str = "",
    finish: str = "",
    usage: tuple[int, int] = (10, 5),
) -> Say:
    """An answer: words, calls as `(id, name, arguments)`, or both; `finish="length"` cuts it off."""
    return Say(text, tuple(calls), thinking, refusal, finish, usage)


Step_ = str | Say | Exception | Callable[[JsonObject], "str | Say | Exception"]
"""A step of the script: words, an answer, an exception to raise, or a function of the request."""


class ScriptedModel:
    """Answers in the order of its script. Pass it as `connect=`; every model name leads to it."""

    def __init__(self, script: Iterable[Step_] = ()) -> None:
        self.requests: list[JsonObject] = []
        """The Responses requests that came."""
        self._script = deque(script)
        self._line: Line = _ScriptedLine(self)

    @property
    def remaining(self) -> int:
        """Steps that nobody has asked for yet."""
        return len(self._script)

    async def find(self, model: str | None) -> Route:
        return Route(self._line, model or "scripted")

    async def lines(self) -> list[Line]:
        return [self._line]

    async def aclose(self) -> None:
        return None

    def _next(self) -> Say:
        if not self._script:
            raise AssertionError(f"the script has no step left for request {len(self.requests)}")
        step = self._script.popleft()
        if callable(step):
            step = step(self.requests[-1])
        if isinstance(step, Exception):
            raise step
        return Say(step) if isinstance(step, str) else step


class _ScriptedLine(LocalLine):
    def __init__(self, model: ScriptedModel) -> None:
        super().__init__("scripted", load_provider("demo"), _ScriptedBackend(model), checker=InlineChecker())
        self._model = model

    async def events(self, request: JsonObject) -> AsyncGenerator[Batch, None]:
        self._model.requests.append(request)
        async for batch in super().events(request):
            yield batch


class _ScriptedBackend:
    def __init__(self, model: ScriptedModel) -> None:
        self._model = model

    @asynccontextmanager
    async def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        yield _tell(self._model._next())

    async def ready(self) -> str | None:
        return None

    async def aclose(self) -> None:
        return None


async def _tell(answer: Say) -> AsyncIterator[Sequence[Delta]]:
    if answer.thinking:
        yield [Reasoning(answer.thinking)]
    for word in _words(answer.text):
        yield [Text(word)]
    if answer.refusal:
        yield [Refusal(answer.refusal)]
    for slot, (id, name, arguments) in enumerate(answer.calls):
        yield [CallOpened(slot, id, name), CallArguments(slot, _arguments(arguments))]
    spent, made = answer.usage
    yield [
        Used(Usage(spent, made, spent + made)),
        Finished(answer.finish or ("tool_calls" if answer.calls else "stop")),
    ]


def _words(text: str) -> list[str]:
    """Word by word, as models stream."""
    return [piece for piece in text.replace(" ", " \0").split("\0") if piece]


def _arguments(given: str | Mapping[str, Any]) -> str:
    import msgspec

    return given if isinstance(given, str) else msgspec.json.encode(given).decode()
