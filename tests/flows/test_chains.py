"""`previous_response_id` and `item_reference`: what the next turn builds on, and when it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream

Json = dict[str, Any]
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}


def test_the_order_is_prior_input_prior_output_new_input(flow: Flow) -> None:
    flow.script(chat("Two.", reasoning="One and one."), chat("Three."), chat("Four."))
    first = flow.create({"model": PLAIN, "input": [_user("1+1?"), _user("In words.")]})
    second = flow.create({"model": PLAIN, "input": "Plus one?", "previous_response_id": first["id"]})
    third = flow.stream({"model": PLAIN, "input": "Again?", "previous_response_id": second["id"]})[1]
    assert third["previous_response_id"] == second["id"]
    said = [(message["role"], message["content"]) for message in flow.sent[2]["messages"]]
    assert said == [
        ("user", "1+1?"),
        ("user", "In words."),
        ("assistant", "Two."),
        ("user", "Plus one?"),
        ("assistant", "Three."),
        ("user", "Again?"),
    ]


def test_forks_are_free(flow: Flow) -> None:
    flow.script(chat("root"), chat("left"), chat("right"), chat("left again"))
    root = flow.create({"model": PLAIN, "input": "start"})
    left = flow.create({"model": PLAIN, "input": "go left", "previous_response_id": root["id"]})
    flow.create({"model": PLAIN, "input": "go right", "previous_response_id": root["id"]})
    flow.create({"model": PLAIN, "input": "on", "previous_response_id": left["id"]})
    texts = [[message["content"] for message in body["messages"]] for body in flow.sent]
    assert texts[1:] == [
        ["start", "root", "go left"],
        ["start", "root", "go right"],
        ["start", "root", "go left", "left", "on"],
    ]


def test_a_chain_may_change_its_model_and_provider(flow: Flow) -> None:
    flow.script(chat("hello"), chat("hello again"))
    first = flow.create({"model": PLAIN, "input": "hi"})
    flow.create({"model": DEEPSEEK, "input": "and you?", "previous_response_id": first["id"]})
    assert flow.sent[1]["model"] == "deepseek-v4-pro"
    assert [message["content"] for message in flow.sent[1]["messages"]] == ["hi", "hello", "and you?"]


def test_reasoning_goes_back_where_the_vendor_wants_it(flow: Flow) -> None:
    thinking = {"reasoning": {"effort": "high"}, "tools": [TOOL]}
    flow.script(chat(calls=[("call_1", "look", "{}")], reasoning="I must look."), chat("Seen."))
    first = flow.create({"model": DEEPSEEK, "input": "Look", **thinking})
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a cat"}
    flow.create({"model": DEEPSEEK, "input": [output], "previous_response_id": first["id"], **thinking})
    _, assistant, tool = flow.sent[1]["messages"]
    assert assistant["reasoning_content"] == "I must look."
    assert (tool["role"], tool["tool_call_id"], tool["content"]) == ("tool", "call_1", "a cat")


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
@pytest.mark.parametrize("extra", [{}, {"stream": True}, {"background": True}])
def test_an_unknown_parent_is_previous_response_not_found(flow: Flow, extra: Json, path: str) -> None:
    answer = flow.post(path, {"model": PLAIN, "input": "hi", "previous_response_id": "resp_nobody", **extra})
    assert (answer.status, answer.error["code"]) == (400, "previous_response_not_found")
    assert answer.error["param"] == "previous_response_id"
    assert "resp_nobody" in answer.error["message"]
    assert flow.sent == []


def test_a_deleted_parent_is_previous_response_not_found(flow: Flow) -> None:
    flow.script(chat("one"), chat("two"))
    first = flow.create({"model": PLAIN, "input": "hi"})
    second = flow.create({"model": PLAIN, "input": "on", "previous_response_id": first["id"]})
    assert flow.delete(f"/v1/responses/{first['id']}").status == 200
    for parent in (first, second):
        answer = flow.post("/v1/responses", {"model": PLAIN, "input": "x", "previous_response_id": parent["id"]})
        assert (answer.status, answer.error["code"]) == (400, "previous_response_not_found")


def test_a_parent_that_was_not_stored_is_previous_response_not_found(flow: Flow) -> None:
    flow.script(chat("one"))
    first = flow.create({"model": PLAIN, "input": "hi", "store": False})
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "x", "previous_response_id": first["id"]})
    assert (answer.status, answer.error["code"]) == (400, "previous_response_not_found")


def test_an_unfinished_parent_cannot_be_continued_yet(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("done")]), chat("next"))
    queued = flow.post("/v1/responses", {"model": PLAIN, "input": "slow", "background": True}).json
    gate.reached.wait()
    body = {"model": PLAIN, "input": "x", "previous_response_id": queued["id"]}
    answer = flow.post("/v1/responses", body)
    assert (answer.status, answer.error["code"]) == (409, "previous_response_not_finished")
    gate.open()
    with flow.streaming(f"/v1/responses/{queued['id']}?stream=true", method="GET") as follower:
        follower.until("response.completed")
    assert flow.create(body)["status"] == "completed"


@pytest.mark.parametrize("how", ["length", "failed"])
def test_what_ended_early_can_be_continued(flow: Flow, how: str) -> None:
    cut = chat("half", finish="length") if how == "length" else stream(chat_chunks("half")[:-2], done=False)
    flow.script(cut, chat("whole"))
    _, first = flow.stream({"model": PLAIN, "input": "hi"})
    assert first["status"] == {"length": "incomplete", "failed": "failed"}[how]
    second = flow.create({"model": PLAIN, "input": "go on", "previous_response_id": first["id"]})
    assert second["status"] == "completed"
    assert [message["content"] for message in flow.sent[1]["messages"]] == ["hi", "half", "go on"]


def test_a_call_id_that_recurs_in_a_chain_is_made_unique(flow: Flow) -> None:
    """Some vendors count from `call_0` in every turn."""
    call = ("call_0", "look", "{}")
    flow.script(chat(calls=[call]), chat(calls=[call]), chat("done"))
    first = flow.create({"model": PLAIN, "input": "go", "tools": [TOOL]})
    second = _answer(flow, first)
    third = _answer(flow, second)
    ids = [response["output"][0]["call_id"] for response in (first, second)]
    assert len(set(ids)) == 2
    messages = flow.sent[2]["messages"]
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == ids
    assert [m["tool_calls"][0]["id"] for m in messages if m.get("tool_calls")] == ids
    assert third["status"] == "completed"


def test_a_chain_longer_than_allowed_says_so(special: Any) -> None:
    flow = special(store="memory", keep="max_chain = 2")
    parent: str | None = None
    for _ in range(3):
        flow.script(chat("x"))
        parent = flow.create({"model": PLAIN, "input": "x", "previous_response_id": parent})["id"]
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "x", "previous_response_id": parent})
    assert (answer.status, answer.error["code"]) == (400, "previous_response_chain_too_long")


# ── item_reference ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", ["typed", "bare"])
def test_an_item_reference_brings_the_stored_item_back(flow: Flow, shape: str) -> None:
    flow.script(chat(calls=[("call_7", "look", '{"a":1}')]), chat("Seen."))
    first = flow.create({"model": FULL, "input": "Look", "tools": [TOOL]})
    [call] = first["output"]
    reference = {"id": call["id"], **({"type": "item_reference"} if shape == "typed" else {})}
    output = {"type": "function_call_output", "call_id": "call_7", "output": "a dog"}
    second = flow.create({"model": FULL, "input": [_user("Look"), reference, output], "tools": [TOOL]})
    assert second["status"] == "completed"
    _, assistant, tool = flow.sent[1]["messages"]
    assert assistant["tool_calls"][0] == {
        "id": "call_7",
        "type": "function",
        "function": {"name": "look", "arguments": '{"a":1}'},
    }
    assert tool == {"role": "tool", "tool_call_id": "call_7", "content": "a dog"}


def test_a_response_that_was_made_with_a_reference_can_be_continued(flow: Flow) -> None:
    flow.script(chat("Red."), chat("Apples."), chat("Yes."))
    first = flow.create({"model": PLAIN, "input": "A colour?"})
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    second = flow.create({"model": PLAIN, "input": [reference, _user("What has it?")]})
    flow.create({"model": PLAIN, "input": "Sure?", "previous_response_id": second["id"]})
    texts = [message["content"] for message in flow.sent[2]["messages"]]
    assert texts == ["Red.", "What has it?", "Apples.", "Sure?"]


def test_a_reference_to_nothing_names_its_place(flow: Flow) -> None:
    items = [_user("hi"), {"type": "item_reference", "id": "msg_nobody"}]
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": items})
    assert (answer.status, answer.error["param"]) == (400, "input[1].id")
    assert "msg_nobody" in answer.error["message"]


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


def _answer(flow: Flow, response: Json) -> Json:
    [call] = response["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "seen"}
    return flow.create({"model": PLAIN, "input": [output], "tools": [TOOL], "previous_response_id": response["id"]})


@pytest.mark.parametrize(
    "kind",
    [
        *("function_call_output", "custom_tool_call_output", "shell_call_output", "local_shell_call_output"),
        *("apply_patch_call_output", "tool_search_output", "computer_call_output"),
    ],
)
def test_a_continuation_does_not_take_the_output_of_a_call_that_it_has_not_got(flow: Flow, kind: str) -> None:
    flow.script(chat("Hello."))
    first = flow.create({"model": PLAIN, "input": "hi"})
    shapes: Json = {"shell_call_output": [], "computer_call_output": {"type": "computer_screenshot", "file_id": "f"}}
    more = {"tools": [], "execution": "client", "status": "completed"}
    answer = {"type": kind, "call_id": "call_unknown", "output": shapes.get(kind, "42"), **more}
    refused = flow.post("/v1/responses", {"model": PLAIN, "previous_response_id": first["id"], "input": [answer]})
    assert refused.status == 400
    assert (refused.error["type"], refused.error["param"]) == ("invalid_request_error", "input[0].call_id")
    assert "call_unknown" in refused.error["message"]


def test_a_whole_history_with_such_an_output_is_repaired_and_says_so(flow: Flow) -> None:
    flow.script(chat("Ah."))
    answer = {"type": "function_call_output", "call_id": "call_unknown", "output": "42"}
    told = flow.create({"model": PLAIN, "input": [_user("hi"), answer]})
    assert (
        "42" in flow.sent[0]["messages"][-1]["content"][-1]["text"]
        if isinstance(flow.sent[0]["messages"][-1]["content"], list)
        else flow.sent[0]["messages"][-1]["content"]
    )
    assert [said["path"] for said in told["isthmus"]["diagnostics"]] == ["input[1]"]
