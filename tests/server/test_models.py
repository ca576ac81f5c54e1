"""`/v1/models` in the shapes of OpenAI and of Codex, and which model answers to a name."""

from __future__ import annotations

import pytest

from flowing import DEEPSEEK, FULL, Flow
from isthmus.bridge.capabilities import EFFORTS
from isthmus.testing import chat


def test_models_are_listed_in_the_shape_of_openai(flow: Flow) -> None:
    body = flow.get("/v1/models").json
    assert body["object"] == "list"
    by_id = {model["id"]: model for model in body["data"]}
    assert {"gpt-alias", DEEPSEEK, "full/gpt-5"} <= set(by_id)
    for model in body["data"]:
        assert model["object"] == "model"
        assert isinstance(model["created"], int)
        assert isinstance(model["owned_by"], str)
    assert by_id["gpt-alias"]["isthmus"]["model"] == "deepseek-v4-pro"


def test_models_are_listed_in_the_shape_of_codex(flow: Flow) -> None:
    body = flow.get("/v1/models").json
    assert [model["slug"] for model in body["models"]] == [model["id"] for model in body["data"]]
    for model in body["models"]:
        assert model["apply_patch_tool_type"] == "freeform"
        assert model["context_window"] > 0
        assert {level["effort"] for level in model["supported_reasoning_levels"]} <= set(EFFORTS)


ANTHROPIC = {"anthropic-version": "2023-06-01"}


def test_claude_code_is_shown_every_model_under_a_name_that_it_lists(flow: Flow) -> None:
    plain = [model["id"] for model in flow.get("/v1/models").json["data"]]
    page = flow.request("GET", "/v1/models?limit=1000", None, ANTHROPIC).json
    listed = [model["id"] for model in page["data"]]
    shown = {id if id.startswith(("claude", "anthropic")) else f"claude-{id}" for id in plain}
    assert {*plain, *shown} == set(listed)
    flow.script(*[chat("ok")] * 2)
    for id in ("claude-gpt-alias", f"claude-{DEEPSEEK}"):
        assert flow.request("GET", f"/v1/models/{id}", None, ANTHROPIC).status == 200
        body = {"model": id, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        assert flow.post("/v1/messages", body, ANTHROPIC).status == 200
    assert [body["model"] for body in flow.sent] == ["deepseek-v4-pro"] * 2


@pytest.mark.parametrize("id", ["gpt-alias", DEEPSEEK, FULL, "plain/any/name"])
def test_one_model_is_described_by_its_id(flow: Flow, id: str) -> None:
    model = flow.get(f"/v1/models/{id}").json
    assert (model["id"], model["object"]) == (id, "model")


@pytest.mark.parametrize(("id", "status"), [("nobody/model", 400), ("not-an-alias", 404)])
def test_a_model_that_is_not_there_is_told_so(flow: Flow, id: str, status: int) -> None:
    answer = flow.get(f"/v1/models/{id}")
    assert answer.status == status
    assert id.partition("/")[0] in answer.error["message"]


@pytest.mark.parametrize(
    ("asked", "provider", "upstream", "alias"),
    [
        (DEEPSEEK, "deepseek", "deepseek-v4-pro", None),
        ("gpt-alias", "deepseek", "deepseek-v4-pro", "gpt-alias"),
        ("plain/org/model", "plain", "org/model", None),
        ("bare-name", "plain", "bare-name", None),
        (None, "plain", "some-model", None),
    ],
)
def test_the_response_names_the_model_that_answered(
    flow: Flow, asked: str | None, provider: str, upstream: str, alias: str | None
) -> None:
    flow.script(chat("ok"), chat("ok"))
    for response in flow.both({"model": asked, "input": "hi"}):
        assert response["model"] == upstream
        assert (response["isthmus"]["provider"], response["isthmus"]["model"]) == (provider, upstream)
        assert response["isthmus"].get("alias") == alias
    assert [body["model"] for body in flow.sent] == [upstream] * 2
