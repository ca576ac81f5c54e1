"""`/metrics` over HTTP: what happened to requests is what Prometheus reads, whatever else is going on."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_text

from isthmus import __version__
from isthmus.observe.metrics.catalog import CATALOG
from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, error, reply, stream
from isthmus.testing.replies import chat_reply
from one_provider import MODEL, one_provider
from serving import running_gateway_server
from talking import ANTHROPIC, Talk
from waiting import until
from watched import OPENMETRICS, scrape, scrape_until

USED = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
ASKED: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "responses": ("/v1/responses", {"input": "hi"}, {}),
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, {}),
    "messages": ("/v1/messages", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}, ANTHROPIC),
}
PRICED = f'models = {{ "{MODEL.partition("/")[2]}" = {{ cost = {{ input = 1.0, cached = 0.5, output = 10.0 }} }} }}'


def test_it_is_text_for_whoever_asks_for_nothing_else_and_openmetrics_for_prometheus() -> None:
    with ScriptedUpstream.running() as upstream, one_provider(upstream) as (talk, _):
        plain = talk.get("/metrics")
        assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = {family.name for family in read_text(plain.body.decode())}
        assert {"isthmus_info", "process_cpu_seconds", "isthmus_log_lines_lost"} <= found
        other = talk.request("GET", "/metrics", headers=OPENMETRICS)
        assert other.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert other.body.endswith(b"# EOF\n")
        assert scrape(talk)["isthmus_info", {"version": __version__}] == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("door", ASKED)
def test_a_request_is_counted_at_every_door(door: str, streamed: bool) -> None:
    path, body, headers = ASKED[door]
    said = chat_chunks("one two three four", pieces=8, usage=USED)
    step = stream(said) if streamed else reply(chat_reply("one two", usage=USED))
    with ScriptedUpstream.running([step]) as upstream, one_provider(upstream, PRICED) as (talk, _):
        answer = talk.post(path, {"model": MODEL, **body, "stream": streamed}, headers)
        assert answer.status == 200, answer.body
        numbers = scrape_until(talk, lambda found: found["isthmus_http_requests_total", {"door": door}] == 1)
    target = {"provider": "main", "model": "some-model"}
    assert numbers["isthmus_requests_total", {"door": door, **target, "status": "completed"}] == 1
    assert numbers["isthmus_http_requests_total", {"door": door, "status": "200"}] == 1
    assert numbers["isthmus_request_duration_seconds_count", {"door": door, **target}] == 1
    assert numbers["isthmus_time_to_first_token_seconds_count", target] == 1
    assert numbers["isthmus_overhead_seconds_count", {"door": door}] == 1
    assert 0 < numbers["isthmus_overhead_seconds_sum"] <= numbers["isthmus_request_duration_seconds_sum"]
    assert numbers["isthmus_attempts_total", target] == 1
    tokens = {kind: numbers["isthmus_tokens_total", {**target, "kind": kind}] for kind in ("input", "output", "cached")}
    assert tokens == {"input": 100, "output": 20, "cached": 60}
    price = (40 * 1.0 + 60 * 0.5 + 20 * 10.0) / 1_000_000
    assert numbers["isthmus_cost_dollars_total", target] == pytest.approx(price)
    assert numbers["isthmus_plan_decisions_total", {"action": "supported"}] > 0
    assert numbers["isthmus_token_gap_seconds_count"] == numbers["isthmus_token_gap_longest_seconds_count"]
    assert numbers["isthmus_open_streams"] == 0


def test_the_longest_gap_of_a_stream_is_the_time_that_nothing_came() -> None:
    gates = [Gate() for _ in range(3)]
    first, *pieces = chat_chunks("one two three four five six", pieces=8)
    step = stream([first, pieces[0], gates[0], pieces[1], gates[1], pieces[2], gates[2], *pieces[3:]])
    with ScriptedUpstream.running([step]) as upstream, one_provider(upstream) as (talk, _):
        with talk.streaming("/v1/responses", {"model": MODEL, "input": "hi", "stream": True}) as told:
            for gate in gates:
                while (event := told.next()) is not None and event["type"] != "response.output_text.delta":
                    pass
                assert scrape(talk)["isthmus_open_streams"] == 1
                if gate is gates[1]:
                    began = time.monotonic()
                    until(lambda began=began: time.monotonic() - began > 0.3)
                gate.open()
            list(told)
        numbers = scrape_until(talk, lambda found: found["isthmus_token_gap_longest_seconds_count"] == 1)
    assert numbers["isthmus_token_gap_longest_seconds_sum"] >= 0.3
    assert 0.02 < numbers["isthmus_token_gap_seconds_sum"] < numbers["isthmus_token_gap_longest_seconds_sum"]
    assert numbers["isthmus_open_streams"] == 0


def test_embeddings_are_counted() -> None:
    vector = {"data": [{"index": 0, "embedding": [0.5, 1.0]}], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    with ScriptedUpstream.running([reply(vector)]) as upstream, one_provider(upstream) as (talk, _):
        assert talk.post("/v1/embeddings", {"model": MODEL, "input": "hi"}).status == 200
        numbers = scrape_until(talk, lambda found: found["isthmus_http_requests_total", {"door": "embeddings"}] == 1)
    assert numbers["isthmus_requests_total", {"door": "embeddings", "status": "completed"}] == 1
    assert numbers["isthmus_tokens_total", {"kind": "input"}] == 7


def test_what_is_refused_is_counted_by_its_status() -> None:
    with ScriptedUpstream.running() as upstream, one_provider(upstream) as (talk, _):
        assert talk.post("/v1/responses", b"{").status == 400
        assert talk.post("/v1/sk-not-a-path", {}).status == 404
        numbers = scrape_until(talk, lambda found: found["isthmus_http_requests_total", {"status": "404"}] == 1)
    assert numbers["isthmus_http_requests_total", {"door": "responses", "status": "400"}] == 1
    assert numbers["isthmus_http_requests_total", {"door": "other", "status": "404"}] == 1
    assert numbers["isthmus_requests_total"] == 0


def test_retries_failures_and_fallbacks_are_counted() -> None:
    steps = [error(500, "no"), error(500, "no"), chat("instead")]
    other = '[models.fallbacks]\n"main/some-model" = ["other/else"]\n'
    with ScriptedUpstream.running(steps) as upstream:
        settings = (
            f'retries = 1\n[providers.other]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\n{other}'
        )
        with one_provider(upstream, settings) as (talk, gateway):
            gateway.gateway.directory.served["main"].backend._jitter = lambda: 0.0  # type: ignore[attr-defined]
            assert talk.post("/v1/responses", {"input": "hi"}).status == 200
            numbers = scrape_until(talk, lambda found: found["isthmus_http_requests_total"] >= 1)
    assert numbers["isthmus_retries_total", {"provider": "main", "kind": "again"}] == 1
    assert numbers["isthmus_attempt_failures_total", {"provider": "main", "code": "server_error"}] == 1
    assert numbers["isthmus_fallbacks_total", {"provider": "main"}] == 1
    assert numbers["isthmus_requests_total", {"provider": "other", "status": "completed"}] == 1


def test_it_is_answered_while_all_work_is_refused() -> None:
    gate = Gate()
    toml = """
[models]
demo = false
default = "main/some-model"
[store]
url = "memory:"
[server]
port = 0
max_concurrent = 1
[providers.main]
uses = "openai-compatible"
max_connections = 1
base_url = "{url}"
"""
    with (
        ScriptedUpstream.running([reply(chat_reply("held"), after=gate)]) as upstream,
        running_gateway_server(toml.replace("{url}", upstream.base_url)) as gateway,
    ):
        talk = Talk(gateway.url)
        holding = threading.Thread(target=lambda: talk.post("/v1/responses", {"input": "hi"}))
        holding.start()
        until(lambda: len(upstream.requests) == 1)
        try:
            assert talk.post("/v1/responses", {"input": "hi"}).status == 503
            numbers = scrape(talk)
            assert numbers["isthmus_requests_in_flight"] == 2  # the one that is held, and this one
            assert numbers["isthmus_upstream_connections", {"provider": "main"}] == 1
            assert numbers["isthmus_request_bytes"] > 0
        finally:
            gate.open()
            holding.join()


def test_one_request_more_is_a_few_lines_and_never_a_series_of_a_clients_making() -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream, one_provider(upstream) as (talk, _):
        for number in range(30):
            assert talk.post("/v1/responses", {"model": f"main/sk-{number}", "input": "hi"}).status == 200
        numbers = scrape_until(talk, lambda found: found["isthmus_http_requests_total"] == 30)
    assert numbers["isthmus_requests_total", {"model": "other"}] == 30
    assert len(numbers.labels("isthmus_requests_total")) == 1


def test_every_part_is_told() -> None:
    """Of a gateway that has done a little of everything, nothing in the catalogue is missing for want of wiring."""
    toml = """
[models]
default = "demo/demo"
[server]
port = 0
[store]
url = "sqlite:{folder}/isthmus.db"
[webhooks]
private_hosts = ["127.0.0.1:9"]
[webhooks.endpoints.mine]
url = "http://127.0.0.1:9/hook"
secret = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"
"""
    with tempfile.TemporaryDirectory() as folder, running_gateway_server(toml.replace("{folder}", folder)) as gateway:
        talk = Talk(gateway.url)
        shape = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
        assert talk.post("/v1/responses", {"input": "hi", "text": {"format": shape}}).status == 200
        numbers = scrape_until(talk, lambda found: found["isthmus_http_requests_total"] >= 1)
        found = {name.removesuffix("_bucket") for name, _, _ in numbers.samples}
    idle = {
        "isthmus_attempt_failures_total",
        "isthmus_retries_total",
        "isthmus_fallbacks_total",
        "isthmus_tool_seconds",
    }
    idle |= {"isthmus_tool_runs_total", "isthmus_cost_dollars_total", "isthmus_otel_spans_total"}
    idle |= {"isthmus_token_gap_seconds", "isthmus_token_gap_longest_seconds"}  # it came in one piece
    assert set(CATALOG) - found <= idle
    assert numbers["isthmus_store_up"] == 1
    assert numbers["isthmus_store_seconds_count", {"operation": "write"}] >= 1
    assert numbers["isthmus_loop_lag_seconds_count"] >= 1
    assert numbers["isthmus_workers_started_total"] >= 1
    assert numbers["isthmus_contract_checks_total", {"result": "valid"}] == 1
    assert {each["state"] for each in numbers.labels("isthmus_webhook_backlog")} == {"waiting", "given_up"}
    assert {each["queue"] for each in numbers.labels("isthmus_queue_length")} == {"checks", "store", "aside"}
    assert json.dumps(numbers.labels("isthmus_requests_total")).count("sk-") == 0


def test_background_responses_are_told_by_whether_they_run_or_wait() -> None:
    gate = Gate()
    held = ScriptedUpstream.running(default=reply(chat_reply("held"), after=gate))
    with held as upstream, one_provider(upstream, "[background]\nmax_running = 1\n") as (talk, _):
        asked = [talk.post("/v1/responses", {"input": "hi", "background": True}).json["id"] for _ in range(3)]
        until(lambda: len(upstream.requests) == 1)
        numbers = scrape(talk)
        told = {state: numbers["isthmus_background_runs", {"state": state}] for state in ("running", "queued")}
        assert told == {"running": 1, "queued": 2}
        gate.open()
        for id in asked:
            until(lambda id=id: talk.get(f"/v1/responses/{id}").json["status"] == "completed")
        numbers = scrape_until(talk, lambda found: found["isthmus_background_runs"] == 0)
        assert numbers["isthmus_requests_total", {"door": "responses", "status": "completed"}] == 3
