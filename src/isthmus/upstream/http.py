"""Chat Completions, Responses and Messages over HTTP: what a provider says on the wire, as deltas.

In: a plan and its body. Out: deltas. Everything about connections, limits and patience is the wire's; every error
leaves with the provider's name and without our secrets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.chat.failures import upstream_failure
from isthmus.bridge.limits import DEFAULT_ANSWER, HEAVY_TEXT, SMALL, AnswerLimits
from isthmus.bridge.sse import SseParser
from isthmus.bridge.tools.credentials import tool_secrets
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.aside import Aside
from isthmus.errors import UpstreamFailed
from isthmus.ports import OURS, OUTGOING, TURN, TURN_STATE, Again, Behalf
from isthmus.protocol.json import JsonObject, count_values
from isthmus.protocol.large import encode_sized
from isthmus.scrub import Scrubber, Secret
from isthmus.upstream.cut import Setting, cut_answer
from isthmus.upstream.endpoint import EMBEDDINGS, Endpoint
from isthmus.upstream.naming import named, named_deltas
from isthmus.upstream.rate_limits import rate_limits
from isthmus.upstream.wire import Incoming, Wire

if TYPE_CHECKING:  # loaded with the first request for vectors, for images, or in that dialect
    from isthmus.bridge.dialects.messages.decode import MessagesDecoder
    from isthmus.bridge.dialects.responses.decode import ResponsesDecoder
    from isthmus.bridge.embeddings.answer import Embedded
    from isthmus.bridge.embeddings.plan import EmbeddingPlan
    from isthmus.bridge.images.answer import Drawn, Partial
    from isthmus.bridge.images.plan import ImagePlan

    Decoder = ChatDecoder | ResponsesDecoder | MessagesDecoder

_MAX_ERROR: Final = 64 * 1024
_AROUND: Final = 256
"""Bytes of a chunk around its words, as vendors send them: ids, names, times."""
_SSE: Final = "text/event-stream"


class HttpBackend:
    """A provider that speaks one of the dialects of HTTP."""

    def __init__(
        self,
        endpoint: Endpoint,
        more_secrets: Sequence[Secret] = (),
        limits: AnswerLimits = DEFAULT_ANSWER,
        aside: Aside | None = None,
    ) -> None:
        """`more_secrets`: those of the provider's other places and keys."""
        self.wire = Wire(endpoint, more_secrets)
        self.limits = limits
        self.aside = aside or Aside()

    @property
    def queue(self) -> int:
        """How far from the front one more request would stand; 0: it would be sent at once."""
        return self.wire.queue

    def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        return _Sending(self, plan, body, behalf.owner)

    async def open(self, plan: Plan, body: JsonObject, owner: str) -> tuple[Incoming, Decoder]:
        """An answer that was accepted, and what reads it."""
        size, wire, dialect = plan.size, self.wire, plan.target.capabilities.dialect
        data = await self.aside.do(lambda: encode_sized(body, size), heavy=size > 0)
        incoming = await wire.send(data, headers=_along(plan.target.provider, dialect), dialect=dialect, owner=owner)
        try:
            scrubber = self.wire.scrubber.and_also(tool_secrets(body.get("tools")))
            if not incoming.ok:
                raise await self.refusal(incoming, scrubber)
            self.check_kind(incoming.kind)
            turn = TURN.get()
            if turn is not None:  # others than the Responses API know no such word
                word = incoming.headers.get(TURN_STATE, "") if dialect == "responses" else ""
                turn.answered(plan.target.provider, word)
            return incoming, _decoder(plan, scrubber)
        except BaseException:
            incoming.close()
            raise

    async def embed(self, plan: EmbeddingPlan, trail: list[Again] | None = None, behalf: Behalf = OURS) -> Embedded:
        """Vectors, whole: of those nothing can be told before all are there."""
        with self.wire.breaker.asking():
            return await self._embed(plan, behalf.owner)

    async def _embed(self, plan: EmbeddingPlan, owner: str) -> Embedded:
        from isthmus.bridge.embeddings.answer import NotVectors, read_embeddings

        size = plan.size
        data = await self.aside.do(lambda: encode_sized(plan.body, size), heavy=size > 0)
        incoming = await self.wire.send(data, headers=_trace(), dialect=EMBEDDINGS, owner=owner)
        try:
            scrubber = self.wire.scrubber
            if not incoming.ok:
                raise await self.refusal(incoming, scrubber)
            self.check_kind(incoming.kind)
            answer = await incoming.within(self.limits.max_vectors)
            if answer is None:
                most = f"sent more than {self.limits.max_vectors:,} bytes of vectors"
                words = f"{most} (`limits.max_vectors`); send fewer texts at a time"
                raise self.wire.failed(words, "embeddings_too_large")
            told = rate_limits(incoming.headers, scrubber)
            return await self.aside.do(lambda: read_embeddings(answer, plan, told), heavy=len(answer) > HEAVY_TEXT)
        except NotVectors as error:
            raise self.wire.failed(str(error)) from error
        finally:
            incoming.close()

    async def draw(
        self,
        plan: ImagePlan,
        tell: Callable[[Partial], None],
        trail: list[Again] | None = None,
        behalf: Behalf = OURS,
    ) -> Drawn:
        """Images; `tell` hears of partial ones."""
        from isthmus.upstream.draw import draw

        with self.wire.breaker.asking():
            return await draw(self, plan, tell, behalf.owner)

    async def ready(self) -> str | None:
        return await self.wire.reach()

    async def aclose(self) -> None:
        await self.wire.aclose()
        self.aside.close()

    def answer(self, incoming: Incoming, decoder: Decoder) -> AsyncIterator[Sequence[Delta]]:
        return (self._stream if incoming.kind == _SSE else self._whole)(incoming, decoder)

    async def _whole(self, incoming: Incoming, decoder: Decoder) -> AsyncIterator[Sequence[Delta]]:
        data = await incoming.within(self.limits.max_answer)
        if data is None:
            yield cut_answer(self.limits, "max_answer", "a part of it cannot be read")
            return
        if len(data) > SMALL and count_values(data, self.limits.max_values) > self.limits.max_values:
            raise self.wire.failed(f"sent a reply of more than {self.limits.max_values:,} values")
        yield named_deltas(decoder.reply(data), self.wire.endpoint.provider)

    def check_kind(self, kind: str) -> None:
        """A page in place of an answer is a refusal: it is noticed while our client can still be given a status."""
        if kind != _SSE and not kind.endswith("json") and kind not in ("application/octet-stream", "text/plain"):
            raise self.wire.failed(f"answered `{kind}`, not JSON; is `base_url` right?")

    async def _stream(self, incoming: Incoming, decoder: Decoder) -> AsyncIterator[Sequence[Delta]]:
        limits = self.limits
        most, most_chunks = limits.max_answer, limits.max_chunks
        parser = SseParser(most, limits.max_values)
        provider = self.wire.endpoint.provider
        size = count = 0
        while True:
            data = await incoming.read()
            events = parser.feed(data) if data else parser.end()
            deltas = decoder.chunks(events)
            if deltas:
                yield named_deltas(deltas, provider)
            if decoder.done or not data:  # what is whole is not cut any more
                break
            # Counted for each read, not for each delta; what comes around the words is not kept, so it is not counted.
            count += len(events)
            size += len(data)
            if size - _AROUND * count > most or count > most_chunks:
                setting: Setting = "max_chunks" if count > most_chunks else "max_answer"
                yield named_deltas([*decoder.end(), *cut_answer(limits, setting)], provider)
                return
        held = decoder.end()
        if held:
            yield named_deltas(held, provider)

    async def refusal(self, incoming: Incoming, scrubber: Scrubber) -> UpstreamFailed:
        provider = self.wire.endpoint.provider
        failure = upstream_failure(
            incoming.status,
            await incoming.beginning(_MAX_ERROR),
            provider=provider,
            retry_after=incoming.retry_after,
            scrub=scrubber.text,
            credential=self.wire.endpoint.credential,
        )
        if incoming.request_id:
            failure.metadata = {**failure.metadata, "request_id": scrubber.text(incoming.request_id)}
        if told := rate_limits(incoming.headers, scrubber):
            failure.metadata = {**failure.metadata, "limits": told}
        return named(failure, provider)


class _Sending:
    """One request and its answer; written out, because a generator costs more than what it does."""

    __slots__ = ("_backend", "_body", "_decoder", "_incoming", "_owner", "_plan")

    def __init__(self, backend: HttpBackend, plan: Plan, body: JsonObject, owner: str) -> None:
        self._backend = backend
        self._plan = plan
        self._body = body
        self._owner = owner

    @property
    def limits(self) -> dict[str, str]:
        """What the provider said of its rate limits."""
        return rate_limits(self._incoming.headers, self._backend.wire.scrubber)

    async def __aenter__(self) -> AsyncIterator[Sequence[Delta]]:
        with self._backend.wire.breaker.asking():
            self._incoming, self._decoder = await self._backend.open(self._plan, self._body, self._owner)
        return self._backend.answer(self._incoming, self._decoder)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._decoder.done:
                await self._incoming.let_end()
        finally:
            self._incoming.close()


def _along(provider: str, dialect: str) -> dict[str, str] | None:
    """What goes along with a request for an answer: the trace, and what this provider wants to be shown in a turn."""
    turn = TURN.get()
    word = turn.word_for(provider) if turn is not None and dialect == "responses" else ""
    return {**(_trace() or {}), TURN_STATE: word} if word else _trace()


def _trace() -> dict[str, str] | None:
    """The trace that this is asked in, where somebody wants it told."""
    traceparent = OUTGOING.get()
    return {"traceparent": traceparent} if traceparent else None


def _decoder(plan: Plan, scrubber: Scrubber) -> Decoder:
    dialect = plan.target.capabilities.dialect
    if dialect == "responses":
        from isthmus.bridge.dialects.responses.decode import ResponsesDecoder

        return ResponsesDecoder(plan.reply, scrubber)
    if dialect == "messages":
        from isthmus.bridge.dialects.messages.decode import MessagesDecoder

        hosts = any(one.identity is not None and one.fields for one in plan.tools.declarations)
        return MessagesDecoder(plan.reply, plan.target.model, scrubber, hosts=hosts)
    return ChatDecoder(plan.reply, plan.leaks, scrubber)
