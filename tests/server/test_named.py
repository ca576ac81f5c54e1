"""`Idempotency-Key`: asked again, the same is given back; nothing is made, sent or paid for twice."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, error, reply, stream
from isthmus.testing.replies import chat_reply
from waiting import until

Json = dict[str, Any]
BODY: Json = {"model": PLAIN, "input": "hi"}
CHAT: Json = {"model": PLAIN, "messages": [{"role": "user", "content": "hi"}], "store": True}
KEY = {"Idempotency-Key": "k-1"}
RESPONSES, CHATS, MESSAGE = "/v1/responses", "/v1/chat/completions", "/v1/messages"
MESSAGES: Json = {"model": PLAIN, "max_tokens": 99, "messages": CHAT["messages"], "store": True}
REUSED, IN_USE = "idempotency_key_reused", "idempotency_key_in_use"
"""Anthropic's errors have no code: there the words tell."""
PLACES = pytest.mark.parametrize(("path", "body"), [(RESPONSES, BODY), (CHATS, CHAT), (MESSAGE, MESSAGES)])


@pytest.fixture
def flow(special: Any) -> Flow:
    """A gateway of its own: keys of others mean something."""
    fresh: Flow = special()
    return fresh


@PLACES
@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_the_same_request_gives_the_same_answer_and_asks_nobody(
    special: Any, store: str, path: str, body: Json
) -> None:
    flow = special(store=store)
    flow.script(chat("once"))
    first = flow.post(path, body, KEY)
    again = flow.post(path, body, KEY)
    assert (first.status, again.status) == (200, 200)
    assert again.json["id"] == first.json["id"]
    assert {**again.json, "metadata": None} == {**first.json, "metadata": None}
    assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
    assert len(flow.sent) == 1


def test_a_stream_is_told_again_with_the_same_events(flow: Flow) -> None:
    flow.script(chat("word by word", pieces=4, reasoning="Hm"))
    tellings = []
    for _ in range(2):
        with flow.streaming(RESPONSES, {**BODY, "stream": True}, KEY) as events:
            tellings.append(list(events))
            assert events.done
    assert tellings[0] == tellings[1]
    assert len(flow.sent) == 1


def test_a_chat_stream_says_the_same_again(flow: Flow) -> None:
    flow.script(chat("word by word", pieces=4))
    texts = []
    for _ in range(2):
        with flow.streaming(CHATS, {**CHAT, "stream": True}, KEY) as chunks:
            seen = list(chunks)
            assert chunks.done
        texts.append((seen[0]["id"], "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in seen)))
    assert texts[0] == texts[1]
    assert texts[0][1] == "word by word"
    assert len(flow.sent) == 1


def test_a_messages_stream_says_the_same_again(flow: Flow) -> None:
    flow.script(chat("word by word", pieces=4, reasoning="Hm"))
    tellings = []
    for _ in range(2):
        with flow.streaming(MESSAGE, {**MESSAGES, "stream": True}, KEY) as frames:
            seen = list(frames)
        deltas = [frame["delta"] for frame in seen if frame["type"] == "content_block_delta"]
        said = "".join(delta.get("text", "") for delta in deltas)
        texts = said, "".join(delta.get("thinking", "") for delta in deltas)
        first, last = seen[0]["message"], seen[-2]
        tellings.append((first["id"], first["isthmus"], texts, last["delta"], last["usage"]["output_tokens"]))
    assert tellings[0] == tellings[1]
    assert tellings[0][2] == ("word by word", "Hm")
    assert len(flow.sent) == 1


@PLACES
def test_another_body_under_the_same_key_is_refused(flow: Flow, path: str, body: Json) -> None:
    flow.script(chat("once"))
    flow.post(path, body, KEY)
    for other in ({**body, "temperature": 0.5}, {**body, "stream": True}):
        answer = flow.post(path, other, KEY)
        assert answer.status == 409
        assert answer.json["error"].get("code", REUSED) == REUSED
        assert "another request was made" in answer.json["error"]["message"]
        assert answer.headers["x-should-retry"] == "false"
    strict = flow.post(path, body, {**KEY, "Isthmus-Strict": "true"})
    assert strict.status == 409
    assert len(flow.sent) == 1


def test_the_same_key_at_another_place_is_another_request(flow: Flow) -> None:
    flow.script(chat("one"))
    flow.post(RESPONSES, BODY, KEY)
    assert flow.post(CHATS, CHAT, KEY).error["code"] == "idempotency_key_reused"


@PLACES
def test_who_asks_while_it_is_being_answered_is_told_to_come_back(flow: Flow, path: str, body: Json) -> None:
    gate = Gate()
    flow.script(reply(chat_reply("slow"), after=gate))
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(flow.post(path, body, KEY)))
    asking.start()
    flow.wait_sent()
    meanwhile = flow.post(path, body, KEY)
    assert meanwhile.status == 409
    assert meanwhile.json["error"].get("code", IN_USE) == IN_USE
    assert "is being answered" in meanwhile.json["error"]["message"]
    assert meanwhile.headers["retry-after"] == "1"
    assert "x-should-retry" not in meanwhile.headers
    gate.open()
    asking.join()
    assert flow.post(path, body, KEY).json["id"] == answers[0].json["id"]
    assert len(flow.sent) == 1


@PLACES
def test_what_failed_is_made_anew(flow: Flow, path: str, body: Json) -> None:
    flow.script(error(400, "no"), stream(chat_chunks("half")[:2], done=False), chat("now"))
    assert flow.post(path, body, KEY).status == 400
    assert flow.post(path, body, KEY).json.get("status") in (None, "failed")
    answer = flow.post(path, body, KEY)
    assert answer.status == 200
    assert answer.headers.get("idempotent-replayed") is None
    assert flow.post(path, body, KEY).json["id"] == answer.json["id"]
    assert len(flow.sent) == 3


@PLACES
def test_what_its_client_left_is_made_anew(flow: Flow, path: str, body: Json) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello, you.")
    flow.script(stream([role, first, gate, *rest]), chat("whole"))
    with flow.streaming(path, {**body, "stream": True}, KEY) as events:
        next(iter(events))
    until(lambda: not len(flow.server.gateway.runs), "it runs on")
    gate.open()
    until(lambda: not flow.server.gateway._locks._held, "it is still at it")
    with flow.streaming(path, {**body, "stream": True}, KEY) as events:
        assert events.headers.get("idempotent-replayed") is None
        seen = list(events)
        assert events.done or seen[-1]["type"] == "message_stop"
    assert len(flow.sent) == 2


def test_a_background_response_is_given_back_as_it_stands(flow: Flow) -> None:
    gate = Gate()
    flow.script(reply(chat_reply("slow"), after=gate))
    body = {**BODY, "background": True}
    first = flow.post(RESPONSES, body, KEY).json
    again = flow.post(RESPONSES, body, KEY)
    assert again.json["id"] == first["id"]
    assert again.json["status"] in ("queued", "in_progress")
    gate.open()
    until(lambda: flow.post(RESPONSES, body, KEY).json["status"] == "completed", "it does not end")
    assert len(flow.sent) == 1


@PLACES
def test_where_nothing_is_stored_it_is_said_that_the_key_means_nothing(flow: Flow, path: str, body: Json) -> None:
    flow.script(chat("one"), chat("two"))
    unkept = {**body, "store": False}
    for _ in range(2):
        told = flow.post(path, unkept, KEY).json["isthmus"]["diagnostics"]
        assert [(said["path"], said["action"]) for said in told] == [("Idempotency-Key", "ignored")]
    assert len(flow.sent) == 2
    assert flow.post(path, unkept, {**KEY, "Isthmus-Strict": "true"}).status == 400


@pytest.mark.parametrize("name", ["x" * 256, "a\tb", "caf\xe9"])
def test_a_key_that_cannot_be_one_is_refused(flow: Flow, name: str) -> None:
    answer = flow.post(RESPONSES, BODY, {"Idempotency-Key": name})
    assert (answer.status, answer.error["param"]) == (400, "Idempotency-Key")
    assert flow.sent == []


def test_a_deleted_response_is_made_anew(flow: Flow) -> None:
    flow.script(chat("one"), chat("two"))
    first = flow.post(RESPONSES, BODY, KEY).json["id"]
    flow.delete(f"{RESPONSES}/{first}")
    assert flow.post(RESPONSES, BODY, KEY).json["id"] != first


def test_it_outlives_a_restart(tmp_path: Any) -> None:
    from flowing import running_flow

    with running_flow(tmp_path) as flow:
        flow.script(chat("once"))
        first = flow.post(RESPONSES, BODY, KEY).json
    with running_flow(tmp_path) as flow:
        assert flow.post(RESPONSES, BODY, KEY).json == first
        assert flow.sent == []


def test_embeddings_and_compaction_say_so_too(flow: Flow) -> None:
    """Of neither is anything ever stored."""
    vectors = {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    flow.script(reply(vectors), chat("A summary."))
    made = flow.post("/v1/embeddings", {"model": "full/text-embedding-3-small", "input": "a"}, KEY)
    compacted = flow.post("/v1/responses/compact", {"model": "plain/m", "input": "hi"}, KEY)
    for answer in (made, compacted):
        assert answer.status == 200
        told = [(said["path"], said["action"]) for said in answer.json["isthmus"]["diagnostics"]]
        assert ("Idempotency-Key", "ignored") in told
    refused = flow.post("/v1/embeddings", {"model": "plain/m", "input": "a"}, {**KEY, "Isthmus-Strict": "true"})
    assert (refused.status, refused.error["param"]) == (400, "Idempotency-Key")
