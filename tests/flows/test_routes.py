"""The surface: which paths there are, which methods they take, and the small ones that answer by themselves."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus import __version__
from isthmus.bridge.capabilities import EFFORTS
from isthmus.testing import chat

Json = dict[str, Any]

ROUTES = {
    "/v1/responses": "POST",
    "/v1/responses/input_tokens": "POST",
    "/v1/responses/resp_1": "DELETE, GET",
    "/v1/responses/resp_1/cancel": "POST",
    "/v1/responses/resp_1/input_items": "GET",
    "/v1/chat/completions": "POST",
    "/v1/models": "GET",
    "/v1/models/plain/x": "GET",
    "/health": "GET",
    "/ready": "GET",
    "/openapi.json": "GET",
}


@pytest.mark.parametrize(("path", "allowed"), ROUTES.items())
def test_another_method_is_a_405_that_lists_those_allowed(flow: Flow, path: str, allowed: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        if method in allowed:
            continue
        answer = flow.request(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert answer.error["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/response", "/v1/responses/a/b", "/v1/responses/a/cancel/b", "/v1/chat", "/models"]
)
def test_another_path_is_a_404_in_the_usual_shape(flow: Flow, path: str) -> None:
    answer = flow.get(path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_a_path_may_end_with_a_slash(flow: Flow) -> None:
    flow.script(chat("ok"))
    assert flow.post("/v1/responses/", {"model": PLAIN, "input": "hi"}).status == 200


def test_head_has_the_headers_of_get_and_no_body(flow: Flow) -> None:
    answer = flow.request("HEAD", "/health")
    assert (answer.status, answer.body) == (200, b"")


def test_health_says_that_the_process_answers(flow: Flow) -> None:
    assert flow.get("/health").json == {"status": "ok", "version": __version__}


def test_ready_says_what_it_serves_and_from_where(flow: Flow) -> None:
    body = flow.get("/ready").json
    assert body["status"] == "ready"
    assert set(body["providers"]) == {"full", "deepseek", "plain", "zhipu"}
    assert body["running"] == 0
    assert isinstance(body["stored"], int)


def test_the_root_says_what_this_is(flow: Flow) -> None:
    body = flow.get("/").json
    assert (body["name"], body["default_model"]) == ("isthmus", PLAIN)


def test_a_websocket_upgrade_is_a_426_at_once(flow: Flow) -> None:
    """Only this answer makes Codex go on over HTTP without trying again for a while."""
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    answer = flow.request("GET", "/v1/responses", headers=headers)
    assert (answer.status, answer.error["code"]) == (426, "upgrade_required")


# ── models ─────────────────────────────────────────────────────────────────────────────────────────────


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


# ── OpenAPI ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_openapi_document_describes_every_route(flow: Flow) -> None:
    document = flow.get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    described = {
        re.sub(r"\{[^}]*\}", "*", path): {method.upper() for method in item if method != "parameters"}
        for path, item in document["paths"].items()
    }
    for path, allowed in ROUTES.items():
        if path != "/openapi.json":
            generic = re.sub(r"(resp_1|plain/x)", "*", path)
            assert described[generic] == set(allowed.split(", ")), path


def test_the_openapi_document_is_whole(flow: Flow) -> None:
    """Every reference leads somewhere, every schema is one, every path parameter is declared, every id is unique."""
    document = flow.get("/openapi.json").json
    for reference in re.findall(r'"\$ref":\s*"([^"]*)"', json.dumps(document)):
        node: Any = document
        assert reference.startswith("#/")
        for step in reference[2:].split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
    for name, schema in document["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    ids = []
    for path, item in document["paths"].items():
        declared = {parameter["name"] for parameter in item.get("parameters", ()) if parameter["in"] == "path"}
        assert declared == set(re.findall(r"\{([^}]*)\}", path))
        for method, operation in item.items():
            if method == "parameters":
                continue
            ids.append(operation["operationId"])
            assert operation["responses"]
            assert ("requestBody" in operation) <= (method == "post")
    assert len(set(ids)) == len(ids)


def test_the_openapi_schema_of_a_request_accepts_what_the_gateway_accepts(flow: Flow) -> None:
    document = flow.get("/openapi.json").json
    schema = document["paths"]["/v1/responses"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
    good: Json = {"model": PLAIN, "input": [{"role": "user", "content": "hi"}], "tools": [], "temperature": 1}
    assert validator.is_valid(good)
    assert not validator.is_valid({"input": 3})
    flow.script(chat("ok"))
    assert flow.post("/v1/responses", good).status == 200


# ── input_tokens ───────────────────────────────────────────────────────────────────────────────────────


def test_input_tokens_are_estimated_without_asking_anybody(flow: Flow) -> None:
    short = flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": "hi"})
    long = flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": "word " * 1000})
    assert short.status == long.status == 200
    assert short.json["object"] == "response.input_tokens"
    assert 0 < short.json["input_tokens"] < 50 < 1000 < long.json["input_tokens"] < 2000
    assert short.json["isthmus"] == {"estimated": True}
    assert flow.sent == []


def test_input_tokens_count_the_whole_chain(flow: Flow) -> None:
    flow.script(chat("answer " * 500))
    first = flow.create({"model": PLAIN, "input": "question"})
    body = {"model": PLAIN, "input": "and?", "previous_response_id": first["id"]}
    assert flow.post("/v1/responses/input_tokens", body).json["input_tokens"] > 800


def test_input_tokens_of_a_bad_request_are_a_400(flow: Flow) -> None:
    answer = flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": 4})
    assert (answer.status, answer.error["param"]) == (400, "input")
