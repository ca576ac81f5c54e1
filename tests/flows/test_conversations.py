"""Conversations over HTTP: their endpoints, and turns in them, from the client to the bytes that the upstream gets."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flowing import FULL, PLAIN, Flow
from isthmus.testing import CUT, Gate, chat, chat_chunks, chat_reply, error, reply, stream
from socketing import Socket, open_socket
from waiting import until

Json = dict[str, Any]
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def house(request: pytest.FixtureRequest, flow: Flow, special: Any) -> Flow:
    """The same with every store."""
    kept: Flow = flow if request.param == "sqlite" else special(store=request.param)
    return kept


def begin(flow: Flow, *texts: str, **fields: Any) -> str:
    items = [{"role": "user", "content": text} for text in texts]
    made = flow.post("/v1/conversations", {"items": items, **fields})
    assert made.status == 200, made.body
    id: str = made.json["id"]
    return id


def items_of(flow: Flow, id: str, query: str = "?order=asc&limit=100") -> list[Json]:
    listed = flow.get(f"/v1/conversations/{id}/items{query}")
    assert listed.status == 200, listed.body
    data: list[Json] = listed.json["data"]
    return data


def words_of(items: list[Json]) -> list[tuple[str, str]]:
    """Who said what, of messages."""
    return [
        (item["role"], "".join(part["text"] for part in item["content"])) for item in items if item["type"] == "message"
    ]


def sent(flow: Flow) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in flow.sent[-1]["messages"]]


def ask(flow: Flow, id: str, input: Any, **fields: Any) -> Json:
    return flow.create({"model": PLAIN, "input": input, "conversation": id, **fields})


# ── the endpoints ──────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_is_made_described_and_deleted(house: Flow) -> None:
    made = house.post("/v1/conversations", {"metadata": {"topic": "demo"}}).json
    assert made["id"].startswith("conv_")
    assert made == {
        "id": made["id"],
        "object": "conversation",
        "created_at": made["created_at"],
        "metadata": {"topic": "demo"},
    }
    assert isinstance(made["created_at"], int)
    path = f"/v1/conversations/{made['id']}"
    assert house.get(path).json == made
    assert house.post(path, {"metadata": {"a": "b"}}).json == {**made, "metadata": {"a": "b"}}
    assert house.post(path, {"metadata": None}).json == {**made, "metadata": {}}
    assert house.get(path).json == {**made, "metadata": {}}
    assert house.delete(path).json == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
    for answer in (house.get(path), house.delete(path), house.get(f"{path}/items"), house.post(path, {"metadata": {}})):
        assert (answer.status, answer.error["code"]) == (404, "conversation_not_found")


@pytest.mark.parametrize("body", [b"", b"{}", {"items": []}, {"items": None, "metadata": None}])
def test_nothing_has_to_be_said_about_a_new_one(flow: Flow, body: Any) -> None:
    made = flow.post("/v1/conversations", body)
    assert (made.status, made.json["metadata"]) == (200, {})
    listed = flow.get(f"/v1/conversations/{made.json['id']}/items").json
    assert listed == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


def test_items_are_added_listed_fetched_and_deleted(house: Flow) -> None:
    id = begin(house, "one")
    path = f"/v1/conversations/{id}/items"
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": "fc_mine"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "seen"}
    said = {"role": "assistant", "content": "two"}
    added = house.post(path, {"items": [call, output, said]}).json
    assert added["object"] == "list"
    assert [item["type"] for item in added["data"]] == ["function_call", "function_call_output", "message"]
    assert added["has_more"] is False
    assert (added["first_id"], added["last_id"]) == ("fc_mine", added["data"][2]["id"])
    assert added["data"][0] == {**call, "status": "completed"}
    assert added["data"][1]["id"].startswith("fco_")
    assert added["data"][2] == {
        "id": added["data"][2]["id"],
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "two", "annotations": []}],
    }
    listed = items_of(house, id)
    assert words_of(listed) == [("user", "one"), ("assistant", "two")]
    assert listed[0]["status"] == "completed"
    assert listed[1:] == added["data"]
    assert items_of(house, id, "") == listed[::-1], "the newest first, unless asked otherwise"
    for item in listed:
        assert house.get(f"{path}/{item['id']}").json == item
    left = house.delete(f"{path}/fc_mine")
    assert left.json == house.get(f"/v1/conversations/{id}").json
    assert items_of(house, id) == [listed[0], *listed[2:]]
    for gone in (house.get(f"{path}/fc_mine"), house.delete(f"{path}/fc_mine")):
        assert (gone.status, gone.error["code"]) == (404, "item_not_in_conversation")


def test_a_long_list_comes_in_pages(house: Flow) -> None:
    id = begin(house)
    for start in range(0, 45, 20):
        items = [{"role": "user", "content": f"{number}"} for number in range(start, min(start + 20, 45))]
        assert house.post(f"/v1/conversations/{id}/items", {"items": items}).status == 200
    for order, expected in (("asc", range(45)), ("desc", range(44, -1, -1))):
        seen: list[str] = []
        after, pages = "", 0
        while True:
            page = house.get(f"/v1/conversations/{id}/items?order={order}&limit=20{after}").json
            seen += [text for _, text in words_of(page["data"])]
            pages += 1
            assert page["first_id"] == page["data"][0]["id"]
            assert page["last_id"] == page["data"][-1]["id"]
            if not page["has_more"]:
                break
            after = f"&after={page['last_id']}"
        assert seen == [str(number) for number in expected]
        assert pages == 3
    assert len(items_of(house, id, "")) == 20


REFUSED = [
    ("", {"items": [{"role": "user", "content": "x"}] * 21}, "items", "invalid_value"),
    ("", {"items": "x"}, "items", "invalid_type"),
    ("", {"items": [{"role": "nobody", "content": "x"}]}, "items[0].role", "invalid_type"),
    ("", {"items": [{"content": "x"}]}, "items[0].type", "missing_required_parameter"),
    ("", {"items": [{"type": "compaction_trigger"}]}, "items[0]", "invalid_value"),
    ("", {"items": [{"role": "user", "content": "x", "id": "i" * 513}]}, "items[0].id", "invalid_value"),
    ("", {"items": [{"type": "new_kind", "id": 5}]}, "items[0].id", "invalid_value"),
    ("", {"items": [{"type": "item_reference", "id": "msg_none"}]}, "items[0].id", "item_not_found"),
    ("", {"items": [{"role": "user", "content": "x", "id": "i"}] * 2}, "items[1].id", "duplicate_item"),
    ("", {"metadata": {str(number): "x" for number in range(17)}}, "metadata", "invalid_value"),
    ("", {"metadata": {"k" * 65: "x"}}, "metadata", "invalid_value"),
    ("", {"metadata": {"k": "x" * 513}}, "metadata.k", "invalid_value"),
    ("", {"metadata": {"k": 1}}, "metadata.k", "invalid_type"),
    ("", {"metadata": "x"}, "metadata", "invalid_type"),
    ("", {"topic": "x"}, "topic", "unknown_parameter"),
    ("", [], None, "invalid_type"),
    ("/ID", {}, "metadata", "missing_required_parameter"),
    ("/ID/items", {}, "items", "missing_required_parameter"),
    ("/ID/items", {"items": None}, "items", "invalid_type"),
    ("/ID/items?include[]=nothing", {"items": []}, "include", "invalid_value"),
]


@pytest.mark.parametrize(("path", "body", "param", "code"), REFUSED)
def test_what_cannot_be_kept_is_refused_by_name(flow: Flow, path: str, body: Any, param: str | None, code: str) -> None:
    id = begin(flow)
    answer = flow.post(f"/v1/conversations{path.replace('ID', id)}", body)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (400, param, code)
    assert answer.error["type"] == "invalid_request_error"
    assert items_of(flow, id) == []


def test_metadata_may_be_as_large_as_it_may_be(flow: Flow) -> None:
    most = {f"{number:064}": "v" * 512 for number in range(16)}
    assert flow.post("/v1/conversations", {"metadata": most}).json["metadata"] == most


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("order=up", "order"),
        ("after=x", "after"),
        ("include[]=x", "include"),
    ],
)
def test_a_page_that_cannot_be_had_is_refused(house: Flow, query: str, param: str) -> None:
    answer = house.get(f"/v1/conversations/{begin(house, 'x')}/items?{query}")
    assert (answer.status, answer.error["param"]) == (400, param)


def test_what_is_kept_anyway_may_be_asked_for(flow: Flow) -> None:
    id = begin(flow, "x")
    both = "include[]=reasoning.encrypted_content&include[]=message.output_text.logprobs"
    assert flow.get(f"/v1/conversations/{id}/items?{both}").status == 200
    assert (
        flow.get(f"/v1/conversations/{id}/items/{items_of(flow, id)[0]['id']}?include=file_search_call.results").status
        == 200
    )


def test_an_id_that_is_taken_is_refused_and_nothing_is_added(house: Flow) -> None:
    id = begin(house)
    path = f"/v1/conversations/{id}/items"
    mine = {"role": "user", "content": "mine", "id": "msg_mine"}
    assert house.post(path, {"items": [mine]}).status == 200
    again = house.post(path, {"items": [{"role": "user", "content": "other"}, mine]})
    assert (again.status, again.error["code"], again.error["param"]) == (400, "duplicate_item", "items[1].id")
    assert words_of(items_of(house, id)) == [("user", "mine")]


def test_a_reference_is_said_again_under_another_id(house: Flow) -> None:
    id = begin(house, "once")
    first = items_of(house, id)[0]["id"]
    other = house.post("/v1/conversations", {"items": [{"type": "item_reference", "id": first}]}).json["id"]
    assert house.post(f"/v1/conversations/{id}/items", {"items": [{"id": first}]}).status == 200
    assert words_of(items_of(house, other)) == [("user", "once")]
    assert words_of(items_of(house, id)) == [("user", "once")] * 2
    assert len({item["id"] for item in [*items_of(house, id), *items_of(house, other)]}) == 3


def test_credentials_are_not_kept(flow: Flow) -> None:
    server = {"type": "mcp", "server_label": "s", "server_url": "https://mcp.test/sse", "authorization": "very-secret"}
    id = begin(flow, items=[{"type": "additional_tools", "role": "developer", "tools": [server]}])
    assert b"very-secret" not in flow.get(f"/v1/conversations/{id}/items").body
    assert b"very-secret" not in flow.stored_bytes()


# ── turns ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named", ["text", "object"])
def test_what_is_said_is_known_in_the_next_turn(house: Flow, named: str) -> None:
    id = begin(house, "My name is Ann.")
    house.script(chat("Hello Ann."), chat("Ann."))
    conversation: Any = id if named == "text" else {"id": id}
    first = house.create({"model": PLAIN, "input": "Hi.", "conversation": conversation, "instructions": "Be brief."})
    assert first["conversation"] == {"id": id}
    assert first["previous_response_id"] is None
    assert sent(house) == [("system", "Be brief."), ("user", "My name is Ann."), ("user", "Hi.")]
    assert "conversation" not in house.sent[-1]
    _, second = house.stream({"model": PLAIN, "input": "Who am I?", "conversation": conversation})
    assert second["conversation"] == {"id": id}
    said = [("user", "My name is Ann."), ("user", "Hi."), ("assistant", "Hello Ann."), ("user", "Who am I?")]
    assert sent(house) == said
    listed = items_of(house, id)
    assert words_of(listed) == [*said, ("assistant", "Ann.")]
    assert listed[2]["id"] == first["output"][0]["id"]
    assert len({item["id"] for item in listed}) == 5
    assert house.get(f"/v1/responses/{second['id']}").json["conversation"] == {"id": id}


def test_a_tool_is_called_and_answered_in_a_conversation(house: Flow) -> None:
    id = begin(house)
    house.script(chat(calls=[("call_1", "look", {})]), chat("I saw it."), chat("Yes."))
    first = ask(house, id, "Look!", tools=[LOOK])
    call = first["output"][0]["call_id"]
    unknown = house.post(
        "/v1/responses",
        {
            "model": PLAIN,
            "conversation": id,
            "input": [{"type": "function_call_output", "call_id": "no", "output": ""}],
        },
    )
    assert (unknown.status, unknown.error["param"]) == (400, "input[0].call_id")
    ask(house, id, [{"type": "function_call_output", "call_id": call, "output": "a cat"}], tools=[LOOK])
    ask(house, id, "Sure?")
    assert [message["role"] for message in house.sent[-1]["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [item["type"] for item in items_of(house, id)] == [
        *("message", "function_call", "function_call_output", "message"),
        *("message", "message"),
    ]


@pytest.mark.parametrize("how", ["whole", "streamed", "background"])
def test_a_failed_turn_adds_nothing(house: Flow, how: str) -> None:
    id = begin(house, "before")
    body = {"model": PLAIN, "input": "lost", "conversation": id}
    if how == "streamed":
        house.script(stream([*chat_chunks("half")[:2], CUT], done=False))
        with house.streaming("/v1/responses", {**body, "stream": True}) as events:
            assert [event["type"] for event in events][-1] == "response.failed"
    else:
        house.script(error(500))
        made = house.post("/v1/responses", {**body, "background": how == "background"})
        if how == "background":
            with house.streaming(f"/v1/responses/{made.json['id']}?stream=true", method="GET") as events:
                events.until("response.failed")
        else:
            assert made.status == 502
    assert words_of(items_of(house, id)) == [("user", "before")]
    house.script(chat("still here"))
    assert ask(house, id, "and now?")["status"] == "completed", "it is free at once"


def test_a_turn_whose_client_leaves_adds_nothing(house: Flow) -> None:
    id, gate = begin(house, "before"), Gate()
    house.script(stream([*chat_chunks("half")[:2], gate]), chat("ok"))
    with house.streaming("/v1/responses", {"model": PLAIN, "input": "x", "conversation": id, "stream": True}) as events:
        events.until("response.output_text.delta")
    gate.open()
    until(lambda: not len(house.server.gateway.runs), "a run is still going")
    assert words_of(items_of(house, id)) == [("user", "before")]
    ask(house, id, "again")


def test_an_incomplete_turn_is_added(house: Flow) -> None:
    id = begin(house)
    house.script(chat("cut of", finish="length"), chat("ok"))
    assert ask(house, id, "Go on.")["status"] == "incomplete"
    ask(house, id, "And?")
    assert sent(house) == [("user", "Go on."), ("assistant", "cut of"), ("user", "And?")]


def test_a_cancelled_turn_adds_nothing(house: Flow) -> None:
    id, gate = begin(house, "before"), Gate()
    house.script(stream([*chat_chunks("half")[:2], gate]))
    made = house.post("/v1/responses", {"model": PLAIN, "input": "x", "conversation": id, "background": True}).json
    assert made["conversation"] == {"id": id}
    with house.streaming(f"/v1/responses/{made['id']}?stream=true", method="GET") as events:
        events.until("response.output_text.delta")
        assert house.post(f"/v1/responses/{made['id']}/cancel").json["status"] == "cancelled"
    gate.open()
    assert words_of(items_of(house, id)) == [("user", "before")]


@pytest.mark.parametrize("streamed", [False, True])
def test_without_storing_it_is_read_and_not_written(house: Flow, streamed: bool) -> None:
    id = begin(house, "My name is Ann.")
    house.script(chat("Ann."), chat("ok"))
    body = {"model": PLAIN, "input": "Who am I?", "conversation": id, "store": False}
    response = house.stream(body)[1] if streamed else house.create(body)
    assert sent(house) == [("user", "My name is Ann."), ("user", "Who am I?")]
    assert response["conversation"] == {"id": id}
    (told,) = response["isthmus"]["diagnostics"]
    assert (told["path"], told["action"], told["code"]) == ("conversation", "degraded", "bridge.param.degraded")
    assert "`store` is `false`" in told["message"]
    assert words_of(items_of(house, id)) == [("user", "My name is Ann.")]
    ask(house, id, "free")
    strict = house.post("/v1/responses", body, {"isthmus-strict": "true"})
    assert (strict.status, strict.error["param"]) == (400, "conversation")
    house.script(chat("free again"))
    ask(house, id, "free")


def test_a_conversation_and_a_parent_exclude_each_other(flow: Flow) -> None:
    id = begin(flow)
    answer = flow.post("/v1/responses", {"input": "x", "conversation": id, "previous_response_id": "resp_1"})
    assert (answer.status, answer.error["code"]) == (400, "mutually_exclusive_parameters")


@pytest.mark.parametrize("door", ["/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact"])
@pytest.mark.parametrize("conversation", ["conv_none", {"id": "conv_none"}, "", "x" * 10_000, "\x00"])
def test_an_unknown_one_is_not_found(house: Flow, door: str, conversation: Any) -> None:
    answer = house.post(door, {"model": PLAIN, "input": "x", "conversation": conversation})
    assert (answer.status, answer.error["code"], answer.error["param"]) == (
        404,
        "conversation_not_found",
        "conversation",
    )


@pytest.mark.parametrize(
    ("given", "param"), [({}, "conversation.id"), ({"id": 5}, "conversation.id"), (5, "conversation")]
)
def test_what_is_no_name_of_one_is_refused(flow: Flow, given: Any, param: str) -> None:
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "x", "conversation": given})
    assert (answer.status, answer.error["param"]) == (400, param)


def test_its_items_count_as_input_tokens(flow: Flow) -> None:
    def count(id: str) -> int:
        tokens: int = flow.post("/v1/responses/input_tokens", {"input": "x", "conversation": id}).json["input_tokens"]
        return tokens

    assert count(begin(flow, "word " * 500)) > count(begin(flow)) + 400


def test_it_is_compacted(flow: Flow) -> None:
    id = begin(flow, "Remember the number 42.")
    flow.script(chat("The number is 42."))
    made = flow.post("/v1/responses/compact", {"model": PLAIN, "conversation": id})
    assert made.status == 200, made.body
    assert "Remember the number 42." in str(flow.sent[-1]["messages"])
    assert [item["type"] for item in made.json["output"]] == ["message", "compaction"]
    assert words_of(items_of(flow, id)) == [("user", "Remember the number 42.")], "that is nothing said in it"


def test_what_was_compacted_in_it_is_not_sent_again(house: Flow) -> None:
    id = begin(house, "My cat is called Tom.")
    house.script(chat("Noted."), chat("A cat called Tom."), chat("Tom."))
    ask(house, id, "Remember that.")
    ask(house, id, [{"type": "compaction_trigger"}])
    ask(house, id, "What is my cat called?")
    said = str(house.sent[-1]["messages"])
    assert "A cat called Tom." in said
    assert "Noted." not in said
    assert [item["type"] for item in items_of(house, id)] == [*["message"] * 3, "compaction", *["message"] * 2]


def test_a_reference_to_one_of_its_items_is_resolved(house: Flow) -> None:
    id = begin(house)
    house.script(chat("first"), chat("second"), chat("third"))
    ask(house, id, "ask")
    mine, answer = (item["id"] for item in items_of(house, id))
    house.create({"model": PLAIN, "input": [{"type": "item_reference", "id": mine}, {"role": "user", "content": "on"}]})
    assert sent(house) == [("user", "ask"), ("user", "on")]
    ask(house, id, [{"type": "item_reference", "id": answer}, {"role": "user", "content": "again"}])
    assert sent(house) == [("user", "ask"), ("assistant", "first\n\nfirst"), ("user", "again")]
    listed = items_of(house, id)
    assert len({item["id"] for item in listed}) == len(listed) == 5


def test_a_response_of_it_can_be_continued_by_its_id(house: Flow) -> None:
    id = begin(house, "My name is Ann.")
    house.script(chat("Hello."), chat("Later."), chat("Ann."))
    first = ask(house, id, "Hi.")
    ask(house, id, "Something else.")
    body = {"model": PLAIN, "input": "Who am I?", "previous_response_id": first["id"]}
    house.create(body)
    said = [("user", "My name is Ann."), ("user", "Hi."), ("assistant", "Hello."), ("user", "Who am I?")]
    assert sent(house) == said, "what stood in it then, and nothing that came later"
    assert len(items_of(house, id)) == 5, "and it is no turn of it"
    house.delete(f"/v1/conversations/{id}")
    gone = house.post("/v1/responses", body)
    assert (gone.status, gone.error["code"]) == (400, "previous_response_not_found")


def test_deleting_a_response_leaves_what_it_said(house: Flow) -> None:
    id = begin(house)
    house.script(chat("kept"), chat("ok"))
    first = ask(house, id, "hi")
    assert house.delete(f"/v1/responses/{first['id']}").status == 200
    ask(house, id, "and?")
    assert sent(house) == [("user", "hi"), ("assistant", "kept"), ("user", "and?")]


def test_what_it_leads_to_counts_against_the_limits(special: Any) -> None:
    flow = special(extra="[limits]\nmax_items = 3\n")
    id = begin(flow, "1", "2", "3")
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "4", "conversation": id})
    assert (answer.status, answer.error["code"]) == (400, "request_too_large")
    full = flow.post(f"/v1/conversations/{id}/items", {"items": [{"role": "user", "content": "4"}]})
    assert (full.status, full.error["code"]) == (400, "conversation_too_long")
    assert "limits.max_items" in full.error["message"]


# ── one at a time ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["whole", "streamed", "background", "unstored", "socket"])
def test_a_second_turn_is_refused_while_one_is_made(house: Flow, how: str) -> None:
    id, gate = begin(house, "before"), Gate()
    house.script(
        reply(chat_reply("first"), after=gate) if how != "socket" else stream([gate, *chat_chunks("first")]),
        chat("second"),
    )
    body = {"model": PLAIN, "input": "one", "conversation": id}
    with ThreadPoolExecutor(1) as pool:
        match how:
            case "background":
                made = house.post("/v1/responses", {**body, "background": True}).json
                asked = pool.submit(_follow, house, made["id"])
            case "socket":
                asked = pool.submit(_over_socket, house, body)
            case _:
                more = {"stream": how == "streamed", "store": how != "unstored"}
                asked = pool.submit(house.post, "/v1/responses", {**body, **more})
        gate.reached.wait()
        second = house.post("/v1/responses", {"model": PLAIN, "input": "two", "conversation": id})
        assert (second.status, second.error["type"]) == (400, "invalid_request_error")
        assert (second.error["param"], second.error["code"]) == ("conversation", "conversation_locked")
        assert "x-should-retry" not in second.headers
        path = f"/v1/conversations/{id}"
        assert (
            house.post(f"{path}/items", {"items": [{"role": "user", "content": "x"}]}).error["code"]
            == "conversation_locked"
        )
        listed = items_of(house, id)
        assert words_of(listed) == [("user", "before")]
        assert house.delete(f"{path}/items/{listed[0]['id']}").error["code"] == "conversation_locked"
        assert house.post(path, {"metadata": {"a": "b"}}).status == 200
        gate.open()
        asked.result()
    # At once: whoever saw the end finds it free.
    ask(house, id, "two")
    first = [("user", "one"), ("assistant", "first")] if how != "unstored" else []
    assert sent(house) == [("user", "before"), *first, ("user", "two")]


def _follow(flow: Flow, id: str) -> None:
    with flow.streaming(f"/v1/responses/{id}?stream=true", method="GET") as events:
        events.until("response.completed")


def _over_socket(flow: Flow, body: Json) -> None:
    with open_socket(flow.server.url) as talk:
        assert talk.answer(body)["status"] == "completed"


def test_deleting_it_while_a_turn_is_made_lets_the_turn_end(house: Flow) -> None:
    id, gate = begin(house, "before"), Gate()
    house.script(reply(chat_reply("said to nobody"), after=gate))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, house, id, "one")
        gate.reached.wait()
        assert house.delete(f"/v1/conversations/{id}").status == 200
        assert house.get(f"/v1/conversations/{id}").status == 404
        gate.open()
        response = asked.result()
    assert response["status"] == "completed"
    assert house.get(f"/v1/responses/{response['id']}").json == response
    assert house.get(f"/v1/conversations/{id}/items").status == 404


def test_a_refused_request_leaves_it_free(house: Flow) -> None:
    id = begin(house, "x")
    bad_schema = {"format": {"type": "json_schema", "name": "n", "schema": {"type": 5}, "strict": True}}
    for fields in (
        {"max_output_tokens": 0},
        {"background": True, "store": False},
        {"model": "nobody/nothing"},
        {"text": bad_schema},
    ):
        refused = house.post("/v1/responses", {"model": FULL, "input": "x", "conversation": id, **fields})
        assert 400 <= refused.status < 500, refused.body
    house.script(chat("ok"))
    ask(house, id, "hi")


# ── over a socket ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def talk(flow: Flow) -> Iterator[Socket]:
    with open_socket(flow.server.url) as socket:
        yield socket


def test_turns_over_a_socket_keep_their_memory(flow: Flow, talk: Socket) -> None:
    id = begin(flow)
    flow.script(chat("Hello Ann."), chat("Ann."), chat("Bye."))
    first = talk.answer({"model": PLAIN, "input": "I am Ann.", "conversation": id})
    assert first["conversation"] == {"id": id}
    talk.answer({"model": PLAIN, "input": "Who am I?", "conversation": {"id": id}}, "lane")
    said = [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]
    assert sent(flow) == said
    ask(flow, id, "Bye.")
    assert sent(flow) == [*said, ("assistant", "Ann."), ("user", "Bye.")]


def test_two_lanes_cannot_speak_in_it_at_once(flow: Flow, talk: Socket) -> None:
    id, gate = begin(flow), Gate()
    flow.script(stream([gate, *chat_chunks("first")]))
    talk.ask({"model": PLAIN, "input": "one", "conversation": id}, "a")
    gate.reached.wait()
    talk.ask({"model": PLAIN, "input": "two", "conversation": id}, "b")
    refused = talk.refusal("b")
    assert (refused["status"], refused["code"], refused["param"]) == (400, "conversation_locked", "conversation")
    gate.open()
    talk.rest("a")
    assert words_of(items_of(flow, id)) == [("user", "one"), ("assistant", "first")]


def test_words_for_a_turn_under_way_are_said_in_the_conversation(flow: Flow, talk: Socket) -> None:
    id, gate = begin(flow), Gate()
    role, begun, *rest = chat_chunks("Guten Tag.")
    flow.script(stream([role, begun, gate, *rest]), chat("Good day."))
    talk.ask({"model": PLAIN, "input": "Greet me.", "conversation": id})
    first = talk.next_of()["response"]["id"]
    talk.until("response.output_text.delta")
    gate.reached.wait()
    talk.send({"type": "response.steer", "previous_response_id": first, "input": "In English!"})
    talk.until("response.steer.accepted")
    gate.open()
    talk.rest(begun=1)
    second = talk.rest()[-1]["response"]
    assert second["conversation"] == {"id": id}
    assert second["previous_response_id"] is None
    said = [("user", "Greet me."), ("assistant", "Guten Tag."), ("user", "In English!")]
    assert sent(flow) == said
    assert words_of(items_of(flow, id)) == [*said, ("assistant", "Good day.")]


def test_words_that_wait_for_an_output_go_with_it_in_the_conversation(flow: Flow, talk: Socket) -> None:
    id, gate = begin(flow), Gate()
    calls = chat_chunks(calls=[("call_1", "look", '{"a": 1}')], pieces=2)
    flow.script(stream([*calls[:2], gate, *calls[2:]]), chat("Ok."))
    talk.ask({"model": PLAIN, "input": "Look.", "conversation": id, "tools": [LOOK]})
    first = talk.next_of()["response"]["id"]
    talk.until("response.output_item.added")
    talk.send({"type": "response.steer", "previous_response_id": first, "input": "In English!"})
    talk.until("response.steer.accepted")
    gate.open()
    call = next(item for item in talk.rest(begun=1)[-1]["response"]["output"] if item["type"] == "function_call")
    talk.until("response.steer.pending")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "a cat"}
    talk.answer({"model": PLAIN, "input": [output], "conversation": id, "tools": [LOOK]})
    assert "In English!" in str(flow.sent[-1]["messages"])
    assert ("user", "In English!") in words_of(items_of(flow, id))
