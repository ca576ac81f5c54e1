"""Sessions that real agents have, at servers that refuse what others forgive: none of them is ever refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import ScriptedUpstream, chat
from strict_vendors import (
    openrouter_failure,
    refused_by_a_strict_template,
    refused_by_gemini,
    refused_by_mistral,
    signed_call,
    strictly,
)
from talking import Talk, message_text

Json = dict[str, Any]

PIXEL = "data:image/png;base64,iVBORw0KGgo="
VIEW: Json = {"type": "function", "name": "view", "parameters": {"type": "object", "properties": {}}}
IMAGE: Json = {"type": "input_image", "image_url": PIXEL}
CALL = ("call_view_0001", "view", "{}")


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    providers = {"mistral": "", "vllm": "dialect = 'chat'", "zhipu": "", "gemini": "", "openrouter": ""}
    with provider_flow(tmp_path_factory.mktemp("strict"), providers) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


VENDORS = {
    "mistral/mistral-medium-3.5": refused_by_mistral,
    "vllm/mistralai/Mistral-Small-4": refused_by_a_strict_template,
    "gemini/gemini-3.8-flash": refused_by_gemini,
}
each_vendor = pytest.mark.parametrize(("model", "refuses"), VENDORS.items(), ids=["mistral", "template", "gemini"])
each_mode = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


@each_vendor
def test_a_session_goes_on_after_a_tool_shows_an_image(flow: Flow, model: str, refuses: Any) -> None:
    flow.script(*(strictly(refuses, answer) for answer in (chat(calls=[CALL]), chat("A cat."), chat("Yes."))))
    asked: Json = {"model": model, "tools": [VIEW]}
    first = flow.create({**asked, "input": "What is in a.png?"})
    (called,) = (item for item in first["output"] if item["type"] == "function_call")
    seen = {"type": "function_call_output", "call_id": called["call_id"], "output": [IMAGE]}
    second = flow.create({**asked, "input": [seen], "previous_response_id": first["id"]})
    assert (second["status"], message_text(second)) == ("completed", "A cat.")
    assert PIXEL in repr(flow.sent[1]["messages"][-1])
    third = flow.create({**asked, "input": "Sure?", "previous_response_id": second["id"]})
    assert message_text(third) == "Yes."


@each_vendor
@pytest.mark.parametrize(
    "steered",
    [
        pytest.param([user("No, b.png")], id="steered"),
        pytest.param([user("[summary of the conversation so far]"), user("Go on")], id="compacted"),
    ],
)
def test_a_session_goes_on_when_the_user_speaks_after_a_result(
    flow: Flow, model: str, refuses: Any, steered: list[Json]
) -> None:
    flow.script(strictly(refuses, chat("Done.")))
    past = [
        user("Look"),
        {"type": "function_call", "call_id": "call_1", "name": "view", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ]
    response = flow.create({"model": model, "tools": [VIEW], "input": [*past, *steered]})
    assert (response["status"], message_text(response)) == ("completed", "Done.")


PICKY: Json = {
    "type": "function",
    "name": "view",
    "strict": True,
    "parameters": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"page": {"type": "integer", "exclusiveMinimum": 0}, "not": {"type": "string"}},
        "required": ["page", "not"],
        "additionalProperties": False,
    },
}
EVERYTHING: Json = {
    "temperature": 0.5,
    "top_p": 0.9,
    "max_output_tokens": 500,
    "top_logprobs": 2,
    "parallel_tool_calls": True,
    "prompt_cache_key": "k1",
    "safety_identifier": "s1",
    "service_tier": "auto",
    "truncation": "disabled",
    "user": "u1",
    "metadata": {"a": "b"},
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low"},
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
}
"""What agents send with every request; who does not take a field must not get it."""

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FORMAT = {"format": {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": True}}


@each_mode
@each_vendor
def test_a_session_of_several_calls_is_never_refused(flow: Flow, model: str, refuses: Any, streamed: bool) -> None:
    """Two steps of calls, two of them at once, a word of the user, and a schema at the end."""

    def ask(body: Json) -> Json:
        response = flow.stream(body)[1] if streamed else flow.create(body)
        assert response["status"] == "completed", response["error"]
        return response

    def results(response: Json) -> list[Json]:
        calls = [item["call_id"] for item in response["output"] if item["type"] == "function_call"]
        return [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls]

    calls = signed_call if refuses is refused_by_gemini else lambda *made: chat(calls=list(made))
    steps = [calls(CALL, ("call_view_0002", "view", "{}")), calls(("call_view_0003", "view", "{}")), chat("Done.")]
    flow.script(*(strictly(refuses, step) for step in (*steps, chat("Yes."), chat('{"n": 1}'))))
    asked: Json = {"model": model, "tools": [PICKY], "instructions": "Look well.", **EVERYTHING}
    first = ask({**asked, "input": "Look at both."})
    second = ask({**asked, "input": results(first), "previous_response_id": first["id"]})
    third = ask({**asked, "input": results(second), "previous_response_id": second["id"]})
    assert message_text(third) == "Done."
    assert message_text(ask({**asked, "input": "Sure?", "previous_response_id": third["id"]})) == "Yes."
    assert message_text(ask({"model": model, "input": "A number, as JSON", "text": FORMAT})) == '{"n": 1}'


@pytest.mark.parametrize("kept", [True, False], ids=["kept by the client", "lost by the client"])
def test_a_signature_comes_back_also_where_nothing_is_stored(flow: Flow, kept: bool) -> None:
    flow.script(*(strictly(refused_by_gemini, step) for step in (signed_call(CALL), chat("A cat."))))
    asked: Json = {"model": "gemini/gemini-3.8-flash", "tools": [VIEW], "store": False}
    first = flow.create({**asked, "input": "Look", "include": ["reasoning.encrypted_content"] if kept else []})
    (call,) = (item for item in first["output"] if item["type"] == "function_call")
    past = first["output"] if kept else [call]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    second = flow.create({**asked, "input": [user("Look"), *past, result]})
    assert message_text(second) == "A cat."


# Failures behind a 200

FAILURES = {
    "a host that went away": (502, "Provider disconnected unexpectedly", "server_error", 502),
    "too many requests": (429, "Rate limit exceeded upstream", "rate_limit_exceeded", 429),
    "no credits": (402, "Insufficient credits", "insufficient_quota", 429),
    "a word in place of a number": ("server_error", "Provider disconnected unexpectedly", "server_error", 502),
}


@pytest.mark.parametrize("said", ["", "Once upon"], ids=["before a word", "in mid-answer"])
@pytest.mark.parametrize(("code", "words", "ours", "_status"), FAILURES.values(), ids=list(FAILURES))
def test_openrouters_failure_in_a_stream_is_a_failure(
    flow: Flow, code: Any, words: str, ours: str, _status: int, said: str
) -> None:
    flow.script(openrouter_failure(code, words, said=said))
    _, response = flow.stream({"model": "openrouter/z-ai/glm-5.3", "input": "Tell"})
    assert (response["status"], response["error"]["code"]) == ("failed", ours)
    assert words in response["error"]["message"]


@pytest.mark.parametrize("inside", [False, True], ids=["beside the choices", "in the choice"])
@pytest.mark.parametrize(("code", "words", "ours", "status"), FAILURES.values(), ids=list(FAILURES))
def test_openrouters_failure_in_a_whole_reply_is_a_failure(
    flow: Flow, code: Any, words: str, ours: str, status: int, inside: bool
) -> None:
    flow.script(openrouter_failure(code, words, said="Once", inside=inside))
    answer = flow.post("/v1/responses", {"model": "openrouter/z-ai/glm-5.3", "input": "Tell"})
    assert answer.json["error"]["code"] == ours
    assert words in answer.json["error"]["message"]
    assert answer.status in (200, status)  # a run that had begun is told as a failed response


CALLED: Json = {"id": "c", "type": "function", "function": {"name": "view", "arguments": "{}"}}
ASKED: Json = {"role": "user", "content": "x"}
MADE: Json = {"role": "assistant", "content": "", "tool_calls": [CALLED]}
RESULT: Json = {"role": "tool", "tool_call_id": "c", "content": "ok"}
WRONG: dict[str, tuple[Any, list[Json], Json, str]] = {
    "mistral: an id of another form": (refused_by_mistral, [ASKED, MADE, RESULT], {}, "with a length of 9"),
    "mistral: the user after a tool": (
        refused_by_mistral,
        [
            ASKED,
            {**MADE, "tool_calls": [{**CALLED, "id": "abcdefghi"}]},
            {**RESULT, "tool_call_id": "abcdefghi"},
            ASKED,
        ],
        {},
        "Unexpected role 'user' after role 'tool'",
    ),
    "mistral: a late system message": (
        refused_by_mistral,
        [ASKED, {"role": "assistant", "content": "y"}, {"role": "system", "content": "z"}, ASKED],
        {},
        "Unexpected role 'system'",
    ),
    "mistral: another name of the limit": (
        refused_by_mistral,
        [ASKED],
        {"max_completion_tokens": 5},
        "extra_forbidden",
    ),
    "mistral: usage that is asked for": (
        refused_by_mistral,
        [ASKED],
        {"stream": True, "stream_options": {"include_usage": True}},
        "body.stream_options",
    ),
    "mistral: thoughts beside the content": (
        refused_by_mistral,
        [ASKED, {"role": "assistant", "content": "y", "reasoning_content": "hm"}, ASKED],
        {},
        "messages.1.reasoning_content",
    ),
    "gemini: a call without its signature": (
        refused_by_gemini,
        [ASKED, MADE, RESULT],
        {},
        "missing a thought_signature",
    ),
    "gemini: a seed": (refused_by_gemini, [ASKED], {"seed": 1}, 'Unknown name "seed"'),
    "gemini: a schema's keyword": (
        refused_by_gemini,
        [ASKED],
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": PICKY["parameters"]}}]},
        'Unknown name "$schema"',
    ),
    "a template: two messages of one speaker": (refused_by_a_strict_template, [ASKED, ASKED], {}, "must alternate"),
    "a template: a late system message": (
        refused_by_a_strict_template,
        [ASKED, {"role": "system", "content": "z"}],
        {},
        "only the first message",
    ),
}


@pytest.mark.parametrize(("refuses", "messages", "fields", "words"), WRONG.values(), ids=list(WRONG))
def test_the_servers_really_refuse(refuses: Any, messages: list[Json], fields: Json, words: str) -> None:
    """What a client without a bridge would have sent, over a real socket."""
    with ScriptedUpstream.running([strictly(refuses, chat("never"))]) as vendor:
        answer = Talk(vendor.base_url).post("/chat/completions", {"model": "m", "messages": messages, **fields})
    assert answer.status in (400, 422)
    assert words in answer.error["message"]


def test_a_search_that_must_stay_off_the_web_is_not_sent(flow: Flow) -> None:
    flow.script(chat("Fine."), chat("Fine."))
    search = {"type": "web_search", "external_web_access": False}
    response = flow.create({"model": "zhipu/glm-5", "input": "hi", "tools": [search]})
    assert "tools" not in flow.sent[0]
    assert [note["path"] for note in response["isthmus"]["diagnostics"]] == ["tools[0]"]
    flow.create({"model": "zhipu/glm-5", "input": "hi", "tools": [{"type": "web_search"}]})
    assert flow.sent[1]["tools"][0]["type"] == "web_search"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"messages": [{"role": "user", "content": "hi"}]}, "/v1/chat/completions", id="a chat body"),
        pytest.param({}, "`input` is missing or empty", id="nothing"),
        pytest.param({"input": ""}, "`input` is missing or empty", id="an empty text"),
        pytest.param({"input": []}, "`input` is missing or empty", id="no items"),
    ],
)
def test_a_body_that_asks_nothing_is_refused_by_name(flow: Flow, body: Json, words: str) -> None:
    answer = flow.post("/v1/responses", {"model": "mistral/mistral-medium-3.5", **body})
    assert answer.status == 400
    assert answer.json["error"]["param"] == "input"
    assert words in answer.json["error"]["message"]
