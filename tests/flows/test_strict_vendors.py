"""Sessions that real agents have, at servers that refuse what others forgive: none of them is ever refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import chat
from strict_vendors import refused_by_a_strict_template, refused_by_mistral, strictly
from talking import message_text

Json = dict[str, Any]

PIXEL = "data:image/png;base64,iVBORw0KGgo="
VIEW: Json = {"type": "function", "name": "view", "parameters": {"type": "object", "properties": {}}}
IMAGE: Json = {"type": "input_image", "image_url": PIXEL}
CALL = ("call_view_0001", "view", "{}")


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    providers = {"mistral": "", "vllm": "dialect = 'chat'", "zhipu": ""}
    with provider_flow(tmp_path_factory.mktemp("strict"), providers) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


VENDORS = {
    "mistral/mistral-medium-3.5": refused_by_mistral,
    "vllm/mistralai/Mistral-Small-4": refused_by_a_strict_template,
}
each_vendor = pytest.mark.parametrize(("model", "refuses"), VENDORS.items(), ids=["mistral", "template"])


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


def test_the_servers_really_refuse() -> None:
    assert refused_by_mistral([{"role": "tool", "content": "x"}, {"role": "user", "content": "y"}])
    assert refused_by_a_strict_template([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}])


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
