"""One trace for each request, whatever door it comes to and whatever becomes of it; read back over HTTP."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, error, reply, stream
from isthmus.testing.script import CUT
from socketing import open_socket
from talking import ANTHROPIC, finished
from tracing import TRACES, request_id, trace_of, traces, words
from waiting import until

Json = dict[str, Any]
SAID = "the-quick-brown-fox-of-the-question"
TOLD = "and-the-lazy-dog-of-the-answer"
VECTORS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "model": "m",
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}


def by_responses(flow: Flow) -> str:
    return request_id(flow.post("/v1/responses", {"model": PLAIN, "input": SAID}))


def by_a_stream(flow: Flow) -> str:
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": SAID, "stream": True}) as events:
        list(events)
        return events.headers["x-request-id"]


def in_the_background(flow: Flow) -> str:
    return request_id(flow.post("/v1/responses", {"model": PLAIN, "input": SAID, "background": True}))


def by_a_socket(flow: Flow) -> str:
    with open_socket(flow.server.url) as talk:
        talk.ask({"model": PLAIN, "input": SAID, "store": False})
        return str(talk.until("response.completed")["response"]["id"])


def by_chat(flow: Flow) -> str:
    return request_id(
        flow.post("/v1/chat/completions", {"model": PLAIN, "messages": [{"role": "user", "content": SAID}]})
    )


def by_messages(flow: Flow) -> str:
    body = {"model": PLAIN, "max_tokens": 50, "messages": [{"role": "user", "content": SAID}]}
    return request_id(flow.post("/v1/messages", body, ANTHROPIC))


def by_compaction(flow: Flow) -> str:
    return request_id(flow.post("/v1/responses/compact", {"model": PLAIN, "input": SAID}))


def in_a_conversation(flow: Flow) -> str:
    made = flow.post("/v1/conversations", {}).json["id"]
    return request_id(flow.post("/v1/responses", {"model": PLAIN, "input": SAID, "conversation": made}))


DOORS: dict[str, tuple[Callable[[Flow], str], Json]] = {
    "responses": (by_responses, {"door": "responses", "method": "POST"}),
    "a stream": (by_a_stream, {"door": "responses", "stream": True}),
    "the background": (in_the_background, {"door": "responses", "background": True}),
    "a socket": (by_a_socket, {"door": "responses", "method": "WS"}),
    "chat": (by_chat, {"door": "chat"}),
    "messages": (by_messages, {"door": "messages"}),
    "compaction": (by_compaction, {"door": "responses", "path": "/v1/responses/compact"}),
    "a conversation": (in_a_conversation, {"door": "responses"}),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_leaves_one_trace_of_what_was_asked_sent_and_told_and_no_content(flow: Flow, door: str) -> None:
    flow.script(chat(TOLD))
    ask, expected = DOORS[door]
    id = ask(flow)
    trace = trace_of(flow, id)
    summary = trace["summary"]
    assert summary.items() >= expected.items()
    assert (summary["owner"], summary["provider"], summary["model"]) == ("local", "plain", "some-model")
    assert summary["status"] == 200
    assert summary["outcome"] == "completed"
    assert (summary["input_tokens"], summary["output_tokens"]) == (10, 5)
    (call,) = trace["calls"]
    [sent] = flow.sent
    assert [piece[0].partition("[")[0] for piece in call["body"]["pieces"]][:2] == list(sent)[:2]
    assert call["body"]["bytes"] == int(flow.upstream.requests[-1].headers["content-length"])
    assert call["why"] == ("compaction" if door == "compaction" else "first")
    assert call["first_byte"] > 0
    assert {decision["path"] for decision in trace["decisions"]} >= {"model", "input"}
    timings = trace["timings"]
    assert min(timings["parse"], timings["plan"], timings["first_byte"], timings["run"]) > 0
    assert timings["total"] >= timings["run"] >= timings["first_byte"]
    if door != "compaction":  # nobody is told what is said there
        assert timings["run"] >= timings["first_token"] >= timings["first_byte"]
        assert trace["batches"] >= 1
        assert trace["marks"][0][1] == 1
    assert trace["output"][-1]["bytes"] > 0
    assert SAID not in words(trace)
    assert TOLD not in words(trace)
    assert [each["id"] for each in traces(flow, "limit=500")].count(summary["id"]) == 1
    assert b"quick-brown" not in b"".join(
        path.read_bytes()
        for path in flow.database.parent.iterdir()
        if "traces" in path.name  # type: ignore[union-attr]
    )


def test_vectors_leave_one_too(flow: Flow) -> None:
    flow.script(reply(VECTORS))
    answer = flow.post("/v1/embeddings", {"model": "full/text-embedding-3-small", "input": SAID})
    trace = trace_of(flow, request_id(answer))
    assert trace["summary"]["door"] == "embeddings"
    assert trace["summary"]["response"].startswith("emb_")
    assert (trace["summary"]["outcome"], trace["summary"]["input_tokens"]) == ("completed", 7)
    assert [piece[0] for piece in trace["calls"][0]["body"]["pieces"]] == list(flow.sent[-1])
    assert trace["calls"][0]["body"]["bytes"] == int(flow.upstream.requests[-1].headers["content-length"])
    assert SAID not in words(trace)


REFUSED: dict[str, tuple[str, Any, int, str]] = {
    "no JSON": ("/v1/responses", b"{nonsense", 400, "invalid_json"),
    "a wrong type": ("/v1/responses", {"model": PLAIN, "input": 3}, 400, "invalid_type"),
    "an unknown model": ("/v1/responses", {"model": "nobody/m", "input": SAID}, 400, "unknown_provider"),
    "by chat": ("/v1/chat/completions", {"model": PLAIN, "messages": 3}, 400, "invalid_type"),
    "by messages": ("/v1/messages", {"model": PLAIN}, 400, "missing_required_parameter"),
    "by embeddings": ("/v1/embeddings", {"model": PLAIN}, 400, "missing_required_parameter"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_before_anything_is_planned_is_traced(flow: Flow, case: str) -> None:
    path, body, status, code = REFUSED[case]
    answer = flow.post(path, body)
    assert answer.status == status
    trace = trace_of(flow, request_id(answer))
    summary = trace["summary"]
    assert (summary["outcome"], summary["status"], summary["code"]) == ("refused", status, code)
    assert (summary["owner"], summary["path"]) == ("local", path)
    assert summary["bytes"] > 0
    assert trace["error"]["message"]
    assert "calls" not in trace


def test_a_strict_refusal_has_its_diagnostics(flow: Flow) -> None:
    answer = flow.post("/v1/responses", {"model": DEEPSEEK, "input": "x", "temperature": 3}, {"Isthmus-Strict": "true"})
    trace = trace_of(flow, request_id(answer))
    assert trace["summary"]["outcome"] == "refused"
    assert trace["diagnostics"] == answer.json["error"]["diagnostics"]


def test_whoever_shows_no_key_is_traced_for_the_operator_alone(special: Callable[..., Flow]) -> None:
    flow = special(extra='[server]\napi_keys = ["sk-one-of-the-clients"]\nadmin_key = "sk-chief-of-all"\n')
    client, chief = {"x-api-key": "sk-one-of-the-clients"}, {"x-api-key": "sk-chief-of-all"}
    refused = [
        flow.request("POST", "/v1/responses", {"model": PLAIN, "input": SAID}, {"x-api-key": "sk-wrong-and-unknown"}),
        flow.request("GET", "/v1/models", None, {}),
    ]
    flow.script(chat("ok"))
    flow.request("POST", "/v1/responses", {"model": PLAIN, "input": SAID}, client)
    for answer in refused:
        summary = trace_of(flow, request_id(answer), chief)["summary"]
        assert (summary["outcome"], summary["status"], summary.get("owner", "")) == ("refused", 401, "")
        assert flow.request("GET", f"{TRACES}/{request_id(answer)}", None, client).status == 404
    until(lambda: len(traces(flow, "", chief)) == 3, "the third was not traced")
    assert len(traces(flow, "", client)) == 1
    assert "sk-wrong" not in words(traces(flow, "", chief))
    for path in ("", "/totals", "/capture", "/req_1"):
        assert flow.request("GET", f"{TRACES}{path}", None, {}).status == 401
    for method, body in (("GET", None), ("POST", {"seconds": 60})):
        assert flow.request(method, f"{TRACES}/capture", body, client).status == 403
        assert flow.request(method, f"{TRACES}/capture", body, chief).status == 200


def test_attempts_that_failed_and_the_one_that_answered_are_told_apart(special: Callable[..., Flow]) -> None:
    fallbacks = f"[models.fallbacks]\n'{PLAIN}' = ['{FULL}']\n"
    flow = special(extra=fallbacks)
    flow.script(error(500, "broken today"), chat("ok"))
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi"})
    trace = trace_of(flow, request_id(answer))
    first, second = trace["calls"]
    assert (first["provider"], second["provider"], second["why"]) == ("plain", "full", "anew")
    assert "broken today" in first["error"]["message"]
    assert first["error"]["status"] == 500
    assert "error" not in second
    assert trace["summary"]["attempts"] == 2
    assert trace["diagnostics"] == answer.json["isthmus"]["diagnostics"]


def test_retries_at_the_same_provider_are_told(special: Callable[..., Flow]) -> None:
    flow = special(provider="retries = 1")
    flow.script(error(429, "slow down", retry_after=0), chat("ok"))
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi"})
    trace = trace_of(flow, request_id(answer))
    (call,) = trace["calls"]
    (retry,) = call["retries"]
    assert "slow down" in retry["error"]["message"]
    assert (trace["summary"]["retries"], trace["summary"]["attempts"]) == (1, 1)


def test_an_answer_that_breaks_off_has_its_error_and_what_there_was(flow: Flow) -> None:
    flow.script(stream([*chat_chunks("half of it", pieces=3)[:2], CUT]))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as events:
        response = finished(list(events))
        id = events.headers["x-request-id"]
    trace = trace_of(flow, id)
    assert (trace["summary"]["outcome"], trace["summary"]["code"]) == ("failed", response["error"]["code"])
    assert trace["calls"][0]["error"]["code"] == response["error"]["code"]
    assert trace["error"]["message"] == response["error"]["message"]


def test_a_repaired_answer_shows_both_askings_and_both_checks(flow: Flow) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    flow.script(chat("no json at all"), chat('{"a": 1}'))
    body = {"model": PLAIN, "input": "hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}}
    body["text"]["format"]["strict"] = True  # type: ignore[index]
    trace = trace_of(flow, request_id(flow.post("/v1/responses", body)))
    assert [call["why"] for call in trace["calls"]] == ["first", "repair"]
    assert [check["valid"] for check in trace["checks"]] == [False, True]
    assert trace["checks"][0]["errors"] == 1
    assert "words" not in trace["checks"][0], "they quote the answer"


def test_a_client_that_leaves_is_traced(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream(chat_chunks("never to be read to its end"), after=gate))
    latest = (traces(flow, "limit=1") or [{"seq": 0}])[0]["seq"]
    with open_socket(flow.server.url) as talk:
        talk.ask({"model": PLAIN, "input": SAID, "store": False})
        flow.wait_sent()
    gate.open()
    until(lambda: traces(flow, f"order=asc&after={latest}&outcome=cancelled"), "it was not traced")


def test_the_pieces_of_a_turn_begin_with_those_of_the_turn_before(flow: Flow) -> None:
    flow.script(chat("first answer"), chat("second answer"))
    first = flow.create({"model": PLAIN, "input": "one", "instructions": "be brief"})
    second = flow.create(
        {"model": PLAIN, "input": "two", "instructions": "be brief", "previous_response_id": first["id"]}
    )
    before, after = (trace_of(flow, each["id"]) for each in (first, second))
    pieces = [[tuple(piece) for piece in trace["calls"][0]["body"]["pieces"]] for trace in (before, after)]
    same = [piece for piece in pieces[0] if piece[0] in ("model", "messages[0]", "messages[1]")]
    assert pieces[1][: len(same)] == same
    assert len(pieces[1]) == len(pieces[0]) + 2
    walked = flow.get(f"{TRACES}/{second['id']}/conversation").json["data"]
    assert [each["response"] for each in walked] == [first["id"], second["id"]]
    assert after["summary"]["thread"] == before["summary"]["thread"] == first["id"]
    assert after["history"] == 2


def test_turns_of_clients_that_send_everything_again_are_one_thread(flow: Flow) -> None:
    flow.script(chat("b"), chat("d"), chat("z"))
    said: list[Json] = [{"role": "user", "content": "opening words of this very test"}]
    ids = [request_id(flow.post("/v1/chat/completions", {"model": PLAIN, "messages": said}))]
    said += [{"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    ids.append(request_id(flow.post("/v1/chat/completions", {"model": PLAIN, "messages": said})))
    other = [{"role": "user", "content": "other opening words"}]
    apart = request_id(flow.post("/v1/chat/completions", {"model": PLAIN, "messages": other}))
    for id in (*ids, apart):
        trace_of(flow, id)
    walked = flow.get(f"{TRACES}/{ids[0]}/conversation").json["data"]
    assert [each["id"] for each in walked] == ids


def test_a_flood_that_the_file_cannot_take_delays_no_client_and_is_counted(special: Any) -> None:
    """Somebody else holds the file: nothing of it can be written, and as many as there is room for wait."""
    flow: Flow = special(extra="[trace]\nmax_queued = 5")
    flow.script(chat("before"))
    before = request_id(flow.post("/v1/responses", {"model": PLAIN, "input": "before"}))
    until(lambda: flow.get(f"{TRACES}/{before}").status == 200)
    assert flow.database is not None
    file = flow.database.with_name(f"{flow.database.stem}.traces.db")
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        flow.script(*(chat("meanwhile") for _ in range(40)))
        for _ in range(40):
            assert flow.post("/v1/responses", {"model": PLAIN, "input": "meanwhile"}).status == 200
        held.execute("ROLLBACK")
    lost = until(lambda: flow.get(f"{TRACES}/capture").json["lost"])
    assert 20 <= lost <= 40

    def traced_again() -> bool:
        flow.script(chat("after"))
        after = request_id(flow.post("/v1/responses", {"model": PLAIN, "input": "after"}))
        flow.get(f"{TRACES}?limit=1")  # waits for what was over before
        return bool(flow.get(f"{TRACES}/{after}").status == 200)

    until(traced_again, "it goes on by itself")
