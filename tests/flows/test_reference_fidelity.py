"""Where the reference gateway departs from the protocol: each point as it should be."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream

Json = dict[str, Any]
IMAGE = "data:image/png;base64,iVBORw0KGgo="


def function(name: str) -> Json:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, "strict": False}


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


# ── items that the reference refuses ───────────────────────────────────────────────────────────────────


def test_tools_that_are_declared_inside_the_input_are_offered(flow: Flow) -> None:
    flow.script(chat(calls=[("c1", "late", "{}")]), chat(calls=[("c1", "late", "{}")]))
    items = [user("hi"), {"type": "additional_tools", "tools": [function("late")]}]
    whole, _ = flow.both({"model": PLAIN, "input": items})
    assert whole["output"][0]["name"] == "late"
    for sent in flow.sent:
        assert [tool["function"]["name"] for tool in sent["tools"]] == ["late"]
        assert [message["role"] for message in sent["messages"]] == ["user"]


ITEMS: dict[str, Json] = {
    "compaction": {"type": "compaction", "id": "cmp_1", "encrypted_content": "from another vendor"},
    "compaction summary": {"type": "compaction_summary", "encrypted_content": "x"},
    "tool_search_call": {
        "type": "tool_search_call",
        "call_id": "t1",
        "arguments": {"query": "q"},
        "status": "completed",
    },
    "web_search_call": {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    "file_search_call": {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["q"],
        "results": [{"filename": "a.txt", "text": "found words"}],
    },
    "mcp_call": {"type": "mcp_call", "id": "m_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"},
    "mcp_list_tools": {"type": "mcp_list_tools", "id": "ml_1", "server_label": "s", "tools": []},
    "mcp_approval_request": {
        "type": "mcp_approval_request",
        "id": "ma",
        "server_label": "s",
        "name": "n",
        "arguments": "",
    },
    "computer_call": {"type": "computer_call", "call_id": "cc", "action": {"type": "wait"}, "status": "completed"},
    "code_interpreter_call": {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "outputs": []},
    "image_generation_call": {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "aGk="},
    "reasoning of another vendor": {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA"},
    "something new": {"type": "something_new", "id": "sn", "data": 1},
}


@pytest.mark.parametrize("name", ITEMS, ids=list(ITEMS))
def test_an_item_without_a_counterpart_never_stops_the_conversation(flow: Flow, name: str) -> None:
    flow.script(chat("ok"), chat("ok"))
    whole, _ = flow.both({"model": PLAIN, "input": [user("one"), ITEMS[name], user("two")]})
    assert whole["status"] == "completed"
    for sent in flow.sent:
        texts = [message["content"] for message in sent["messages"] if message["role"] == "user"]
        assert texts[0] == "one"
        assert texts[-1] == "two"
        assert "gAAAA" not in str(sent)
        assert "from another vendor" not in str(sent)


def test_a_refusal_in_the_history_is_read(flow: Flow) -> None:
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    flow.script(chat("ok"), chat("ok"))
    flow.both({"model": PLAIN, "input": [user("one"), refused, user("two")]})
    for sent in flow.sent:
        assert sent["messages"][1]["role"] == "assistant"
        assert "I cannot." in str(sent["messages"][1])


@pytest.mark.parametrize("model", [FULL, PLAIN])
def test_an_image_in_a_tool_output_never_travels_as_text(flow: Flow, model: str) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "view", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": IMAGE}]}
    flow.script(chat("A dot."), chat("A dot."))
    whole, _ = flow.both({"model": model, "input": [user("Look"), call, output], "tools": [function("view")]})
    assert whole["status"] == "completed"
    for sent in flow.sent:
        tool = next(message for message in sent["messages"] if message["role"] == "tool")
        assert isinstance(tool["content"], str)
        assert "base64" not in tool["content"]
        images = [part for message in sent["messages"] if message["role"] == "user" for part in _parts(message)]
        assert (any(part.get("type") == "image_url" for part in images)) == (model == FULL)
    if model == PLAIN:
        assert whole["isthmus"]["diagnostics"]


def test_an_image_goes_to_a_model_that_sees_and_is_a_note_to_one_that_does_not(flow: Flow) -> None:
    content = [{"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": IMAGE, "detail": "low"}]
    flow.script(chat("A dot."), chat("Nothing."))
    items = [{"role": "user", "content": content}]
    flow.create({"model": FULL, "input": items})
    blind = flow.create({"model": PLAIN, "input": items})
    assert flow.sent[0]["messages"][0]["content"] == [
        {"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
    ]
    assert "base64" not in str(flow.sent[1])
    assert [said["action"] for said in blind["isthmus"]["diagnostics"]] == ["degraded"]
    assert flow.post("/v1/responses", {"model": PLAIN, "input": items}, {"Isthmus-Strict": "true"}).status == 400


# ── tools ──────────────────────────────────────────────────────────────────────────────────────────────


def test_allowed_tools_limits_the_choice_and_a_call_outside_it_is_suppressed(flow: Flow) -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    step = chat("Well.", calls=[("c1", "g", "{}")], finish="stop")
    flow.script(step, step)
    body = {"model": PLAIN, "input": "hi", "tools": [function("f"), function("g")], "tool_choice": choice}
    for response in (flow.create(body), flow.stream(body)[1]):
        assert response["status"] == "completed"
        assert [item["type"] for item in response["output"]] == ["message"]
        assert response["tool_choice"] == choice
        assert "bridge.tool.call_suppressed" in [said["code"] for said in response["isthmus"]["diagnostics"]]


def test_a_choice_of_an_mcp_server_that_is_not_there_is_not_a_bare_refusal(flow: Flow) -> None:
    choice = {"type": "mcp", "server_label": "nobody"}
    answer = flow.post(
        "/v1/responses", {"model": PLAIN, "input": "hi", "tools": [function("f")], "tool_choice": choice}
    )
    assert answer.status == 400
    assert answer.error["param"] == "tool_choice"
    assert "nobody" in answer.error["message"]


def test_a_namespace_comes_back_as_it_was_declared(flow: Flow) -> None:
    space = {"type": "namespace", "name": "files", "description": "Files", "tools": [function("read")]}

    def answer(request: Any) -> Any:
        [tool] = request.json["tools"]
        return chat(calls=[("c1", tool["function"]["name"], "{}")])

    flow.script(answer, answer)
    whole, _ = flow.both({"model": PLAIN, "input": "hi", "tools": [space]})
    [call] = whole["output"]
    assert (call["name"], call["namespace"]) == ("read", "files")


def test_the_same_tool_twice_is_declared_once(flow: Flow) -> None:
    flow.script(chat("ok"), chat("ok"))
    flow.both({"model": PLAIN, "input": "hi", "tools": [function("f"), function("f")]})
    for sent in flow.sent:
        assert [tool["function"]["name"] for tool in sent["tools"]] == ["f"]


PARAMETERS: dict[str, Json] = {
    "max_tool_calls": {"max_tool_calls": 2},
    "truncation": {"truncation": "auto"},
    "verbosity": {"text": {"verbosity": "low"}},
    "service_tier": {"service_tier": "flex"},
    "prompt_cache_key": {"prompt_cache_key": "k"},
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "reasoning.summary": {"reasoning": {"summary": "auto"}},
    "top_logprobs": {"top_logprobs": 3},
}


@pytest.mark.parametrize("name", PARAMETERS, ids=list(PARAMETERS))
def test_no_parameter_is_dropped_without_a_word(flow: Flow, name: str) -> None:
    flow.script(chat("ok"))
    body = {"model": PLAIN, "input": "hi", "tools": [function("f")], **PARAMETERS[name]}
    response = flow.create(body)
    assert any(name in said["path"] for said in response["isthmus"]["diagnostics"])


def test_what_the_provider_knows_is_forwarded(flow: Flow) -> None:
    flow.script(chat("ok"))
    body = {
        "model": FULL,
        "input": "hi",
        "tools": [function("f")],
        "parallel_tool_calls": False,
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "text": {"verbosity": "low"},
        "top_logprobs": 3,
        "max_output_tokens": 99,
    }
    response = flow.create(body)
    [sent] = flow.sent
    expected = {
        "parallel_tool_calls": False,
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "verbosity": "low",
        "top_logprobs": 3,
        "max_completion_tokens": 99,
    }
    assert {name: sent[name] for name in expected} == expected
    assert response["isthmus"]["diagnostics"] == []
    assert (response["max_output_tokens"], response["service_tier"]) == (99, "flex")


# ── objects and events ─────────────────────────────────────────────────────────────────────────────────


def test_an_item_keeps_its_type_and_id_from_added_to_done(flow: Flow) -> None:
    tools = [{"type": "shell", "environment": {"type": "local"}}, {"type": "custom", "name": "write"}, function("f")]
    calls: Any = [("c1", "shell", {"commands": ["ls"]}), ("c2", "write", {"input": "x"}), ("c3", "f", "{}")]
    flow.script(chat("A", reasoning="B", calls=calls))
    events, response = flow.stream({"model": PLAIN, "input": "hi", "tools": tools})
    added = {e["output_index"]: e["item"] for e in events if e["type"] == "response.output_item.added"}
    done = {e["output_index"]: e["item"] for e in events if e["type"] == "response.output_item.done"}
    assert [(item["type"], item["id"]) for item in added.values()] == [
        (item["type"], item["id"]) for item in done.values()
    ]
    assert list(done.values()) == response["output"]
    assert [item["type"] for item in response["output"]] == [
        "reasoning",
        "message",
        "shell_call",
        "custom_tool_call",
        "function_call",
    ]
    assert all(item["id"] and item["status"] == "completed" for item in response["output"])
    assert not any("reasoning_text_part" in event["type"] for event in events)


def test_an_item_that_was_cut_off_is_incomplete_and_the_last(flow: Flow) -> None:
    flow.script(chat("Half", reasoning="B", finish="length"), chat("Half", reasoning="B", finish="length"))
    whole, _ = flow.both({"model": PLAIN, "input": "hi"})
    assert [item["status"] for item in whole["output"]] == ["completed", "incomplete"]


def test_the_input_of_a_custom_tool_is_streamed_as_it_comes(flow: Flow) -> None:
    gate = Gate()
    chunks = chat_chunks(calls=[("c1", "write", '{"input":"first second"}')], pieces=2)
    flow.script(stream([*chunks[:3], gate, *chunks[3:]]))
    body = {"model": PLAIN, "input": "hi", "tools": [{"type": "custom", "name": "write"}], "stream": True}
    with flow.streaming("/v1/responses", body) as events:
        first = events.until("response.custom_tool_call_input.delta")["delta"]
        assert first
        assert "first second".startswith(first)
        gate.open()
        rest = [event["delta"] for event in events if event["type"] == "response.custom_tool_call_input.delta"]
    assert first + "".join(rest) == "first second"


def test_ids_are_of_their_kind_and_never_repeat(flow: Flow) -> None:
    flow.script(*(chat("A", reasoning="B", calls=[("c1", "f", "{}")]) for _ in range(4)))
    seen: list[str] = []
    for _ in range(2):
        body = {"model": DEEPSEEK, "input": "hi", "tools": [function("f")]}
        for response in (flow.create(body), flow.stream(body)[1]):
            seen += [response["id"], *(item["id"] for item in response["output"])]
            prefixes = {item["type"]: item["id"].split("_")[0] for item in response["output"]}
            assert prefixes == {"reasoning": "rs", "message": "msg", "function_call": "fc"}
            assert response["id"].startswith("resp_")
    assert len(set(seen)) == len(seen)


def test_a_background_request_really_runs_in_the_background(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("ok")]))
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "background": True})
    assert answer.json["status"] == "queued"
    gate.open()
    with flow.streaming(f"/v1/responses/{answer.json['id']}?stream=true", method="GET") as follower:
        follower.until("response.completed")


def test_a_conversation_that_we_do_not_keep_is_refused(flow: Flow) -> None:
    unknown = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "conversation": "conv_1"})
    assert (unknown.status, unknown.error["code"]) == (404, "conversation_not_found")
    both = {"model": PLAIN, "input": "hi", "conversation": "conv_1", "previous_response_id": "resp_1"}
    assert flow.post("/v1/responses", both).error["code"] == "mutually_exclusive_parameters"


def _parts(message: Json) -> list[Json]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
