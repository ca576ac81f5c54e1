"""Stored chat completions: kept when they are asked for, listed, given other metadata, forgotten."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion_store_message import ChatCompletionStoreMessage

from flowing import FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, error, stream
from waiting import until

Json = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
CHATS = "/v1/chat/completions"


def kept(flow: Flow, text: str = "x", **more: Any) -> Json:
    flow.script(chat(text))
    return flow.chat({"model": PLAIN, "messages": HI, "store": True, **more})


def listed(flow: Flow, query: str = "") -> list[str]:
    answer = flow.get(f"{CHATS}{query}")
    assert answer.status == 200
    assert answer.json["object"] == "list"
    return [completion["id"] for completion in answer.json["data"]]


@pytest.fixture
def flow(special: Any) -> Flow:
    """A gateway of its own: lists show what others left."""
    fresh: Flow = special()
    return fresh


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_a_completion_is_fetched_as_it_was_told(special: Any, store: str) -> None:
    flow = special(store=store)
    told = kept(flow, metadata={"a": "b"})
    found = flow.get(f"{CHATS}/{told['id']}")
    assert found.json == {**told, "metadata": {"a": "b"}}
    ChatCompletion.model_validate(found.json)


def test_a_streamed_one_is_there_when_its_last_chunk_is(flow: Flow) -> None:
    for number in range(20):
        flow.script(chat(f"answer {number}", pieces=3))
        body = {"model": PLAIN, "messages": HI, "store": True, "stream": True}
        with flow.streaming(CHATS, body) as chunks:
            id = next(chunk["id"] for chunk in chunks if chunk["choices"][0]["finish_reason"])
            found = flow.get(f"{CHATS}/{id}").json
        assert found["choices"][0]["message"]["content"] == f"answer {number}"


def test_whole_and_streamed_are_kept_alike(flow: Flow) -> None:
    call = ("call_1", "look", "{}")
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    for _ in range(2):
        flow.script(chat("Let me see.", reasoning="Hm", calls=[call]))
    whole = flow.chat({"model": FULL, "messages": HI, "tools": [tool], "store": True})
    chunks = flow.chat_stream({"model": FULL, "messages": HI, "tools": [tool], "store": True})
    first, second = (flow.get(f"{CHATS}/{id}").json for id in (whole["id"], chunks[0]["id"]))
    assert first["choices"] == second["choices"]
    assert first["usage"] == second["usage"]


def test_what_failed_is_no_completion(flow: Flow) -> None:
    flow.script(error(400, "no"), stream(chat_chunks("half")[:2], done=False))
    before = flow.rows()
    assert flow.post(CHATS, {"model": PLAIN, "messages": HI, "store": True}).status == 400
    flow.chat_stream({"model": PLAIN, "messages": HI, "store": True})
    assert flow.rows() == before
    assert listed(flow) == []


def test_what_its_client_left_is_not_kept(flow: Flow) -> None:
    gate = Gate()
    role, first, *rest = chat_chunks("Hello, you.")
    flow.script(stream([role, first, gate, *rest]))
    with flow.streaming(CHATS, {"model": PLAIN, "messages": HI, "store": True, "stream": True}) as chunks:
        next(iter(chunks))
    until(lambda: not len(flow.server.gateway.runs), "it runs on")
    gate.open()
    assert listed(flow) == []


def test_what_was_cut_by_its_length_is_kept(flow: Flow) -> None:
    flow.script(chat("half", finish="length"))
    id = flow.chat({"model": PLAIN, "messages": HI, "store": True})["id"]
    assert flow.get(f"{CHATS}/{id}").json["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_they_are_listed_in_pages_in_either_order(special: Any, store: str) -> None:
    flow = special(store=store)
    ids = [kept(flow)["id"] for _ in range(5)]
    assert listed(flow) == ids
    assert listed(flow, "?order=desc") == ids[::-1]
    assert listed(flow, f"?limit=2&after={ids[1]}") == ids[2:4]
    assert listed(flow, f"?limit=2&order=desc&after={ids[1]}") == ids[:1]
    page = flow.get(f"{CHATS}?limit=2").json
    assert (page["first_id"], page["last_id"], page["has_more"]) == (ids[0], ids[1], True)
    last = flow.get(f"{CHATS}?limit=2&after={ids[3]}").json
    assert (last["first_id"], last["has_more"]) == (ids[4], False)
    empty = flow.get(f"{CHATS}?after={ids[4]}").json
    assert empty == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_they_are_found_by_model_and_by_metadata(special: Any, store: str) -> None:
    flow = special(store=store)
    one = kept(flow, metadata={"user": "ann", 'odd "name" $.x': "1"})["id"]
    two = kept(flow, metadata={"user": "ann"})["id"]
    kept(flow, metadata={"user": "bob"})
    flow.script(chat("x"))
    other = flow.chat({"model": FULL, "messages": HI, "store": True})["id"]
    assert listed(flow, "?metadata[user]=ann") == [one, two]
    assert listed(flow, "?metadata%5Buser%5D=ann&metadata[odd+%22name%22+$.x]=1") == [one]
    assert listed(flow, "?metadata[user]=carl") == []
    assert listed(flow, "?metadata[none]=ann") == []
    assert listed(flow, "?model=gpt-4o") == [other]
    assert listed(flow, "?model=gpt-4o&metadata[user]=ann") == []


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_metadata_can_be_changed(special: Any, store: str) -> None:
    flow = special(store=store)
    told = kept(flow, metadata={"user": "ann"})
    changed = flow.post(f"{CHATS}/{told['id']}", {"metadata": {"user": "bob"}})
    assert changed.json == {**told, "metadata": {"user": "bob"}}
    assert flow.get(f"{CHATS}/{told['id']}").json == changed.json
    assert listed(flow, "?metadata[user]=ann") == []
    assert listed(flow, "?metadata[user]=bob") == [told["id"]]
    assert flow.post(f"{CHATS}/{told['id']}", {"metadata": None}).json["metadata"] == {}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"metadata": {"a" * 65: "x"}}, "metadata"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
    ],
)
def test_metadata_that_is_none_is_refused(flow: Flow, body: Json, param: str) -> None:
    told = kept(flow)
    answer = flow.post(f"{CHATS}/{told['id']}", body)
    assert (answer.status, answer.error["param"]) == (400, param)


def test_a_deleted_one_is_gone(flow: Flow) -> None:
    id, other = kept(flow)["id"], kept(flow)["id"]
    assert flow.delete(f"{CHATS}/{id}").json == {"id": id, "object": "chat.completion.deleted", "deleted": True}
    assert listed(flow) == [other]
    for answer in (
        flow.get(f"{CHATS}/{id}"),
        flow.get(f"{CHATS}/{id}/messages"),
        flow.delete(f"{CHATS}/{id}"),
        flow.post(f"{CHATS}/{id}", {"metadata": {}}),
    ):
        assert (answer.status, answer.error["param"]) == (404, "completion_id")


def test_its_messages_are_listed_as_they_were_sent(flow: Flow) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    messages = [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": [{"type": "text", "text": "What?"}, image], "name": "ann"},
    ]
    flow.script(chat("A dot."))
    id = flow.chat({"model": FULL, "messages": messages, "store": True})["id"]
    page = flow.get(f"{CHATS}/{id}/messages").json
    assert page["data"] == [
        {"role": "system", "content": "Rules.", "id": f"{id}-0", "content_parts": None},
        {"role": "user", "name": "ann", "content": "What?", "id": f"{id}-1", "content_parts": messages[1]["content"]},
    ]
    assert (page["first_id"], page["last_id"], page["has_more"]) == (f"{id}-0", f"{id}-1", False)
    for message in page["data"]:
        ChatCompletionStoreMessage.model_validate({**message, "role": "assistant"})
    assert [each["id"] for each in flow.get(f"{CHATS}/{id}/messages?order=desc&limit=1").json["data"]] == [f"{id}-1"]
    assert [each["id"] for each in flow.get(f"{CHATS}/{id}/messages?after={id}-0").json["data"]] == [f"{id}-1"]
    assert flow.get(f"{CHATS}/{id}/messages?after=none").error["param"] == "after"


@pytest.mark.parametrize("query", ["?order=up", "?limit=0", "?limit=101", "?after=chatcmpl-none"])
def test_a_list_that_cannot_be_is_refused(flow: Flow, query: str) -> None:
    answer = flow.get(f"{CHATS}{query}")
    assert (answer.status, answer.error["param"]) == (400, query[1:].partition("=")[0])


def test_a_completion_is_no_response(flow: Flow) -> None:
    """They are stored beside each other; neither API sees what belongs to the other."""
    id = kept(flow)["id"]
    flow.script(chat("y"))
    response = flow.create({"model": PLAIN, "input": "hi"})["id"]
    for answer in (
        flow.get(f"/v1/responses/{id}"),
        flow.get(f"/v1/responses/{id}?stream=true"),
        flow.get(f"/v1/responses/{id}/input_items"),
        flow.post(f"/v1/responses/{id}/cancel", {}),
        flow.delete(f"/v1/responses/{id}"),
        flow.get(f"{CHATS}/{response}"),
        flow.delete(f"{CHATS}/{response}"),
        flow.post(f"{CHATS}/{response}", {"metadata": {}}),
    ):
        assert answer.status == 404
    refused = flow.post("/v1/responses", {"model": PLAIN, "input": "on", "previous_response_id": id})
    assert (refused.status, refused.error["code"]) == (400, "previous_response_not_found")
    assert listed(flow) == [id]


def test_a_history_that_is_sent_again_and_again_is_kept_once(flow: Flow) -> None:
    messages: list[Json] = []
    sizes: list[int] = []
    for number in range(6):
        messages += [{"role": "user", "content": f"question {number} " + "long " * 200}]
        flow.script(chat(f"answer {number}"))
        flow.chat({"model": PLAIN, "messages": messages, "store": True})
        sizes.append(flow.rows()["pieces"])
        messages += [{"role": "assistant", "content": f"answer {number}"}]
    grown = [after - before for before, after in pairwise(sizes)]
    assert max(grown) <= 3, "a turn adds its question, the last answer, and its own choices at most"
