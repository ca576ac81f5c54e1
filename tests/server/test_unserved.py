"""What is not served is told so, in OpenAI's shape, with what to do instead."""

from __future__ import annotations

import re

import pytest

from flowing import Flow
from isthmus.server.app import create_app
from isthmus.server.callers import PAGE
from isthmus.server.openapi import build_document
from isthmus.server.unserved import UNSERVED, Unserved, find_unserved

WANTED = (
    *("/v1/files", "/v1/vector_stores", "/v1/containers", "/v1/moderations", "/v1/audio/speech", "/v1/uploads"),
    *("/v1/images/variations", "/v1/completions", "/v1/realtime", "/v1/assistants", "/v1/threads/t_1/runs"),
    *("/v1/batches", "/v1/fine_tuning/jobs", "/v1/evals/e_1"),
)


@pytest.mark.parametrize("row", UNSERVED, ids=lambda row: row.path)
def test_every_row_is_a_404_that_says_where_to_look(flow: Flow, row: Unserved) -> None:
    if any(path == row.path or path.startswith(f"{row.path}/") for path in build_document()["paths"]):
        pytest.fail(f"`{row.path}` is served by now: take its row away")
    for method in ("GET", "POST", "DELETE"):
        for path in (row.path, f"{row.path}/some_id/content"):
            answer = flow.request(method, path, {"model": "m"} if method == "POST" else None)
            assert (answer.status, answer.error["code"]) == (404, "not_served")
            assert answer.error["type"] == "invalid_request_error"
            assert answer.error["message"].startswith(f"{row.name}: not served here; ")
            assert answer.headers["x-should-retry"] == "false"
    assert flow.sent == []


@pytest.mark.parametrize("path", WANTED)
def test_no_endpoint_of_openais_is_forgotten(path: str) -> None:
    assert find_unserved(path) is not None


def test_addresses_in_the_words_are_whole(flow: Flow) -> None:
    address = flow.server.url.replace("http://", "ws://")
    assert f"open a WebSocket at `{address}/v1/responses`" in flow.get("/v1/realtime").error["message"]
    assert f"`{flow.server.url}/openapi.json`" in flow.get("/v1/realtime").error["message"]
    assert f"`{flow.server.url}/openapi.json`" in flow.get("/v1/files").error["message"]


@pytest.mark.parametrize("path", ["/files", "/v1/v1/files", "//v1/files/"])
def test_a_base_url_that_is_nearly_right_is_told_the_same(flow: Flow, path: str) -> None:
    assert flow.get(path).error["code"] == "not_served"


def test_names_that_only_begin_alike_are_not_meant() -> None:
    assert find_unserved("/v1/filesystem") is None
    assert find_unserved("/v1/responses") is None


def test_more_than_one_answer_is_a_400(flow: Flow) -> None:
    chat = {"model": "plain/m", "messages": [{"role": "user", "content": "hi"}], "n": 2}
    for path, body in (("/v1/chat/completions", chat), ("/v1/responses", {"model": "plain/m", "input": "hi", "n": 2})):
        answer = flow.post(path, body)
        assert (answer.status, answer.error["param"]) == (400, "n")
        assert "several times" in answer.error["message"]


def test_every_route_stands_in_the_document_that_the_page_is_made_from(flow: Flow) -> None:
    routes = create_app(flow.server.gateway).routes
    api = {path: methods for path, methods in routes.items() if path != PAGE and not path.startswith(f"{PAGE}/")}
    found = {re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", path): {*methods} for path, methods in api.items()}
    described = {
        path: {method.upper() for method in item if method != "parameters"}
        for path, item in build_document()["paths"].items()
    }
    assert described == found
