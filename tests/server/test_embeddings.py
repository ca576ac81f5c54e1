"""`/v1/embeddings`, from the client's bytes to the provider's and back."""

from __future__ import annotations

import base64
import http.client
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowing import Flow
from flowing_providers import provider_flow
from isthmus.testing import Gate, ScriptedUpstream, error, reply
from isthmus.testing.script import Answer, html_error
from serving import running_gateway_server
from talking import Talk
from waiting import until

FULL = "full/text-embedding-3-small"
PLAIN = "plain/bge"
ZHIPU = "zhipu/embedding-3"
VECTORS = [[0.25, -1.5], [3.0, 0.125]]
LIMITS = {
    "x-ratelimit-limit-requests": "5000",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-requests": "6m0s",
}


def packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def vectors(*made: Any, headers: dict[str, str] | None = None) -> Answer:
    data = [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(made)]
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    return reply({"object": "list", "data": data, "model": "upstream", "usage": usage}, headers=headers)


def test_texts_become_vectors_at_the_provider_with_its_key(flow: Flow) -> None:
    flow.script(vectors(*VECTORS))
    answer = flow.post("/v1/embeddings", {"model": FULL, "input": ["a", "b"], "dimensions": 2, "user": "ann"})
    sent = flow.wait_sent()
    assert (sent.method, sent.target) == ("POST", "/v1/embeddings")
    assert sent.headers["authorization"] == "Bearer sk-upstream-secret"
    assert sent.json == {"model": "text-embedding-3-small", "input": ["a", "b"], "dimensions": 2, "user": "ann"}
    assert answer.status == 200
    assert [each["embedding"] for each in answer.json["data"]] == VECTORS
    assert answer.json["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert answer.json["isthmus"] == {"provider": "full", "model": "text-embedding-3-small", "diagnostics": []}
    assert answer.headers["isthmus-plan"] == "ok"


@pytest.mark.parametrize(("model", "asks"), [(FULL, "base64"), (PLAIN, None)])
@pytest.mark.parametrize("comes", ["numbers", "packed"])
def test_base64_is_had_everywhere(flow: Flow, model: str, asks: str | None, comes: str) -> None:
    flow.script(vectors(*(VECTORS if comes == "numbers" else map(packed, VECTORS))))
    answer = flow.post("/v1/embeddings", {"model": model, "input": ["a", "b"], "encoding_format": "base64"})
    assert [each["embedding"] for each in answer.json["data"]] == [packed(vector) for vector in VECTORS]
    assert flow.sent[0].get("encoding_format") == asks


def test_numbers_are_had_from_who_packs_them_unasked(flow: Flow) -> None:
    flow.script(vectors(packed([0.25, -1.5])))
    answer = flow.post("/v1/embeddings", {"model": PLAIN, "input": "a"})
    assert answer.json["data"][0]["embedding"] == [0.25, -1.5]


def test_tokens_travel_as_they_are_to_who_has_their_vocabulary(flow: Flow) -> None:
    flow.script(vectors(*VECTORS))
    assert flow.post("/v1/embeddings", {"model": FULL, "input": [[1, 2], [3]]}).status == 200
    assert flow.sent[0]["input"] == [[1, 2], [3]]
    refused = flow.post("/v1/embeddings", {"model": PLAIN, "input": [[1, 2], [3]]})
    assert (refused.status, refused.error["param"]) == (400, "input")
    assert "check_embedding_ctx_length=False" in refused.error["message"]


def test_a_provider_without_embeddings_says_so_and_names_those_that_have(flow: Flow) -> None:
    answer = flow.post("/v1/embeddings", {"model": "deepseek/deepseek-v4-pro", "input": "a"})
    assert (answer.status, answer.error["code"]) == (400, "embeddings_not_supported")
    assert answer.error["param"] == "model"
    assert "provider `deepseek` has no embeddings" in answer.error["message"]
    for name in ("`full/text-embedding-3-small`", "`plain/…`", "`zhipu/embedding-3`"):
        assert name in answer.error["message"]
    assert flow.sent == []


def test_a_name_is_found_as_for_any_other_request(flow: Flow, special: Callable[..., Flow]) -> None:
    flow.script(vectors([1.0]), vectors([1.0]))
    assert flow.post("/v1/embeddings", {"model": "bge", "input": "a"}).json["isthmus"]["provider"] == "plain"
    assert flow.post("/v1/embeddings", {"input": "a"}).json["model"] == "some-model"  # the default
    aliased = flow.post("/v1/embeddings", {"model": "gpt-alias", "input": "a"})
    assert "deepseek" in aliased.error["message"]
    assert flow.post("/v1/embeddings", {"model": "nobody/x", "input": "a"}).error["code"] == "unknown_provider"


def test_what_is_left_out_is_told_and_refused_in_strict_mode(flow: Flow) -> None:
    flow.script(vectors([1.0]))
    answer = flow.post("/v1/embeddings", {"model": PLAIN, "input": "a", "user": "ann"})
    assert answer.headers["isthmus-plan"] == "ignored=1"
    assert [said["path"] for said in answer.json["isthmus"]["diagnostics"]] == ["user"]
    strict = flow.request(
        "POST", "/v1/embeddings", {"model": PLAIN, "input": "a", "user": "ann"}, {"Isthmus-Strict": "true"}
    )
    assert (strict.status, strict.error["param"]) == (400, "user")


@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        (error(401), 403, "upstream_unauthorized"),
        (error(404, "no such model"), 404, "model_not_found"),
        (error(400, "input too odd"), 400, "invalid_prompt"),
        (error(429, retry_after=7), 429, "rate_limit_exceeded"),
        (error(500), 502, "server_error"),
        (reply({"data": []}), 502, "server_error"),
        (reply({"data": [{"embedding": ["x"]}]}), 502, "server_error"),
        (vectors([1.0], [2.0]), 502, "server_error"),
        (html_error(200), 502, "server_error"),
    ],
)
def test_a_broken_provider_is_a_typed_error_with_its_name(flow: Flow, step: Any, status: int, code: str) -> None:
    flow.script(step)
    answer = flow.post("/v1/embeddings", {"model": PLAIN, "input": "a"})
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.error["message"].startswith("provider `plain`")
    assert answer.headers.get("retry-after") == ("7" if status == 429 else None)
    assert "sk-upstream-secret" not in answer.body.decode()


def test_a_length_that_was_not_kept_is_a_failure_and_no_vector(flow: Flow) -> None:
    flow.script(vectors([1.0, 2.0, 3.0]))
    answer = flow.post("/v1/embeddings", {"model": PLAIN, "input": "a", "dimensions": 2})
    assert answer.status == 502
    assert "not of 2 numbers, as was asked, but of 3" in answer.error["message"]


def test_rate_limits_of_the_provider_come_along(flow: Flow) -> None:
    flow.script(vectors([1.0], headers={**LIMITS, "openai-model": "x", "openai-organization": "o"}))
    answer = flow.post("/v1/embeddings", {"model": FULL, "input": "a"})
    told = {name: value for name, value in answer.headers.items() if name.startswith(("x-rate", "openai-"))}
    assert int(told.pop("openai-processing-ms")) >= 0
    assert told == LIMITS


def test_another_key_is_asked_as_for_every_request() -> None:
    with ScriptedUpstream.running([error(401), vectors([1.0], headers=LIMITS)]) as upstream:
        toml = f"""
[models]
demo = false
[providers.mine]
uses = "openai-compatible"
base_url = "{upstream.base_url}"
api_keys = ["sk-one", "sk-two"]
[server]
port = 0
[store]
url = "memory:"
"""
        with running_gateway_server(toml) as server:
            answer = Talk(server.url).post("/v1/embeddings", {"model": "mine/m", "input": "a"})
        shown = [request.headers["authorization"] for request in upstream.requests]
    assert sorted(shown) == ["Bearer sk-one", "Bearer sk-two"]
    assert answer.status == 200
    assert LIMITS.items() <= answer.headers.items()


def test_what_fails_in_passing_is_tried_again(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", provider="retries = 1\n")
    flow.script(error(503, retry_after=0), vectors([1.0]))
    assert flow.post("/v1/embeddings", {"model": PLAIN, "input": "a"}).status == 200
    assert len(flow.sent) == 2


def test_another_dialect_beside_it_shows_the_key_as_the_endpoint_wants_it(tmp_path: Path) -> None:
    own = "uses = 'zhipu'\ndialect = 'messages'\n"
    with provider_flow(tmp_path, {"mine": own}) as flow:
        flow.script(vectors([1.0]))
        assert flow.post("/v1/embeddings", {"model": "mine/embedding-3", "input": "a"}).status == 200
        (sent,) = flow.upstream.requests
        assert sent.target.endswith("/embeddings")
        assert sent.headers["authorization"] == "Bearer sk-upstream-secret"


def test_a_client_that_leaves_ends_the_request_upstream(flow: Flow) -> None:
    gate = Gate()
    flow.script(reply({"data": []}, after=gate))
    address = urlsplit(flow.server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("POST", "/v1/embeddings", json.dumps({"model": PLAIN, "input": "a"}))
    asked = flow.wait_sent()
    connection.close()
    until(lambda: asked.left_early, "the provider is still asked")
    until(lambda: not len(flow.server.gateway.runs), "it is still waited for")
    gate.open()
