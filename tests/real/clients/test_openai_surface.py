"""The official SDKs, in Python and in JavaScript, on what stands beside responses: models, token counts, embeddings,
and what they make of endpoints that are not served."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import chat, chat_chunks, error, reply, stream
from isthmus.testing.script import CUT
from node_scripts import run_node

pytestmark = pytest.mark.real

EMBEDS = "full/text-embedding-3-small"
VECTORS = [[0.25, -1.5, 3.0], [1.0, 0.0, -0.125]]
LIMITS = {"x-ratelimit-remaining-requests": "4999", "x-ratelimit-reset-requests": "12ms"}


def vectors() -> Any:
    data = [{"index": index, "embedding": vector} for index, vector in enumerate(VECTORS)]
    return reply({"data": data, "usage": {"prompt_tokens": 4, "total_tokens": 4}}, headers=LIMITS)


@pytest.fixture
def client(flow: Flow) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_models_are_listed_and_fetched(client: OpenAI) -> None:
    listed = {model.id: model for model in client.models.list()}
    assert {DEEPSEEK, "gpt-alias", EMBEDS} <= set(listed)
    for name in (DEEPSEEK, "gpt-alias", EMBEDS, "any-bare-name"):
        assert client.models.retrieve(name).object == "model"
    assert listed[DEEPSEEK].shutdown_date is None


def test_tokens_are_counted(client: OpenAI) -> None:
    counted = client.responses.input_tokens.count(model=PLAIN, input="How many are these?")
    assert counted.object == "response.input_tokens"
    assert 5 <= counted.input_tokens <= 200
    assert client.responses.input_tokens.count().input_tokens > 0


@pytest.mark.parametrize("model", [EMBEDS, "plain/bge"])
@pytest.mark.parametrize("packing", ["default", "float", "base64"])
def test_embeddings_in_every_packing(flow: Flow, client: OpenAI, model: str, packing: Any) -> None:
    """Unasked, this SDK asks for base64 and unpacks it itself."""
    flow.script(vectors())
    options = {} if packing == "default" else {"encoding_format": packing}
    made = client.embeddings.create(model=model, input=["one", "two"], **options)
    found: list[Any] = [each.embedding for each in made.data]
    if packing == "base64":
        found = [list(struct.unpack("<3f", base64.b64decode(each))) for each in found]
    assert found == VECTORS
    assert made.usage.prompt_tokens == 4


def test_the_head_is_read_as_that_of_openai(flow: Flow, client: OpenAI) -> None:
    flow.script(vectors())
    raw = client.embeddings.with_raw_response.create(
        model=EMBEDS, input=["one", "two"], extra_headers={"X-Client-Request-Id": "mine"}
    )
    assert raw.request_id == raw.headers["x-request-id"]
    assert raw.headers["x-client-request-id"] == "mine"
    assert raw.headers["x-ratelimit-remaining-requests"] == "4999"
    assert int(raw.headers["openai-processing-ms"]) >= 0


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.files.list(),
        lambda client: client.files.create(file=b"x", purpose="assistants"),
        lambda client: client.vector_stores.create(),
        lambda client: client.moderations.create(input="x"),
        lambda client: client.audio.speech.create(model="m", voice="alloy", input="x"),
        lambda client: client.completions.create(model="m", prompt="x"),
        lambda client: client.batches.list(),
        lambda client: client.fine_tuning.jobs.list(),
        lambda client: client.containers.list(),
        lambda client: client.evals.list(),
    ],
)
def test_what_is_not_served_is_not_found_with_words(client: OpenAI, call: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="not served here; ") as error:
        call(client)
    assert error.value.code == "not_served"


def test_what_has_no_embeddings_is_a_bad_request(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="has no embeddings"):
        client.embeddings.create(model=DEEPSEEK, input="x")


def test_the_sdk_asks_again_before_the_model_spoke_and_not_after(flow: Flow) -> None:
    body: Any = {"model": FULL, "messages": [{"role": "user", "content": "hi"}]}
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=1) as client:
        flow.script(error(500), chat("at last"))
        assert client.chat.completions.create(**body).choices[0].message.content == "at last"
        flow.script(stream([*chat_chunks("half of it")[:2], CUT], done=False))
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(**body)
    assert len(flow.sent) == 3


def test_node_on_the_same(flow: Flow) -> None:
    flow.script(vectors(), vectors(), vectors())
    told = run_node("surface.mjs", flow.server.url, EMBEDS, DEEPSEEK)
    assert DEEPSEEK in told["models"]
    assert told["model"] == EMBEDS
    assert told["tokens"] > 0
    assert told["default"] == told["float"] == VECTORS
    assert [list(struct.unpack("<3f", base64.b64decode(each))) for each in told["base64"]] == VECTORS
    assert told["refused"] == {"files": [404, "not_served"], "moderations": [404, "not_served"]}
    assert told["without"] == [400, "embeddings_not_supported"]
    assert told["request_id"].startswith("req_")
