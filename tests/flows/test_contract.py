"""Output contracts: what is asked of the provider, what is promised to the client, and what happens when it breaks."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream
from talking import message_text

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
MODES = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
HELD = pytest.mark.parametrize("model", [DEEPSEEK, PLAIN])
CODE = "bridge.response.invalid_output_format"


def test_a_native_schema_is_sent_as_it_is_and_no_words_are_added(flow: Flow) -> None:
    flow.script(chat('{"n": 1}'), chat('{"n": 1}'))
    whole, _ = flow.both(_asked(FULL))
    assert message_text(whole) == '{"n": 1}'
    for sent in flow.sent:
        assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
        assert [message["role"] for message in sent["messages"]] == ["user"]
    assert whole["text"]["format"]["schema"] == SCHEMA
    assert whole["isthmus"]["diagnostics"] == []


def test_a_provider_with_json_object_gets_it_and_the_schema_in_words(flow: Flow) -> None:
    flow.script(chat('{"n": 1}'), chat('{"n": 1}'))
    whole, _ = flow.both(_asked(DEEPSEEK))
    for sent in flow.sent:
        assert sent["response_format"] == {"type": "json_object"}
        assert sent["messages"][0]["role"] == "system"
        assert '"required":["n"]' in sent["messages"][0]["content"].replace(" ", "")
    [said] = whole["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("text.format", "degraded")


def test_a_provider_without_any_format_gets_the_schema_in_words(flow: Flow) -> None:
    flow.script(chat('{"n": 1}'), chat('{"n": 1}'))
    flow.both(_asked(PLAIN))
    for sent in flow.sent:
        assert "response_format" not in sent
        assert '"required":["n"]' in sent["messages"][0]["content"].replace(" ", "")


@pytest.mark.parametrize(
    ("model", "format"), [(FULL, {"type": "json_object"}), (DEEPSEEK, {"type": "json_object"}), (PLAIN, None)]
)
def test_json_object_is_sent_where_it_is_known(flow: Flow, model: str, format: Json | None) -> None:
    flow.script(chat('{"a": 1}'), chat('{"a": 1}'))
    flow.both({"model": model, "input": "An object", "text": {"format": {"type": "json_object"}}})
    for sent in flow.sent:
        assert sent.get("response_format") == format
        assert "JSON" in sent["messages"][0]["content"]


@HELD
@MODES
@pytest.mark.parametrize("bad", ["no json at all", '{"n": "one"}', "[1]", "7", '{"n": 1, "extra": true}', ""])
def test_a_strict_answer_that_does_not_fit_is_asked_for_again_once(
    flow: Flow, model: str, streamed: bool, bad: str
) -> None:
    """A scalar, a wrong type, an extra field: a real JSON Schema is checked, not only whether it parses."""
    flow.script(chat(bad), chat('{"n": 2}'))
    response = _turn(flow, streamed, _asked(model))
    assert response["status"] == "completed"
    assert message_text(response) == '{"n": 2}'
    first, second = flow.sent
    assert second["messages"][: len(first["messages"])] == first["messages"]
    again = second["messages"][len(first["messages"]) :]
    # An answer without a word is not sent back: many providers refuse an empty assistant message.
    assert [message["role"] for message in again] == (["assistant", "user"] if bad else ["user"])
    assert not bad or again[0]["content"] == bad
    assert {name: second[name] for name in second if name != "messages"} == {
        name: first[name] for name in first if name != "messages"
    }
    assert CODE in [said["code"] for said in response["isthmus"]["diagnostics"]]


@HELD
def test_a_second_failure_fails_the_response_the_same_way_in_both_modes(flow: Flow, model: str) -> None:
    flow.script(*(chat(text) for text in ("bad one", "bad two", "bad one", "bad two")))
    whole, streamed = flow.both(_asked(model))
    for response in (whole, streamed):
        assert response["status"] == "failed"
        assert response["error"]["code"] == CODE
        assert [item for item in response["output"] if item["type"] == "message"] == []
        assert flow.get(f"/v1/responses/{response['id']}").json == response
    assert len(flow.sent) == 4


def test_a_native_strict_answer_that_does_not_fit_fails_in_both_modes(flow: Flow) -> None:
    flow.script(chat('{"n": "one"}'), chat('{"n": "one"}'))
    whole, _ = flow.both(_asked(FULL))
    assert (whole["status"], whole["error"]["code"]) == ("failed", CODE)
    assert len(flow.sent) == 2


def test_a_chat_caller_hears_of_it_with_a_status(flow: Flow) -> None:
    flow.script(*(chat("bad") for _ in range(4)))
    body = {
        "model": PLAIN,
        "messages": [{"role": "user", "content": "A number"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
    }
    answer = flow.post("/v1/chat/completions", body)
    assert (answer.status, answer.error["code"]) == (502, CODE)
    chunks = flow.chat_stream(body)
    assert chunks[-1]["error"]["code"] == CODE


@MODES
@pytest.mark.parametrize("wrapped", ['```json\n{"n": 3}\n```', 'Here you are:\n{"n": 3}\nAnything else?'])
def test_fences_and_prose_around_the_json_are_taken_off(flow: Flow, streamed: bool, wrapped: str) -> None:
    flow.script(chat(wrapped))
    response = _turn(flow, streamed, _asked(PLAIN))
    assert message_text(response) == '{"n": 3}'
    assert "bridge.response.output_cleaned" in [said["code"] for said in response["isthmus"]["diagnostics"]]


@MODES
@pytest.mark.parametrize("model", [FULL, DEEPSEEK, PLAIN])
def test_without_strict_an_answer_that_does_not_fit_is_kept_and_reported(
    flow: Flow, model: str, streamed: bool
) -> None:
    flow.script(chat("not json"))
    response = _turn(flow, streamed, _asked(model, strict=False))
    assert (response["status"], message_text(response)) == ("completed", "not json")
    assert CODE in [said["code"] for said in response["isthmus"]["diagnostics"]]
    assert len(flow.sent) == 1


def test_text_that_may_still_be_replaced_is_not_shown(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("not json")[:-1], gate]), chat('{"n": 4}'))
    with flow.streaming("/v1/responses", {**_asked(PLAIN), "stream": True}) as events:
        gate.reached.wait()
        gate.open()
        told = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(told) == '{"n": 4}'


def test_native_text_is_streamed_as_it_comes(flow: Flow) -> None:
    gate = Gate()
    chunks = chat_chunks('{"n": 5}', pieces=2)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))
    with flow.streaming("/v1/responses", {**_asked(FULL), "stream": True}) as events:
        assert events.until("response.output_text.delta")["delta"] == '{"n"'
        gate.open()
        assert events.until("response.completed")["response"]["output_text"] == '{"n": 5}'


@MODES
def test_a_refusal_is_not_held_against_the_contract(flow: Flow, streamed: bool) -> None:
    flow.script(chat(refusal="I will not."))
    response = _turn(flow, streamed, _asked(FULL))
    assert (response["status"], message_text(response)) == ("completed", "I will not.")


@MODES
def test_the_budget_can_be_zero(special: Any, streamed: bool) -> None:
    flow = special(store="memory", extra="[plan]\nrepair_budget = 0")
    flow.script(chat("bad"))
    response = _turn(flow, streamed, _asked(PLAIN))
    assert (response["status"], response["error"]["code"]) == ("failed", CODE)


@pytest.mark.parametrize(
    ("format", "param"),
    [
        ({"type": "json_schema", "name": "x"}, "text.format.schema"),
        ({"type": "json_schema", "name": "x", "schema": {"type": "nonsense"}}, "text.format.schema"),
        ({"type": "json_schema", "name": "x", "schema": 4}, "text.format.schema"),
        ({"type": "yaml"}, "text.format"),
    ],
)
def test_a_contract_that_is_none_is_refused_before_anything_is_sent(flow: Flow, format: Json, param: str) -> None:
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "x", "text": {"format": format}})
    assert answer.status == 400
    assert (answer.error["param"] or "").startswith(param)
    assert flow.sent == []


def test_a_failed_second_call_of_one_response_is_one_failed_response(flow: Flow) -> None:
    """The upstream refuses when it is asked again: by then the stream has begun."""
    from isthmus.testing import error

    flow.script(chat("bad"), error(500, "boom"), chat("bad"), error(500, "boom"))
    whole, _ = flow.both(_asked(PLAIN))
    assert (whole["status"], whole["error"]["code"]) == ("failed", "server_error")
    assert "boom" in whole["error"]["message"]


def _asked(model: str, *, strict: bool = True) -> Json:
    format = {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": strict}
    return {"model": model, "input": "A number", "text": {"format": format}}


def _turn(flow: Flow, streamed: bool, body: Json) -> Json:
    return flow.stream(body)[1] if streamed else flow.create(body)
