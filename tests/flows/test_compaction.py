"""Compaction over HTTP: the model's own summary, sealed, and what later turns make of it, to the upstream's bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.bridge.history.compact import ASK, INSTRUCTIONS
from isthmus.testing import Gate, chat, chat_chunks, error, stream
from socketing import open_socket
from waiting import until

Json = dict[str, Any]
NOTES = "The user wants a red bridge. It is half built."
SPENT = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
TOOL: Json = {"type": "function", "name": "paint", "parameters": {"type": "object", "properties": {}}}
TALK: list[Json] = [
    {"role": "user", "content": "Build a bridge."},
    {"type": "function_call", "call_id": "c1", "name": "paint", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "painted"},
    {"role": "assistant", "content": "Which colour?"},
    {"role": "user", "content": [{"type": "input_text", "text": "Red."}]},
]
TRIGGER: Json = {"type": "compaction_trigger"}


def texts(body: Json) -> list[str]:
    return [str(message["content"]) for message in body["messages"]]


@pytest.mark.parametrize("model", [PLAIN, FULL, DEEPSEEK])
def test_the_endpoint_gives_the_users_messages_and_the_summary_last(flow: Flow, model: str) -> None:
    flow.script(chat(NOTES, usage=SPENT))
    made = flow.post("/v1/responses/compact", {"model": model, "input": TALK, "tools": [TOOL], "stream": True})
    assert made.status == 200
    window = made.json
    assert (window["object"], window["usage"]["total_tokens"]) == ("response.compaction", 110)
    *said, summary = window["output"]
    assert [item["role"] for item in said] == ["user", "user"]
    assert [item["content"][0]["text"] for item in said] == ["Build a bridge.", "Red."]
    assert all(item["id"] and item["status"] == "completed" for item in said)
    assert (summary["type"], NOTES in str(window)) == ("compaction", False)
    (sent,) = flow.sent
    assert "tools" not in sent
    assert texts(sent)[0] == INSTRUCTIONS
    assert texts(sent)[-1] == ASK
    assert any("painted" in text for text in texts(sent))
    assert flow.get(f"/v1/responses/{window['id']}").status == 404, "it is no response that could be continued"


@pytest.mark.parametrize("model", [PLAIN, FULL, DEEPSEEK])
def test_its_own_window_is_valid_input_on_any_model(flow: Flow, model: str) -> None:
    flow.script(chat(NOTES), chat("Going on."))
    window = flow.post("/v1/responses/compact", {"model": PLAIN, "input": TALK}).json["output"]
    response = flow.create({"model": model, "input": [*window, {"role": "user", "content": "Go on."}], "tools": []})
    assert response["status"] == "completed"
    assert not [said for said in response["isthmus"]["diagnostics"] if said["path"].startswith("input")]
    assert any(NOTES in text for text in texts(flow.sent[1]))
    assert [text for text in texts(flow.sent[1]) if "Red." in text], "what the user said is no part of the summary"


def test_a_chain_is_compacted_by_its_id(flow: Flow) -> None:
    flow.script(chat("Which colour?"), chat(NOTES))
    first = flow.create({"model": PLAIN, "input": "Build a bridge."})
    window = flow.post("/v1/responses/compact", {"model": PLAIN, "previous_response_id": first["id"]}).json
    assert [item["type"] for item in window["output"]] == ["message", "compaction"]
    assert texts(flow.sent[1])[1:3] == ["Build a bridge.", "Which colour?"]


@pytest.mark.parametrize(
    ("body", "param"),
    [({"input": "hi"}, "model"), ({"model": PLAIN}, "input"), ({"model": "nobody/x", "input": "hi"}, "model")],
)
def test_what_cannot_be_compacted_is_refused_before_anything_is_sent(flow: Flow, body: Json, param: str) -> None:
    refused = flow.post("/v1/responses/compact", body)
    assert refused.status in (400, 404)
    assert refused.error["param"] == param
    assert flow.sent == []


@pytest.mark.parametrize("step", [chat(""), chat("half a", finish="length"), error(400, "no")], ids=["", "cut", "400"])
def test_a_window_without_a_summary_is_never_given(flow: Flow, step: Any) -> None:
    flow.script(step)
    failed = flow.post("/v1/responses/compact", {"model": PLAIN, "input": TALK})
    assert failed.status >= 400
    assert failed.error["message"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("store", [False, True], ids=["not stored", "stored"])
def test_a_trigger_makes_one_compaction_item_and_nothing_else(flow: Flow, streamed: bool, store: bool) -> None:
    flow.script(chat(NOTES, reasoning="hm", usage=SPENT), chat("Going on."))
    asked = {"model": PLAIN, "input": [*TALK, TRIGGER], "tools": [TOOL], "store": store, "instructions": "Be brief."}
    events, response = flow.stream(asked) if streamed else ([], flow.create(asked))
    (item,) = response["output"]
    assert item["type"] == "compaction"
    assert (response["status"], response["usage"]["total_tokens"]) == ("completed", 110)
    assert (response["instructions"], [tool["name"] for tool in response["tools"]]) == ("Be brief.", ["paint"])
    assert NOTES not in str(response)
    assert [said["path"] for said in response["isthmus"]["diagnostics"]] == ["input[5]"]
    if streamed:
        assert [event["type"].removeprefix("response.") for event in events] == [
            *("created", "in_progress", "output_item.added", "compaction.compacting", "output_item.done", "completed")
        ]
    following: Json = {"input": [item, {"role": "user", "content": "Go on."}]}
    if store:
        following = {"previous_response_id": response["id"], "input": "Go on."}
    flow.create({"model": PLAIN, **following})
    told = texts(flow.sent[1])
    assert any(NOTES in text for text in told)
    assert not any("painted" in text or "Which colour?" in text for text in told), "the summary stands for it"
    assert ("Red." in str(told)) is store, "a chain keeps what the user said"


def test_a_trigger_that_is_not_last_is_refused(flow: Flow) -> None:
    refused = flow.post("/v1/responses", {"model": PLAIN, "input": [TRIGGER, {"role": "user", "content": "x"}]})
    assert (refused.status, refused.error["param"]) == (400, "input[0]")


LONG = "The bridge is long. " * 400
MANAGED = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_conversation_past_its_threshold_is_compacted_in_the_turn(flow: Flow, streamed: bool) -> None:
    flow.script(chat(NOTES, usage=SPENT), chat("Red it is.", usage=SPENT), chat("Done."))
    talk = [{"role": "user", "content": "Build."}, {"role": "assistant", "content": LONG}, TALK[-1]]
    asked = {"model": PLAIN, "input": talk, "tools": [TOOL], **MANAGED}
    events, response = flow.stream(asked) if streamed else ([], flow.create(asked))
    assert [item["type"] for item in response["output"]] == ["compaction", "message"]
    if streamed:
        kinds = [event["type"].removeprefix("response.") for event in events]
        told = ["output_item.added", "compaction.compacting", "output_item.done", "output_item.added"]
        assert kinds[:6] == ["created", "in_progress", *told]
    assert response["output_text"] == "Red it is."
    assert response["usage"]["total_tokens"] == 220
    assert "context_management" in [said["path"] for said in response["isthmus"]["diagnostics"]]
    summary, answer = flow.sent
    assert ("tools" in summary, "tools" in answer) == (False, True)
    assert LONG in str(texts(summary))
    assert LONG not in str(texts(answer))
    assert ["Build." in text or NOTES in text or "Red." in text for text in texts(answer)] == [True] * 3
    assert "Red." in texts(answer)[-1], "it answers the last thing that the user said"
    flow.create({"model": PLAIN, "previous_response_id": response["id"], "input": "And now?"})
    later = str(texts(flow.sent[2]))
    assert NOTES in later
    assert LONG not in later
    assert "Red it is." in later


@pytest.mark.parametrize("role", ["system", "developer"])
def test_no_summary_replaces_the_rules_of_a_conversation(flow: Flow, role: str) -> None:
    flow.script(chat(NOTES), chat("Red it is."), chat("Done."))
    rule = {"role": role, "content": "Answer in French."}
    talk = [rule, {"role": "user", "content": "Build."}, {"role": "assistant", "content": LONG}, TALK[-1]]
    response = flow.create({"model": PLAIN, "input": talk, **MANAGED})
    flow.create({"model": PLAIN, "previous_response_id": response["id"], "input": "And now?"})
    for body in flow.sent[1:]:
        assert [message["role"] for message in body["messages"] if message["content"] == "Answer in French."] == [
            "system"
        ]
        assert LONG not in str(texts(body))


def test_a_socket_goes_on_from_the_summary_of_what_it_alone_knows(flow: Flow) -> None:
    flow.script(chat(LONG), chat(NOTES), chat("Red it is."), chat("Done."), chat(NOTES), chat("On."))
    ask: Json = {"model": PLAIN, "store": False}
    with open_socket(flow.server.url) as talk:
        first = talk.answer({**ask, "input": "Build."})
        more = {**ask, **MANAGED, "input": "Which colour?", "previous_response_id": first["id"]}
        second = talk.answer(more)
        assert [item["type"] for item in second["output"]] == ["compaction", "message"]
        third = talk.answer({**ask, "input": "And now?", "previous_response_id": second["id"]})
        later = texts(flow.sent[3])
        assert [later[0], later[-2:]] == ["Build.", ["Red it is.", "And now?"]]
        assert NOTES in str(later)
        assert LONG not in str(later)
        # By a trigger, in the same chain.
        fourth = talk.answer({**ask, "input": [TRIGGER], "previous_response_id": third["id"]})
        assert [item["type"] for item in fourth["output"]] == ["compaction"]
        talk.answer({**ask, "input": "Go on.", "previous_response_id": fourth["id"]})
    later = texts(flow.sent[5])
    assert [text for text in later if "hand-over" not in text and NOTES not in text] == [
        *("Build.", "Which colour?", "And now?", "Go on.")
    ]


def test_below_its_threshold_nothing_is_compacted(flow: Flow) -> None:
    flow.script(chat("Hi."))
    response = flow.create({"model": PLAIN, "input": [*TALK], **MANAGED})
    assert [item["type"] for item in response["output"]] == ["message"]
    assert response["isthmus"]["diagnostics"] == []


def test_without_a_summary_the_conversation_goes_on_as_it_is(flow: Flow) -> None:
    flow.script(chat(""), chat("Red."))
    response = flow.create({"model": PLAIN, "input": [{"role": "assistant", "content": LONG}, *TALK], **MANAGED})
    assert response["output_text"] == "Red."
    assert LONG in str(texts(flow.sent[1]))
    assert "bridge.response.compaction_failed" in [said["code"] for said in response["isthmus"]["diagnostics"]]


@pytest.mark.parametrize("threshold", [999, "many", True, 1.5])
def test_a_threshold_that_is_none_is_refused(flow: Flow, threshold: Any) -> None:
    rule = {"type": "compaction", "compact_threshold": threshold}
    refused = flow.post("/v1/responses", {"model": PLAIN, "input": "x", "context_management": [rule]})
    assert (refused.status, refused.error["param"]) == (400, "context_management")


def test_a_rule_that_is_not_known_is_ignored_aloud(flow: Flow) -> None:
    flow.script(chat("Hi."))
    response = flow.create({"model": PLAIN, "input": "x", "context_management": [{"type": "forget"}]})
    assert [said["path"] for said in response["isthmus"]["diagnostics"]] == ["context_management"]


def changed(flow: Flow) -> str:
    """One of ours, with another letter in its middle."""
    flow.script(chat(NOTES))
    sealed: str = flow.post("/v1/responses/compact", {"model": PLAIN, "input": TALK}).json["output"][-1][
        "encrypted_content"
    ]
    at = len(sealed) // 2
    return sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]


@pytest.mark.parametrize(
    "sealed", ["gAAAAABfromsomebodyelse", "isth2.AAAA.BBBB", changed], ids=["other", "bad", "ours"]
)
def test_anothers_compaction_is_told_as_lost_and_refused_when_strict(flow: Flow, sealed: Any) -> None:
    sealed = sealed if isinstance(sealed, str) else sealed(flow)
    flow.script(chat("Hi."))
    asked = {"model": PLAIN, "input": [{"type": "compaction", "encrypted_content": sealed}, *TALK]}
    response = flow.create(asked)
    assert "input[0]" in [said["path"] for said in response["isthmus"]["diagnostics"]]
    assert sealed not in str(flow.sent)
    assert NOTES not in str(flow.sent[-1])
    assert flow.post("/v1/responses", asked, headers={"isthmus-strict": "true"}).status == 400


WINDOW = '[providers.plain.models."*".limits]\ncontext = 1000\noutput = 200\n'


def test_a_conversation_that_cannot_fit_is_refused_before_anything_is_sent(special: Callable[..., Flow]) -> None:
    flow = special(extra=WINDOW)
    refused = flow.post("/v1/responses", {"model": PLAIN, "input": LONG * 2})
    assert (refused.status, refused.error["code"]) == (400, "context_length_exceeded")
    assert flow.sent == []
    flow.script(chat("ok"))
    assert flow.create({"model": PLAIN, "input": "word " * 300})["status"] == "completed", "what may fit is sent"


def test_truncation_leaves_out_whole_turns_from_the_oldest_on(special: Callable[..., Flow]) -> None:
    flow = special(extra=WINDOW)
    flow.script(chat("Red."))
    turns = [
        item
        for number in range(6)
        for item in (
            {"role": "user", "content": f"Question {number}. " + "Why? " * 100},
            {"type": "function_call", "call_id": f"c{number}", "name": "paint", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": f"result {number}"},
        )
    ]
    system = {"role": "system", "content": "Be kind."}
    asked = [turns[0], system, *turns[1:], {"role": "user", "content": "The last one."}]
    response = flow.create({"model": PLAIN, "input": asked, "truncation": "auto"})
    told = str(texts(flow.sent[0]))
    assert "Be kind." in told
    assert "The last one." in told
    assert "Question 0." not in told
    assert "result 0" not in told
    assert "Question 5." in told
    (said,) = [said for said in response["isthmus"]["diagnostics"] if said["path"] == "truncation"]
    assert "oldest turn(s)" in said["message"]
    assert response["truncation"] == "auto"


def test_truncation_shortens_a_chain_as_well(special: Callable[..., Flow]) -> None:
    flow = special(extra=WINDOW)
    flow.script(*[chat("Because.")] * 6)
    body: Json = {"model": PLAIN, "truncation": "auto"}
    for number in range(6):
        response = flow.create({**body, "input": f"Question {number}. " + "Why? " * 100})
        body["previous_response_id"] = response["id"]
    told = str(texts(flow.sent[5]))
    assert "Question 0." not in told
    assert "Question 5." in told
    assert "truncation" in [said["path"] for said in response["isthmus"]["diagnostics"]]


def test_a_summary_is_a_run_like_any(special: Callable[..., Flow]) -> None:
    """Registered, limited, and ended with its client."""
    flow, gate = special(store="memory", extra="[server]\nmax_concurrent = 1"), Gate()
    flow.script(stream([chat_chunks("x")[0], gate], done=False))
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": [*TALK, TRIGGER], "stream": True}) as under_way:
        next(iter(under_way))
        flow.wait_sent()
        assert len(flow.server.gateway.runs) == 1
        refused = flow.post("/v1/responses/compact", {"model": PLAIN, "input": TALK})
        assert (refused.status, refused.error["code"]) == (503, "server_is_overloaded")
    flow.wait_sent().closed.wait()
    until(lambda: not len(flow.server.gateway.runs))
    gate.open()


def test_a_compaction_is_told_again_as_it_was(flow: Flow) -> None:
    flow.script(chat(NOTES))
    events, response = flow.stream({"model": PLAIN, "input": [*TALK, TRIGGER]})
    for after in (0, 2, 3):
        path = f"/v1/responses/{response['id']}?stream=true&starting_after={after}"
        with flow.streaming(path, method="GET") as again:
            assert list(again) == events[after + 1 :]


def test_an_estimate_of_the_input_errs_high(flow: Flow) -> None:
    counted = flow.post(
        "/v1/responses/input_tokens", {"model": PLAIN, "input": "今天天气很好，我们去公园散步吧。" * 20}
    )
    assert 620 <= counted.json["input_tokens"] <= 1200, "620 by the smallest vocabulary in use"
