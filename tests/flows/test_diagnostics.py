"""Nothing is changed in silence: what the plan did is in a header, in the object and in the terminal event."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import chat
from talking import finished

Json = dict[str, Any]

CHANGED = {
    "model": DEEPSEEK,
    "input": "hi",
    "temperature": 3,  # degraded to 2
    "service_tier": "flex",  # ignored
    "top_logprobs": 30,  # degraded to 20
}
STRICT = {"Isthmus-Strict": "true"}


def test_the_plan_is_counted_in_a_header_and_told_in_the_object(flow: Flow) -> None:
    flow.script(chat("ok"))
    answer = flow.post("/v1/responses", CHANGED)
    assert answer.headers["isthmus-plan"] == "degraded=2, ignored=1"
    told = {said["path"]: said for said in answer.json["isthmus"]["diagnostics"]}
    assert {path: said["action"] for path, said in told.items()} == {
        "temperature": "degraded",
        "top_logprobs": "degraded",
        "service_tier": "ignored",
    }
    assert told["temperature"]["code"] == "bridge.param.degraded"
    assert told["temperature"]["metadata"]["effective_value"] == 2
    assert all(said["message"] and said["severity"] == "warn" for said in told.values())
    [sent] = flow.sent
    assert (sent["temperature"], sent["top_logprobs"], "service_tier" in sent) == (2, 20, False)


def test_a_stream_has_the_same_header_and_tells_it_in_the_terminal_event_only(flow: Flow) -> None:
    flow.script(chat("ok"), chat("ok"))
    whole = flow.create(CHANGED)
    with flow.streaming("/v1/responses", {**CHANGED, "stream": True}) as stream:
        assert stream.headers["isthmus-plan"] == "degraded=2, ignored=1"
        events = list(stream)
    response = finished(events)
    assert response["isthmus"] == whole["isthmus"]
    assert [event["type"] for event in events if "isthmus" in event.get("response", ())] == ["response.completed"]


def test_a_stored_response_still_tells_it(flow: Flow) -> None:
    flow.script(chat("ok"))
    response = flow.create(CHANGED)
    assert flow.get(f"/v1/responses/{response['id']}").json["isthmus"] == response["isthmus"]


def test_a_plan_that_changes_nothing_says_ok(flow: Flow) -> None:
    flow.script(chat("ok"))
    answer = flow.post("/v1/responses", {"model": FULL, "input": "hi", "temperature": 0.5})
    assert answer.headers["isthmus-plan"] == "ok"
    assert answer.json["isthmus"]["diagnostics"] == []


@pytest.mark.parametrize("extra", [{}, {"stream": True}, {"background": True}])
def test_strict_refuses_what_it_would_otherwise_change(flow: Flow, extra: Json) -> None:
    answer = flow.post("/v1/responses", {**CHANGED, **extra}, STRICT)
    assert answer.status == 400
    assert answer.error["code"] == "bridge.request.unsupported_parameter"
    assert answer.error["param"] in CHANGED
    assert {said["path"] for said in answer.error["diagnostics"]} == {"temperature", "top_logprobs", "service_tier"}
    assert all(f"`{path}`" in answer.error["message"] for path in ("temperature", "top_logprobs", "service_tier"))
    assert flow.sent == []


def test_strict_lets_pass_what_is_not_changed(flow: Flow) -> None:
    flow.script(chat("ok"))
    assert flow.post("/v1/responses", {"model": FULL, "input": "hi", "temperature": 0.5}, STRICT).status == 200


def test_strict_in_chat_speaks_of_chat_fields(flow: Flow) -> None:
    body = {"model": PLAIN, "messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"}
    answer = flow.post("/v1/chat/completions", body, STRICT)
    assert (answer.status, answer.error["param"]) == (400, "reasoning_effort")
    assert "`reasoning_effort`" in answer.error["message"]


def test_a_strict_header_that_says_neither_is_a_400(flow: Flow) -> None:
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi"}, {"Isthmus-Strict": "maybe"})
    assert (answer.status, answer.error["param"]) == (400, "Isthmus-Strict")


def test_strict_can_be_the_rule_of_the_house(special: Any) -> None:
    flow = special(store="memory", extra="[plan]\nstrict = true")
    assert flow.post("/v1/responses", CHANGED).status == 400
    flow.script(chat("ok"))
    assert flow.post("/v1/responses", CHANGED, {"Isthmus-Strict": "false"}).status == 200


def test_a_chat_reply_carries_the_plan_in_chat_words(flow: Flow) -> None:
    body = {"model": PLAIN, "messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"}
    flow.script(chat("ok"), chat("ok"))
    answer = flow.post("/v1/chat/completions", body)
    assert answer.headers["isthmus-plan"] == "ignored=1"
    [said] = answer.json["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("reasoning_effort", "ignored")
    chunks = flow.chat_stream(body)
    assert [chunk["isthmus"]["diagnostics"] for chunk in chunks if chunk.get("isthmus")] == [[said]]
