"""OpenTelemetry from end to end: requests through a real gateway, as a collector on a real socket reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collecting import Collector
from isthmus.observe.otel import names
from isthmus.testing import ScriptedUpstream, chat, error
from one_provider import MODEL, one_provider
from talking import ANTHROPIC, Talk
from waiting import until

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
ASKED = {
    "/v1/responses": {"input": "hi"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
}


@contextmanager
def collected(upstream: ScriptedUpstream, more: str = "", otel: str = "") -> Iterator[tuple[Talk, Collector]]:
    """A gateway that tells a collector; all was told when the block is left."""
    with Collector.running() as collector:
        told = f'[otel]\nenabled = true\nendpoint = "{collector.url}"\n{otel}'
        with one_provider(upstream, f"retries = 0\n{more}\n{told}") as (talk, _):
            yield talk, collector


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("path", ASKED)
def test_a_request_at_every_door_is_a_span_below_the_clients_and_above_the_asking(path: str, streamed: bool) -> None:
    with ScriptedUpstream.running([chat("ok")]) as upstream:
        with collected(upstream) as (talk, collector):
            answer = talk.post(path, {"model": MODEL, **ASKED[path], "stream": streamed}, {**ANTHROPIC, **HEADERS})
            assert answer.status == 200
            request_id = answer.headers["x-request-id"]
        server, chatting = sorted(collector.spans(2), key=lambda span: span.kind, reverse=True)
        assert (server.name, server.kind, server.trace, server.parent) == (f"POST {path}", "server", TRACE, PARENT)
        assert (chatting.name, chatting.kind, chatting.trace) == ("chat some-model", "client", TRACE)
        assert chatting.parent == server.id
        assert server.began <= chatting.began <= chatting.ended <= server.ended
        assert server.attributes[names.REQUEST_ID] == request_id
        assert server.attributes[names.HTTP_STATUS] == 200
        assert chatting.attributes[names.REQUEST_STREAM] is streamed
        assert chatting.attributes[names.PROVIDER] == "openai-compatible"
        assert chatting.attributes[names.STATUS] == "completed"
        assert chatting.attributes[names.OUTPUT_TOKENS] > 0
        assert names.FIRST_CHUNK in chatting.attributes
        assert collector.metrics()[names.TOKEN_USAGE][0][0][names.REQUEST_MODEL] == "some-model"
        assert "traceparent" not in upstream.requests[0].headers, "nobody upstream is told unless it is wanted"


def test_a_fallback_is_a_second_asking_below_the_same_request() -> None:
    with ScriptedUpstream.running([error(500, "no"), chat("instead")]) as upstream:
        more = f'[providers.other]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\nretries = 0\n'
        more += '[models.fallbacks]\n"main/some-model" = ["other/else"]\n'
        with collected(upstream, more) as (talk, collector):
            assert talk.post("/v1/responses", {"input": "hi"}).status == 200
        server, first, second = collector.spans(3)
        assert first.parent == second.parent == server.id
        assert (first.failed, first.attributes[names.ERROR]) == (True, "server_error")
        assert (second.failed, second.attributes[names.PLACE]) == (False, "other")
        assert not server.parent


def test_a_server_of_ones_own_hears_which_span_it_is_asked_in() -> None:
    with ScriptedUpstream.running([chat("ok")]) as upstream:
        with collected(upstream, otel='pass_on = ["main"]') as (talk, collector):
            assert talk.post("/v1/responses", {"input": "hi"}, HEADERS).status == 200
        chatting = next(span for span in collector.spans(2) if span.kind == "client")
        assert upstream.requests[0].headers["traceparent"] == f"00-{TRACE}-{chatting.id}-01"


def test_what_a_client_says_of_its_trace_goes_nowhere_without_otel() -> None:
    with ScriptedUpstream.running([chat("ok")]) as upstream, one_provider(upstream) as (talk, _):
        assert talk.post("/v1/responses", {"input": "hi"}, HEADERS).status == 200
        assert "traceparent" not in upstream.requests[0].headers


def test_what_is_refused_while_it_is_read_has_a_span_too() -> None:
    with ScriptedUpstream.running() as upstream:
        with collected(upstream) as (talk, collector):
            assert talk.post("/v1/responses", b"{", HEADERS).status == 400
        (span,) = collector.spans(1)
        assert (span.parent, span.attributes[names.HTTP_STATUS]) == (PARENT, 400)
        assert not span.failed, "the caller's fault is no error of ours"


def test_background_work_stays_below_the_request_that_asked_for_it() -> None:
    with ScriptedUpstream.running([chat("ok")]) as upstream:
        with collected(upstream) as (talk, collector):
            id = talk.post("/v1/responses", {"input": "hi", "background": True}, HEADERS).json["id"]
            until(lambda: talk.get(f"/v1/responses/{id}").json["status"] == "completed")
        server = next(span for span in collector.spans(2) if span.kind == "server")
        chatting = next(span for span in collector.told() if span.kind == "client")
        assert (server.parent, chatting.parent) == (PARENT, server.id)
