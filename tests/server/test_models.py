"""`/v1/models`: what the servers really serve, in two shapes; and which model answers to a name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, Flow
from flowing_providers import provider_flow
from isthmus.bridge.capabilities import EFFORTS
from isthmus.testing import chat, error, reply
from isthmus.testing.script import Step
from serving import running_gateway_server
from talking import Talk


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


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/models?client_version=0.166.0", {}),
        ("/v1/models", {"originator": "codex_exec"}),
        ("/v1/models", {"User-Agent": "codex_exec/0.166.0 (Linux)"}),
    ],
)
def test_models_are_listed_in_the_shape_of_codex_for_codex(flow: Flow, path: str, headers: dict[str, str]) -> None:
    body = flow.request("GET", path, None, headers).json
    spoken_to = [model["id"] for model in body["data"] if "embeddings" not in model["isthmus"]]
    assert [model["slug"] for model in body["models"]] == spoken_to
    for model in body["models"]:
        assert model["apply_patch_tool_type"] == "freeform"
        assert model["context_window"] > 0
        assert {level["effort"] for level in model["supported_reasoning_levels"]} <= set(EFFORTS)


ANTHROPIC = {"anthropic-version": "2023-06-01"}


def test_claude_code_is_shown_every_model_under_a_name_that_it_lists(flow: Flow) -> None:
    known = flow.get("/v1/models").json["data"]
    plain = [model["id"] for model in known if not model["isthmus"].get("embeddings")]
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


def test_nobody_else_is_sent_the_catalogue(flow: Flow) -> None:
    answer = flow.get("/v1/models")
    assert set(answer.json) == {"object", "data"}


def test_a_default_install_answers_with_little() -> None:
    with running_gateway_server('[server]\nport = 0\n[store]\nurl = "memory:"\n') as server:
        assert len(Talk(server.url).get("/v1/models").body) < 2_000


def test_a_name_that_works_as_a_model_is_described(flow: Flow) -> None:
    """A bare name goes to the default provider, as it does in a request."""
    model = flow.get("/v1/models/bare-name").json
    assert (model["id"], model["isthmus"]["model"]) == ("bare-name", "bare-name")
    assert model["isthmus"]["source"] == "name"


def test_a_model_that_makes_vectors_is_listed_and_marked(flow: Flow) -> None:
    listed = {model["id"]: model["isthmus"] for model in flow.get("/v1/models").json["data"]}
    assert listed["full/text-embedding-3-small"]["embeddings"] is True
    assert "embeddings" not in listed["full/gpt-5"]


def test_a_provider_that_is_not_there_is_told_so(flow: Flow) -> None:
    answer = flow.get("/v1/models/nobody/model")
    assert answer.status == 400
    assert "nobody" in answer.error["message"]


# ── what the servers say ───────────────────────────────────────────────────────────────────────────


LISTED = [
    {"id": "deepseek-v4-pro", "object": "model"},
    {"id": "deepseek-v9", "object": "model", "shutdown_date": "2027-03-01"},
    {"id": "deepseek-embedding-1", "object": "model"},
]


Vendor = Callable[..., Flow]


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    """DeepSeek's file, at an upstream that lists its models, and that is taken for one on another machine."""
    monkeypatch.setattr("isthmus.upstream.asking.is_local", lambda url: False)
    with ExitStack() as stack:

        def make(answer: Step, extra: str = "") -> Flow:
            own = {"deepseek": "dialect = 'chat'\n"}
            return stack.enter_context(provider_flow(tmp_path, own, routes={"/v1/models": answer}, extra=extra))

        yield make


def shown(flow: Flow) -> dict[str, Any]:
    return {model["id"]: model for model in flow.get("/v1/models").json["data"]}


def test_what_a_vendor_lists_is_offered_and_what_it_lists_no_more_is_not(vendor: Vendor) -> None:
    flow = vendor(reply({"object": "list", "data": LISTED}))
    before = time.time()
    listed = shown(flow)
    assert list(listed) == ["deepseek/deepseek-v4-pro", "deepseek/deepseek-v9"]
    for model in listed.values():
        assert model["isthmus"]["source"] == "server"
        assert before - 60 <= model["isthmus"]["heard_at"] <= time.time()
    assert listed["deepseek/deepseek-v9"]["shutdown_date"] == "2027-03-01"
    assert "shutdown_date" not in listed["deepseek/deepseek-v4-pro"]
    gone = flow.get("/v1/models/deepseek/deepseek-flash")
    assert (gone.status, gone.error["code"]) == (404, "model_not_found")
    assert "does not list `deepseek-flash`" in gone.error["message"]
    assert flow.get("/v1/models/deepseek/deepseek-v9").json == listed["deepseek/deepseek-v9"]
    asked = [request for request in flow.upstream.requests if request.path == "/v1/models"]
    assert len(asked) == 1, "it is remembered"
    assert asked[0].headers["authorization"] == "Bearer sk-upstream-secret"


def test_what_the_user_names_is_shown_although_its_server_does_not_list_it(vendor: Vendor) -> None:
    names = '[models.aliases]\n"mine" = "deepseek/deepseek-old"\n"new" = "deepseek/deepseek-v9"\n'
    flow = vendor(reply({"data": LISTED}), extra=names)
    listed = shown(flow)
    assert listed["mine"]["isthmus"]["served"] is False
    assert "served" not in listed["new"]["isthmus"]
    assert listed["new"]["isthmus"]["source"] == "configuration"
    assert listed["new"]["shutdown_date"] == "2027-03-01"


@pytest.mark.parametrize("answer", [error(500), error(404), reply({"nothing": 1}), reply(b"<html>")])
def test_where_a_server_cannot_be_asked_its_file_is_believed_and_that_is_marked(vendor: Vendor, answer: Step) -> None:
    flow = vendor(answer)
    listed = shown(flow)
    assert {"deepseek/deepseek-v4-pro", "deepseek/deepseek-flash"} <= set(listed)
    assert {model["isthmus"]["source"] for model in listed.values()} == {"file"}
    assert not any("heard_at" in model["isthmus"] for model in listed.values())


def test_nobody_waits_for_a_server_that_failed(vendor: Vendor) -> None:
    flow = vendor(error(500))
    for _ in range(3):
        assert shown(flow)
    assert len([request for request in flow.upstream.requests if request.path == "/v1/models"]) == 1


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
