"""What is kept, what is not, and how it is fetched again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from flowing import PLAIN, Flow, running_flow
from isthmus.gateway.retention import Retention, prune_once
from isthmus.testing import Gate, chat, chat_chunks, error, stream
from talking import finished
from wire.oracle import check_response

Json = dict[str, Any]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_is_fetched_as_it_was_sent(flow: Flow, streamed: bool) -> None:
    flow.script(chat("Hello", reasoning="Hm"))
    body = {"model": PLAIN, "input": "hi", "metadata": {"k": "v"}}
    response = flow.stream(body)[1] if streamed else flow.create(body)
    fetched = flow.get(f"/v1/responses/{response['id']}")
    assert fetched.status == 200
    assert fetched.json == response
    check_response(fetched.json)


def test_a_whole_answer_is_fetched_byte_for_byte(flow: Flow) -> None:
    flow.script(chat("Hellö", reasoning="Hm"))
    told = flow.post("/v1/responses", {"model": PLAIN, "input": "hi"})
    assert flow.get(f"/v1/responses/{told.json['id']}").body == told.body


def test_it_is_saved_before_the_terminal_event_leaves(flow: Flow) -> None:
    """Fifty times: the very next thing after the terminal event is a GET and a continuation, on other connections."""
    for number in range(50):
        flow.script(chat(f"answer {number}"), chat("more"))
        with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as stream_:
            id = stream_.until("response.completed")["response"]["id"]
            assert flow.get(f"/v1/responses/{id}").json["status"] == "completed"
            following = flow.create({"model": PLAIN, "input": "and?", "previous_response_id": id})
        assert following["previous_response_id"] == id
        assert flow.sent[-1]["messages"][1] == {"role": "assistant", "content": f"answer {number}"}


def test_it_is_saved_before_the_whole_answer_leaves(flow: Flow) -> None:
    for _ in range(50):
        flow.script(chat("answer"))
        id = flow.create({"model": PLAIN, "input": "hi"})["id"]
        assert flow.get(f"/v1/responses/{id}").status == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_store_false_is_never_written(special: Any, streamed: bool) -> None:
    flow = special()
    flow.script(chat("kept answer"), chat("forgotten answer", reasoning="forgotten thought"))
    flow.create({"model": PLAIN, "input": "kept question"})
    before = flow.rows()
    body = {"model": PLAIN, "input": "forgotten question", "store": False}
    response = flow.stream(body)[1] if streamed else flow.create(body)
    assert response["store"] is False
    assert flow.rows() == before
    assert flow.get(f"/v1/responses/{response['id']}").status == 404
    assert flow.get(f"/v1/responses/{response['id']}/input_items").status == 404
    written = flow.stored_bytes()
    assert response["id"].encode() not in written
    assert b"forgotten" not in written


def test_a_failed_and_an_incomplete_response_are_kept_too(flow: Flow) -> None:
    flow.script(stream(chat_chunks("half")[:2], done=False), chat("half", finish="length"))
    for expected in ("failed", "incomplete"):
        response = flow.stream({"model": PLAIN, "input": "hi"})[1]
        assert response["status"] == expected
        assert flow.get(f"/v1/responses/{response['id']}").json == response


def test_delete_removes_it_for_good(flow: Flow) -> None:
    flow.script(chat("Hello"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    assert flow.delete(f"/v1/responses/{id}").json == {"id": id, "object": "response", "deleted": True}
    for answer in (
        flow.get(f"/v1/responses/{id}"),
        flow.delete(f"/v1/responses/{id}"),
        flow.get(f"/v1/responses/{id}/input_items"),
        flow.post(f"/v1/responses/{id}/cancel"),
        flow.get(f"/v1/responses/{id}?stream=true"),
    ):
        assert (answer.status, answer.error["code"]) == (404, "response_not_found")


def test_it_outlives_a_restart(tmp_path: Path) -> None:
    with running_flow(tmp_path) as flow:
        flow.script(chat("Hello"))
        response = flow.create({"model": PLAIN, "input": "hi"})
    with running_flow(tmp_path) as flow:
        assert flow.get(f"/v1/responses/{response['id']}").json == response
        flow.script(chat("again"))
        flow.create({"model": PLAIN, "input": "on", "previous_response_id": response["id"]})
        assert [message["content"] for message in flow.sent[0]["messages"]] == ["hi", "Hello", "on"]


# ── input_items ────────────────────────────────────────────────────────────────────────────────────────


def test_input_items_are_paged_in_both_orders(flow: Flow) -> None:
    flow.script(chat("ok"))
    items = [{"role": "user", "content": f"line {number}"} for number in range(7)]
    id = flow.create({"model": PLAIN, "input": items})["id"]
    for order, expected in (("asc", list(range(7))), ("desc", list(range(6, -1, -1)))):
        seen: list[int] = []
        after = ""
        while True:
            page = flow.get(f"/v1/responses/{id}/input_items?limit=3&order={order}{after}").json
            assert page["object"] == "list"
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            seen += [int(_words(item).split()[1]) for item in page["data"]]
            if not page["has_more"]:
                break
            after = f"&after={page['last_id']}"
        assert seen == expected
    assert _words(flow.get(f"/v1/responses/{id}/input_items").json["data"][0]) == "line 6"


def test_input_items_of_a_chain_include_what_came_before(flow: Flow) -> None:
    flow.script(chat("first answer"), chat("second answer"))
    first = flow.create({"model": PLAIN, "input": "first question"})
    second = flow.create({"model": PLAIN, "input": "second question", "previous_response_id": first["id"]})
    page = flow.get(f"/v1/responses/{second['id']}/input_items?order=asc").json
    assert [_words(item) for item in page["data"]] == ["first question", "first answer", "second question"]
    assert all(item["id"] for item in page["data"])


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        ("after=nope", "after"),
    ],
)
def test_a_bad_page_is_a_400(flow: Flow, query: str, param: str) -> None:
    flow.script(chat("ok"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    answer = flow.get(f"/v1/responses/{id}/input_items?{query}")
    assert (answer.status, answer.error["param"]) == (400, param)


# ── reading a stream again ─────────────────────────────────────────────────────────────────────────────


def test_a_stored_response_can_be_streamed_again(flow: Flow) -> None:
    flow.script(chat("Hello there", reasoning="Hm", calls=[("call_1", "look", "{}")]))
    response = flow.create({"model": PLAIN, "input": "hi", "tools": [_tool()]})
    with flow.streaming(f"/v1/responses/{response['id']}?stream=true", method="GET") as again:
        assert again.headers["content-type"] == "text/event-stream"
        events = list(again)
        assert again.done
    assert finished(events) == response


def test_starting_after_skips_what_was_seen(flow: Flow) -> None:
    flow.script(chat("Hello there"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as whole:
        events = list(whole)
    for after in (0, 3, len(events) - 2):
        with flow.streaming(f"/v1/responses/{id}?stream=true&starting_after={after}", method="GET") as rest:
            assert list(rest) == events[after + 1 :]
    with flow.streaming(f"/v1/responses/{id}?stream=true&starting_after=9999", method="GET") as nothing:
        assert list(nothing) == []


def test_a_stream_is_read_on_with_the_numbers_that_it_was_told_with(flow: Flow) -> None:
    """More than a hundred events, of which the client saw fifty."""
    flow.script(stream(chat_chunks(" ".join(["word"] * 100), pieces=100)))
    events, _ = flow.stream({"model": PLAIN, "input": "hi"})
    assert len(events) > 100
    id = events[-1]["response"]["id"]
    for after in (50, 0, len(events) - 2):
        with flow.streaming(f"/v1/responses/{id}?stream=true&starting_after={after}", method="GET") as rest:
            assert list(rest) == events[after + 1 :]
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as whole:
        assert list(whole) == events


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "99999999999999999999"])
def test_a_bad_starting_after_is_a_400(flow: Flow, value: str) -> None:
    flow.script(chat("ok"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    answer = flow.get(f"/v1/responses/{id}?stream=true&starting_after={value}")
    assert (answer.status, answer.error["param"]) == (400, "starting_after")


def test_only_what_is_made_in_the_background_can_be_cancelled(flow: Flow) -> None:
    flow.script(chat("ok"))
    response = flow.create({"model": PLAIN, "input": "hi"})
    refused = flow.post(f"/v1/responses/{response['id']}/cancel")
    assert (refused.status, refused.error["code"]) == (400, "not_cancellable")


# ── background ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_background_response_is_queued_then_polled_then_completed(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Done at last")]))
    queued = flow.post("/v1/responses", {"model": PLAIN, "input": "slow", "background": True})
    assert queued.status == 200
    assert (queued.json["status"], queued.json["background"], queued.json["output"]) == ("queued", True, [])
    check_response(queued.json)
    id = queued.json["id"]
    gate.reached.wait()
    assert flow.get(f"/v1/responses/{id}").json["status"] in ("queued", "in_progress")
    gate.open()
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as follower:
        done = follower.until("response.completed")["response"]
    assert flow.get(f"/v1/responses/{id}").json == done
    assert done["output_text"] == "Done at last"


def test_a_background_response_is_cancelled_and_the_upstream_let_go(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("Half of it", usage=None)[:3], gate]))
    id = flow.post("/v1/responses", {"model": PLAIN, "input": "slow", "background": True}).json["id"]
    gate.reached.wait()
    cancelled = flow.post(f"/v1/responses/{id}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    check_response(cancelled.json)
    flow.wait_sent().closed.wait()
    assert flow.get(f"/v1/responses/{id}").json == cancelled.json
    assert flow.post(f"/v1/responses/{id}/cancel").json == cancelled.json


def test_a_background_stream_goes_on_without_its_client_and_is_read_on_later(flow: Flow) -> None:
    gate = Gate()
    chunks = chat_chunks("Hello there", pieces=4)
    flow.script(stream([*chunks[:3], gate, *chunks[3:]]))
    body = {"model": PLAIN, "input": "slow", "background": True, "stream": True}
    with flow.streaming("/v1/responses", body) as leaving:
        id = leaving.until("response.created")["response"]["id"]
        leaving.until("response.output_text.delta")
    gate.reached.wait()
    gate.open()
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as back:
        events = list(back)
    response = finished(events)
    assert response["output_text"] == "Hello there"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    with flow.streaming(f"/v1/responses/{id}?stream=true&starting_after=4", method="GET") as rest:
        assert list(rest) == events[5:]


def test_a_background_response_that_is_refused_upstream_ends_failed(flow: Flow) -> None:
    flow.script(error(429, "slow down"))
    id = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "background": True}).json["id"]
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as follower:
        events = list(follower)
    response = finished(events)
    assert (response["status"], response["error"]["code"]) == ("failed", "rate_limit_exceeded")
    assert flow.get(f"/v1/responses/{id}").json == response


def test_a_follower_of_a_silent_run_hears_that_we_are_there(special: Any) -> None:
    flow = special(store="memory", extra="[server]\nping = 0.03")
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Done")]))
    body = {"model": PLAIN, "input": "slow", "background": True, "stream": True}
    with flow.streaming("/v1/responses", body) as events:
        id = events.until("response.created")["response"]["id"]
        path = f"/v1/responses/{id}?stream=true"
        with flow.streaming(path, method="GET") as follower, flow.streaming(path, method="GET") as leaving:
            assert leaving.until("response.in_progress")
            leaving.close()
            follower.until("response.in_progress")
            events.until("response.in_progress")
            for silent in (follower, events):
                silent.comment()
                silent.comment()
            gate.open()
            assert follower.until("response.completed")["response"]["id"] == id
        events.until("response.completed")


def test_a_follower_that_has_seen_everything_gets_nothing_more(flow: Flow) -> None:
    flow.script(chat(""))
    body = {"model": PLAIN, "input": "hi", "background": True, "stream": True}
    with flow.streaming("/v1/responses", body) as stream_:
        events = list(stream_)
    id, last = events[0]["response"]["id"], events[-1]["sequence_number"]
    for after in (last, last + 1, last + 100):
        with flow.streaming(f"/v1/responses/{id}?stream=true&starting_after={after}", method="GET") as again:
            assert list(again) == []


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_events_that_are_not_kept_any_more_are_refused_and_the_response_is_there(special: Any, store: str) -> None:
    flow = special(store=store, extra='[background]\nkeep_events = "1h"')
    flow.script(chat("Hello there"))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "background": True, "stream": True}) as told:
        events = list(told)
    response = events[-1]["response"]
    path, last = f"/v1/responses/{response['id']}", events[-1]["sequence_number"]
    gateway = flow.server.gateway

    async def forget() -> None:
        await prune_once(gateway.store, Retention(keep_events=3600), time.time() + 3500)
        assert len(await gateway.store.events(response["id"])) == len(events)
        await prune_once(gateway.store, Retention(keep_events=3600), time.time() + 3700)

    flow.server.do(forget())
    for query in ("", "&starting_after=0", f"&starting_after={last - 2}"):
        refused = flow.get(f"{path}?stream=true{query}")
        assert (refused.status, refused.error["code"]) == (400, "events_expired")
        assert "fetch the response without `stream`" in refused.error["message"]
    with flow.streaming(f"{path}?stream=true&starting_after={last}", method="GET") as nothing:
        assert list(nothing) == [], "it has seen the end"
    assert flow.get(path).json == response
    assert flow.post(f"{path}/cancel").json == response


def test_background_and_store_false_exclude_each_other(flow: Flow) -> None:
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "background": True, "store": False})
    assert (answer.status, answer.error["param"]) == (400, "store")
    assert flow.sent == []


def test_following_a_background_response_never_races_with_its_end(flow: Flow) -> None:
    for _ in range(30):
        flow.script(chat("quick"))
        body = {"model": PLAIN, "input": "hi", "background": True, "stream": True}
        with flow.streaming("/v1/responses", body) as stream_:
            events = list(stream_)
        response = finished(events)
        with flow.streaming(f"/v1/responses/{response['id']}?stream=true", method="GET") as again:
            assert list(again) == events


def test_deleting_a_background_response_stops_it(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("Half", usage=None)[:2], gate]))
    id = flow.post("/v1/responses", {"model": PLAIN, "input": "slow", "background": True}).json["id"]
    gate.reached.wait()
    assert flow.delete(f"/v1/responses/{id}").status == 200
    flow.wait_sent().closed.wait()
    assert flow.get(f"/v1/responses/{id}").status == 404


def _tool() -> Json:
    return {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}


def _words(item: Json) -> str:
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
