"""LangChain's ChatOpenAI, through either API, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tiktoken
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from openai import BadRequestError, DefaultAsyncHttpxClient, DefaultHttpxClient, RateLimitError
from pydantic import BaseModel, SecretStr

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import chat, error, reply

pytestmark = pytest.mark.real

APIS = pytest.mark.parametrize("responses_api", [True, False], ids=["responses", "chat"])


class Number(BaseModel):
    """A number."""

    n: int
    word: str


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@pytest.fixture
def model(flow: Flow) -> Iterator[Callable[..., ChatOpenAI]]:
    """ChatOpenAI with a connection pool of this test's own: LangChain would share one for the whole process."""
    with DefaultHttpxClient() as pool:

        def make(responses_api: bool, name: str = PLAIN, **options: Any) -> ChatOpenAI:
            return ChatOpenAI(
                model=name,
                base_url=f"{flow.server.url}/v1",
                api_key=SecretStr("any"),
                use_responses_api=responses_api,
                max_retries=0,
                **{"http_client": pool, **options},
            )

        yield make


@APIS
def test_invoke(flow: Flow, model: Any, responses_api: bool) -> None:
    flow.script(chat("Hello"))
    message = model(responses_api, temperature=0.3).invoke([SystemMessage("Be kind."), HumanMessage("hi")])
    assert message.text == "Hello"
    assert message.usage_metadata is not None
    assert message.usage_metadata["total_tokens"] == 15
    [sent] = flow.sent
    assert sent["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    assert sent["temperature"] == 0.3


@APIS
def test_stream(flow: Flow, model: Any, responses_api: bool) -> None:
    flow.script(chat("Hello there", pieces=4))
    whole: AIMessageChunk | None = None
    texts = []
    for chunk in model(responses_api, stream_usage=True).stream("hi"):
        assert isinstance(chunk, AIMessageChunk)
        texts.append(chunk.text)
        whole = chunk if whole is None else whole + chunk
    assert "".join(texts) == "Hello there"
    assert len([text for text in texts if text]) == 4
    assert whole is not None
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["total_tokens"] == 15


@APIS
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_tool_round_trip(flow: Flow, model: Any, responses_api: bool, streamed: bool) -> None:
    flow.script(
        chat(calls=[("call_1", "weather", {"city": "Rome"}), ("call_2", "weather", {"city": "Oslo"})]),
        chat("Sunny in both."),
    )
    bound = model(responses_api, FULL).bind_tools([weather])
    messages: list[Any] = [HumanMessage("Weather in Rome and Oslo?")]
    asked = _ask(bound, messages, streamed)
    assert [(call["name"], call["args"]) for call in asked.tool_calls] == [
        ("weather", {"city": "Rome"}),
        ("weather", {"city": "Oslo"}),
    ]
    messages.append(asked)
    messages += [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in asked.tool_calls]
    assert _ask(bound, messages, streamed).text == "Sunny in both."
    last = flow.sent[1]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in last[2:]] == ["call_1", "call_2"]
    assert [message["content"] for message in last[2:]] == ["sunny in Rome", "sunny in Oslo"]


@APIS
@pytest.mark.parametrize("name", [FULL, DEEPSEEK, PLAIN])
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(flow: Flow, model: Any, responses_api: bool, name: str, method: Any) -> None:
    said = '{"n": 1, "word": "one"}'
    flow.script(chat(said) if method == "json_schema" else chat(calls=[("call_1", "Number", said)]))
    structured = model(responses_api, name).with_structured_output(Number, method=method)
    assert structured.invoke("A number") == Number(n=1, word="one")


@APIS
def test_async(flow: Flow, model: Any, responses_api: bool) -> None:
    flow.script(chat("Hello"), chat("again"))

    async def talk() -> None:
        async with DefaultAsyncHttpxClient() as pool:
            chosen = model(responses_api, http_async_client=pool)
            assert (await chosen.ainvoke("hi")).text == "Hello"
            texts = [chunk.text async for chunk in chosen.astream("hi")]
        assert "".join(texts) == "again"

    asyncio.run(talk())


def test_reasoning_is_shown_through_the_responses_api(flow: Flow, model: Any) -> None:
    flow.script(chat("Yes.", reasoning="Let me think."))
    message = model(True, DEEPSEEK, reasoning={"effort": "high"}).invoke("Really?")
    assert message.text == "Yes."
    assert "Let me think." in str(message.content)
    assert flow.sent[0]["thinking"] == {"type": "enabled"}


def test_a_chain_by_previous_response_id(flow: Flow, model: Any) -> None:
    flow.script(chat("Two."), chat("Three."))
    chosen = model(True, use_previous_response_id=True)
    first = chosen.invoke([HumanMessage("1+1?")])
    chosen.invoke([HumanMessage("1+1?"), first, HumanMessage("+1?")])
    assert [message["content"] for message in flow.sent[1]["messages"]] == ["1+1?", "Two.", "+1?"]


@APIS
def test_an_error_is_raised_as_it_is(flow: Flow, model: Any, responses_api: bool) -> None:
    flow.script(error(429, "slow down"))
    with pytest.raises(RateLimitError):
        model(responses_api).invoke("hi")


def _ask(bound: Any, messages: list[Any], streamed: bool) -> AIMessage:
    if not streamed:
        answer: AIMessage = bound.invoke(messages)
        return answer
    whole: Any = None
    for chunk in bound.stream(messages):
        whole = chunk if whole is None else whole + chunk
    assert isinstance(whole, AIMessage)
    return whole


# ── embeddings ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def embeddings(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., OpenAIEmbeddings]]:
    """With a vocabulary of bytes in place of OpenAI's, which would have to be downloaded."""
    letters = {bytes([byte]): byte for byte in range(256)}
    vocabulary = tiktoken.Encoding("cl100k_base", pat_str="(?s:.)", mergeable_ranks=letters, special_tokens={})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", vocabulary)
    with DefaultHttpxClient() as pool:

        def make(model: str, **options: Any) -> OpenAIEmbeddings:
            address = f"{flow.server.url}/v1"
            key = SecretStr("any")
            return OpenAIEmbeddings(
                model=model, base_url=address, api_key=key, max_retries=0, http_client=pool, **options
            )

        yield make


def _vectors(request: Any) -> Any:
    """As many as texts."""
    data = [{"index": index, "embedding": [3.0, 4.0]} for index in range(len(request.json["input"]))]
    return reply({"data": data, "usage": {"prompt_tokens": 2, "total_tokens": 2}})


def test_embeddings_as_tokens_where_they_are_understood(
    flow: Flow, embeddings: Callable[..., OpenAIEmbeddings]
) -> None:
    """What it sends unless it is told otherwise."""
    flow.script(_vectors)
    made = embeddings("full/text-embedding-3-small").embed_documents(["hi", "you"])
    assert [[round(number, 3) for number in vector] for vector in made] == [[3.0, 4.0], [3.0, 4.0]]
    assert flow.sent[0]["input"] == [[104, 105], [121, 111, 117]]
    assert flow.sent[0]["encoding_format"] == "base64"


def test_embeddings_as_texts_everywhere_else(flow: Flow, embeddings: Callable[..., OpenAIEmbeddings]) -> None:
    with pytest.raises(BadRequestError, match="check_embedding_ctx_length=False"):
        embeddings("plain/bge").embed_query("hi")
    flow.script(_vectors)
    assert len(embeddings("plain/bge", check_embedding_ctx_length=False).embed_query("hi")) == 2
    assert flow.sent == [{"model": "bge", "input": ["hi"]}]
