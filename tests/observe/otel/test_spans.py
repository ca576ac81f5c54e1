"""Facts in, spans out: whose child each is, when it began and ended, and what it says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.errors import RateLimited, RequestRefused, UpstreamFailed
from isthmus.observe.metrics.labels import Models
from isthmus.observe.otel import names
from isthmus.observe.otel.spans import SpanObserver, read_traceparent, route_of
from isthmus.ports import (
    OUTGOING,
    Answered,
    AttemptFailed,
    Ended,
    FirstToken,
    Planned,
    Received,
    Retried,
    Sent,
    ToolRan,
)

SECOND = 1_000_000_000
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
USAGE = {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 3}}


class Life:
    def __init__(self, **options: Any) -> None:
        self.now = 1000 * SECOND
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        options = {"vendors": {"main": "deepseek"}, **options}
        models = Models(lambda provider: {"v4"})
        self.observer = SpanObserver(provider.get_tracer("test"), models, now=lambda: self.now, **options)

    def tell(self, *facts: Any, after: float = 0.0) -> None:
        self.now += int(after * SECOND)
        for fact in facts:
            self.observer.tell(fact)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}

    def all(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)


def received(traceparent: str = "", path: str = "/v1/responses", method: str = "POST") -> Received:
    return Received("req_1", "local", "", "", method, path, 10, 0.5, traceparent)


def planned(**asked: Any) -> Planned:
    return Planned("resp_1", "req_1", "local", SimpleNamespace(decisions=()), asked)


def sent(provider: str = "main", model: str = "v4", attempt: int = 1, why: Any = "first") -> Sent:
    return Sent("resp_1", provider, model, attempt, why)


def ended(**more: Any) -> Ended:
    facts: dict[str, Any] = {"provider": "main", "model": "v4", "failure": None, "usage": USAGE, "attempts": 1}
    facts |= {"price": 13e-6, "seconds": 2.0, "first_token": None, "degraded": 1, "ignored": 0}
    return Ended(**{"id": "resp_1", "owner": "local", "outcome": "completed", **facts, **more})


def answered(status: int = 200, failure: Any = None, path: str = "/v1/responses") -> Answered:
    return Answered("req_1", "resp_1", "local", "", "", "POST", path, status, failure, False, 3.0)


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def test_a_request_has_one_span_and_each_asking_its_own_below_it() -> None:
    life = Life()
    life.tell(received(), planned(stream=True))
    life.tell(sent(), after=1)
    life.tell(FirstToken("resp_1", 0.25), after=0.25)
    life.tell(ended(settled=0.5), after=2)
    life.tell(answered())
    server, chat = life.spans["POST /v1/responses"], life.spans["chat v4"]
    assert (server.kind.name, chat.kind.name) == ("SERVER", "CLIENT")
    assert (parent_of(server), parent_of(chat)) == (None, id_of(server))
    assert server.context is not None
    assert chat.context is not None
    assert server.context.trace_id == chat.context.trace_id
    assert (server.start_time, server.end_time) == (999.5 * SECOND, 1003.25 * SECOND)
    assert (chat.start_time, chat.end_time) == (1001 * SECOND, 1002.75 * SECOND)
    assert dict(chat.attributes or {}) == {
        names.OPERATION: "chat",
        names.PROVIDER: "deepseek",
        names.PLACE: "main",
        names.REQUEST_MODEL: "v4",
        names.REQUEST_STREAM: True,
        names.RESPONSE_ID: "resp_1",
        names.ATTEMPT: 1,
        names.WHY: "first",
        names.FIRST_CHUNK: 0.25,
        names.STATUS: "completed",
        names.INPUT_TOKENS: 9,
        names.OUTPUT_TOKENS: 4,
        names.CACHED_TOKENS: 3,
        names.DEGRADED: 1,
        names.IGNORED: 0,
        names.COST: pytest.approx(13 / 1_000_000),
    }
    said = dict(server.attributes or {})
    assert said[names.HTTP_ROUTE] == "/v1/responses"
    assert (said[names.HTTP_STATUS], said[names.REQUEST_ID], said[names.DOOR]) == (200, "req_1", "responses")


def test_a_clients_own_span_is_the_parent_of_its_request() -> None:
    life = Life()
    life.tell(received(PARENT), answered())
    (span,) = life.all()
    assert span.parent is not None
    assert span.context is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, "b7ad6b7169203331")


def test_a_client_that_does_not_sample_is_not_traced() -> None:
    life = Life()
    life.tell(received(PARENT[:-1] + "0"), planned(), sent(), ended(), answered())
    assert life.all() == []


@pytest.mark.parametrize(
    "given",
    [
        "",
        "sk-secret",
        f"00-{TRACE}-b7ad6b7169203331",
        f"00-{TRACE.upper()}-b7ad6b7169203331-01",
        f"ff-{TRACE}-b7ad6b7169203331-01",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{PARENT}-more",
    ],
)
def test_what_is_no_traceparent_is_nobodys_parent(given: str) -> None:
    assert read_traceparent(given) is None
    life = Life()
    life.tell(received(given), answered())
    assert life.all()[0].parent is None


def test_a_later_version_may_say_more() -> None:
    found = read_traceparent(f"01-{TRACE}-b7ad6b7169203331-01-more")
    assert found is not None
    assert found.is_remote


def test_an_asking_that_failed_says_so_and_the_next_one_stands_beside_it() -> None:
    life = Life()
    life.tell(received(), planned(), sent())
    life.tell(AttemptFailed("resp_1", "main", "v4", 1, UpstreamFailed("sk-secret", code="sk-secret")), after=1)
    life.tell(sent(attempt=2, why="anew"), after=0.5)
    life.tell(ended(), answered(), after=1)
    server, first, second = life.all()
    assert parent_of(first) == parent_of(second) == id_of(server)
    assert (first.status.status_code, second.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert (first.attributes or {})[names.ERROR] == "other"
    assert (first.end_time, second.start_time) == (1001 * SECOND, 1001.5 * SECOND)
    assert (second.attributes or {})[names.WHY] == "anew"
    assert "sk-secret" not in "".join(span.to_json() for span in life.all())


def test_retries_below_an_asking_are_its_events() -> None:
    life = Life()
    life.tell(received(), planned(), sent(), Retried("resp_1", "main", RateLimited("no"), 0.5), ended(), answered())
    chat = life.spans["chat v4"]
    assert [event.name for event in chat.events] == ["retry"]
    assert (chat.attributes or {})[names.RETRIES] == 1
    assert (chat.events[0].attributes or {})[names.ERROR] == "rate_limit_exceeded"


def test_a_tool_is_the_child_of_the_asking_that_called_it() -> None:
    life = Life()
    call = ManagedCall("ws_1", "web_search", "sk-secret", {"q": "sk-secret"}, {"type": "sk-secret"})
    life.tell(received(), planned(), sent())
    life.tell(ToolRan("resp_1", call, Ran("sk-secret"), 1.0), after=3)
    life.tell(ToolRan("resp_1", call, Ran("sk-secret", failed=True), 0.5), after=0.5)
    life.tell(sent(why="tool"), after=1)
    life.tell(ended(), answered(), after=1)
    server, first, tool, failed, second = life.all()
    assert [span.name for span in (first, tool, failed, second)] == [
        "chat v4",
        "execute_tool web_search",
        "execute_tool web_search",
        "chat v4",
    ]
    assert parent_of(tool) == parent_of(failed) == id_of(first)
    assert parent_of(first) == parent_of(second) == id_of(server)
    assert first.end_time == tool.start_time == 1002 * SECOND
    assert tool.end_time == 1003 * SECOND
    assert (tool.attributes or {})[names.TOOL_CALL] == "ws_1"
    assert failed.status.status_code is StatusCode.ERROR
    assert "sk-secret" not in "".join(span.to_json() for span in life.all())


def test_a_request_that_was_refused_at_the_door_has_a_span_too() -> None:
    life = Life()
    life.tell(answered(401, RequestRefused("no", code="invalid_api_key"), "/v1/models/sk-secret"))
    (span,) = life.all()
    assert (span.name, span.start_time, span.end_time) == ("POST /v1/models/{id}", 997 * SECOND, 1000 * SECOND)
    assert (span.attributes or {})[names.ERROR] == "invalid_api_key"
    assert span.status.status_code is StatusCode.UNSET  # the caller's fault, not ours


def test_our_own_failures_are_errors() -> None:
    life = Life()
    life.tell(received(), answered(500))
    (span,) = life.all()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})[names.ERROR] == "500"


def test_a_model_that_only_a_client_knows_is_not_named() -> None:
    life = Life()
    life.tell(received(), planned(), sent(model="sk-secret"), ended(model="sk-secret"), answered())
    assert "chat other" in life.spans


def test_embeddings_are_called_so() -> None:
    life = Life()
    life.tell(Sent("emb_1", "main", "v4", 1), ended(id="emb_1"))
    assert list(life.spans) == ["embeddings v4"]


def test_only_providers_that_are_named_hear_of_the_trace() -> None:
    life = Life(pass_on=frozenset({"main"}))
    life.tell(received(PARENT), planned(), sent())
    header = OUTGOING.get()
    life.tell(sent("other"))
    assert OUTGOING.get() == ""
    life.tell(ended(), answered())
    first = next(span for span in life.all() if (span.attributes or {}).get(names.PLACE) == "main")
    assert header == f"00-{TRACE}-{id_of(first):016x}-01"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/responses", "/v1/responses"),
        ("/v1/responses/resp_1/cancel", "/v1/responses/{id}"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/sk-secret/messages", "/v1/chat/completions/{id}"),
        ("/v1/messages", "/v1/messages"),
        ("/v1/images/generations", "/v1/images/generations"),
        ("/v1/images/sk-secret", ""),
        ("/v1/alpha/search", "/v1/alpha/search"),
        ("/v1/alpha/sk-secret", ""),
        ("/v1/sk-secret", ""),
        ("/health", ""),
    ],
)
def test_a_route_holds_nothing_of_a_clients(path: str, route: str) -> None:
    assert route_of(path) == route


def test_nothing_of_a_request_stays_when_it_is_over() -> None:
    life = Life()
    life.tell(received(), planned(), sent(), ended(), answered())
    assert (life.observer._requests, life.observer._runs) == ({}, {})
