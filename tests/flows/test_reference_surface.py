"""What the reference gateway's surface lacks, point by point: the paths, and what a provider may be told."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, stream
from waiting import until

Json = dict[str, Any]


def test_every_path_that_the_reference_lacks_is_there(flow: Flow) -> None:
    flow.script(chat("Hello"), chat("Hello"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    assert flow.get(f"/v1/responses/{id}").status == 200
    assert flow.get(f"/v1/responses/{id}/input_items").status == 200
    assert flow.post(f"/v1/responses/{id}/cancel").error["code"] == "not_cancellable"
    assert flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": "hi"}).status == 200
    assert flow.get("/v1/models/plain/some-model").status == 200
    assert flow.chat({"model": PLAIN, "messages": [{"role": "user", "content": "hi"}]})["choices"]
    assert flow.delete(f"/v1/responses/{id}").status == 200


def test_a_stream_is_resumed_where_it_was_left(flow: Flow) -> None:
    gate = Gate()
    chunks = chat_chunks("one two three", pieces=3)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))
    body = {"model": PLAIN, "input": "hi", "background": True, "stream": True}
    with flow.streaming("/v1/responses", body) as first:
        id = first.until("response.created")["response"]["id"]
        last = first.until("response.output_text.delta")["sequence_number"]
    gate.open()
    with flow.streaming(f"/v1/responses/{id}?stream=true&starting_after={last}", method="GET") as second:
        rest = list(second)
    assert [event["sequence_number"] for event in rest] == list(range(last + 1, last + 1 + len(rest)))
    assert rest[-1]["response"]["output_text"] == "one two three"


def test_any_openai_compatible_server_can_be_a_provider_with_headers_query_and_facts_of_its_own(special: Any) -> None:
    with ScriptedUpstream.running([chat('{"n": 1}')]) as other:
        section = f"""
[providers.mine]
uses = "openai-compatible"
base_url = "{other.url}/deep/path/v2"
api_key = "sk-mine"
dialect = "chat"
headers = {{ "X-Team" = "blue" }}
query = {{ "api-version" = "2026-01-01" }}
[providers.mine.models."big-*"]
response_formats = {{ supported = ["text", "json_object", "json_schema"] }}
"""
        flow = special(store="memory", extra=section)
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        format = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
        response = flow.create({"model": "mine/big-one", "input": "hi", "text": {"format": format}})
        assert response["isthmus"] == {"provider": "mine", "model": "big-one", "diagnostics": []}
        [request] = other.requests
    assert request.path == "/deep/path/v2/chat/completions"
    assert request.query == {"api-version": ["2026-01-01"]}
    assert request.headers["x-team"] == "blue"
    assert request.headers["authorization"] == "Bearer sk-mine"
    assert request.json["response_format"]["type"] == "json_schema"


def test_a_proxy_is_used_when_it_is_configured(special: Any) -> None:
    """The scripted upstream plays the proxy: it is sent the absolute address."""
    with ScriptedUpstream.running([chat("through")]) as proxy:
        section = f"""
[providers.far]
uses = "openai-compatible"
base_url = "http://model.invalid/v1"
dialect = "chat"
proxy = "{proxy.url}"
"""
        flow = special(store="memory", extra=section)
        assert flow.create({"model": "far/m", "input": "hi"})["output_text"] == "through"
        [request] = proxy.requests
    assert request.target == "http://model.invalid/v1/chat/completions"


def test_connections_to_the_upstream_are_reused(special: Any) -> None:
    flow = special(store="memory")
    for _ in range(5):
        flow.script(chat("ok"), chat("ok"))
        flow.both({"model": PLAIN, "input": "hi"})
    assert flow.upstream.connections == 1


def test_connections_to_the_upstream_are_limited(special: Any) -> None:
    flow = special(store="memory", provider="max_connections = 2")
    gates = [Gate(f"gate {number}") for number in range(4)]
    flow.script(*(stream([gate, *chat_chunks("ok")]) for gate in gates))
    bodies = [{"model": PLAIN, "input": f"{number}", "background": True} for number in range(4)]
    for body in bodies:
        flow.post("/v1/responses", body)
    flow.wait_sent(2)
    until(lambda: len(flow.server.gateway.runs) == 4)
    assert len(flow.sent) == 2
    for gate in gates:
        gate.open()
    flow.wait_sent(4)
    flow.check()
    assert flow.upstream.connections <= 4


def test_nobody_outside_this_machine_is_let_in_by_default() -> None:
    """The reference listens on every address, with the keys of its providers and no lock on the door."""
    from isthmus.config.schema import Server

    assert Server().host == "127.0.0.1"


@pytest.mark.parametrize("header", ["Authorization", "X-Request-Id", "Idempotency-Key"])
def test_what_a_client_says_to_us_is_not_passed_on(flow: Flow, header: str) -> None:
    flow.script(chat("ok"))
    flow.create({"model": PLAIN, "input": "hi"}, {header: "Bearer client-secret"})
    request = flow.wait_sent()
    assert "client-secret" not in str(request.raw_headers)
    assert request.headers["authorization"] == "Bearer sk-upstream-secret"
