"""One model call: a request goes out, events come in, and at the end there is a whole answer.

In: a route and a Responses request. Out: `TurnEvent`s as they come, then one `ChatResult`. Failures are tried again
here, inside the turn, as long as nothing was said; the deadline cuts the connection itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from isthmus.client.events import (
    RefusalDelta,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    TurnEvent,
)
from isthmus.client.items import read_call_item, read_output
from isthmus.client.limiter import Limiter
from isthmus.client.line import Batch, Route
from isthmus.client.result import ChatResult, FinishReason
from isthmus.client.retry import Retry
from isthmus.client.usage import read_usage
from isthmus.errors import UpstreamFailed, UpstreamTimedOut, specify
from isthmus.protocol.json import JsonObject


class DeadlinePassed(UpstreamTimedOut):
    """The caller's own time is up; trying again would not help."""

    retryable = False


async def ask_model(
    route: Route, request: JsonObject, *, retry: Retry, limiter: Limiter | None = None, deadline: float | None = None
) -> AsyncGenerator[TurnEvent | ChatResult, None]:
    """Events of the turn; the last thing that comes is the `ChatResult`. `deadline` is a time of the running loop."""
    attempt = 0
    while True:
        attempt += 1
        said = False
        try:
            if limiter is not None:
                await _until(deadline, limiter.take(), route)
            async with aclosing(_attempt(route, request, deadline, attempt)) as steps:
                async for step in steps:
                    said = True
                    yield step
            return
        except UpstreamFailed as error:
            failure = specify(error, route.line.provider)
            left = None if deadline is None else deadline - asyncio.get_running_loop().time()
            wait = None if said else retry.wait(failure, attempt, left)
            if wait is None:
                if failure is error:
                    raise
                raise failure from error
        yield Retrying(failure, attempt, wait)
        await asyncio.sleep(wait)


async def _attempt(
    route: Route, request: JsonObject, deadline: float | None, attempt: int
) -> AsyncGenerator[TurnEvent | ChatResult, None]:
    reader = _Reader(route.line.provider)
    async with aclosing(route.line.events(request)) as answer:
        async for batch in _in_time(answer, deadline, route):
            for event in batch:
                if event["type"] in ("response.completed", "response.incomplete", "response.failed"):
                    yield _finish(reader.settle(event["response"]), route, attempt)
                    return
                for told in reader.read(event):
                    yield told
    raise UpstreamFailed("the answer ended before it was whole", metadata={"provider": route.line.provider})


async def _in_time(answer: AsyncIterator[Batch], deadline: float | None, route: Route) -> AsyncIterator[Batch]:
    """Wait for each batch under the deadline; never while the reader of ours is at work."""
    while (batch := await _until(deadline, anext(answer, None), route)) is not None:
        yield batch


async def _until(deadline: float | None, awaitable: Any, route: Route) -> Any:
    try:
        async with asyncio.timeout_at(deadline) as clock:
            return await awaitable
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise DeadlinePassed("the time for this answer is up", metadata={"provider": route.line.provider}) from error


class _Reader:
    """Responses events → turn events. A call id that comes twice in one answer gets a suffix, always the same one."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def read(self, event: Mapping[str, Any]) -> Iterator[TurnEvent]:
        match event["type"]:
            case "response.output_text.delta":
                yield TextDelta(event["delta"])
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                yield ThinkingDelta(event["delta"])
            case "response.refusal.delta":
                yield RefusalDelta(event["delta"])
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                item = event["item"]
                yield ToolCallStarted(self._id(item), item["name"])
            case "response.function_call_arguments.delta":
                yield ToolCallDelta(self._ids.get(event["item_id"], ""), event["delta"])
            case "response.output_item.done" if event["item"]["type"] == "function_call":
                yield ToolCallReady(read_call_item(self._own(event["item"]), self._provider))

    def settle(self, response: JsonObject) -> JsonObject:
        """The final response, with the ids that the events had."""
        output = [self._own(item) if item["type"] == "function_call" else item for item in response["output"]]
        return {**response, "output": output}

    def _own(self, item: JsonObject) -> JsonObject:
        id = self._id(item)
        return item if id == item["call_id"] else {**item, "call_id": id, "original_id": item["call_id"]}

    def _id(self, item: JsonObject) -> str:
        key = item.get("id") or item["call_id"]
        if key not in self._ids:
            given = id = item["call_id"]
            count = 1
            while id in self._taken:
                count += 1
                id = f"{given}_{count}"
            self._taken.add(id)
            self._ids[key] = id
        return self._ids[key]


def _finish(response: JsonObject, route: Route, attempt: int) -> ChatResult:
    """The answer as a value; a failed one is raised."""
    if response["status"] in ("failed", "cancelled"):
        error = response.get("error") or {}
        raise UpstreamFailed(
            error.get("message") or "the provider's answer failed",
            code=error.get("code"),
            metadata={"provider": route.line.provider, "response_id": response["id"]},
        )
    facts = response.get("isthmus") or {}
    message = read_output(response["output"], facts.get("provider") or route.line.provider)
    return ChatResult(
        message=message,
        usage=read_usage(response.get("usage"), route.line.cost(route.model, facts), attempt),
        finish_reason=_reason(response, bool(message.tool_calls), message.refusal is not None),
        model=facts.get("model") or response.get("model") or route.model,
        diagnostics=tuple(facts.get("diagnostics") or ()),
        response=response,
    )


def _reason(response: JsonObject, calls: bool, refused: bool) -> FinishReason:
    if response["status"] == "incomplete":
        reason = (response.get("incomplete_details") or {}).get("reason")
        return "content_filter" if reason == "content_filter" else "length"
    if calls:
        return "tool_calls"
    return "refusal" if refused else "stop"
