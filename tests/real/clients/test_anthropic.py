"""The official SDKs of Anthropic on three dialects: create, stream, tools, thinking, counts, errors. Codex as a backend
is asked the same in `tests/real/codex_backend/test_anthropic_sdk.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import CUT, chat, chat_chunks, error, reply, stream
from node_scripts import run_node
from speaking_messages import called, claude, claude_error, events, named_sse, said, thought
from speaking_responses import native, native_events, native_items
from strict_anthropic import strictly

pytestmark = pytest.mark.real

Json = dict[str, Any]
PROVIDERS = {
    "anthropic": "uses = 'anthropic'",
    "deepseek": "uses = 'deepseek'\ndialect = 'chat'",
    "openai": "uses = 'openai'",
}
CHAT, NATIVE, CLAUDE = "deepseek/deepseek-v4-pro", "openai/gpt-5.6", "anthropic/claude-opus-5-5"
HI: Any = [{"role": "user", "content": "hi"}]
LOOK: Any = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
every = pytest.mark.parametrize("model", [CHAT, NATIVE, CLAUDE], ids=["chat", "responses", "messages"])


def says(model: str, text: str | None = None, *, reasoning: str | None = None, calls: Any = ()) -> Any:
    if model != CLAUDE:
        return (chat if model == CHAT else native)(text, reasoning=reasoning, calls=calls)
    blocks = ([thought(reasoning)] if reasoning else []) + ([said(text)] if text else [])
    return strictly(claude(*blocks, *(called(id, name, **given) for id, name, given in calls)))


@pytest.fixture(scope="module")
def _claude_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("sdk"), PROVIDERS) as house:
        yield house


@pytest.fixture
def flow(_claude_house: Flow) -> Iterator[Flow]:
    with lent(_claude_house) as mine:
        yield mine


@pytest.fixture
def client(flow: Flow) -> Iterator[Anthropic]:
    with Anthropic(base_url=flow.server.url, api_key="any", max_retries=0) as client:
        yield client


@every
def test_create(flow: Flow, client: Anthropic, model: str) -> None:
    flow.script(says(model, "Hello"))
    message = client.messages.create(model=model, max_tokens=100, system="Be kind.", messages=HI)
    assert [block.type for block in message.content] == ["text"]
    assert (message.model, message.stop_reason) == (model, "end_turn")
    assert message.usage.input_tokens > 0
    assert message._request_id is not None
    assert message._request_id.startswith("req_")


@every
def test_the_stream_helper_accumulates_everything(flow: Flow, client: Anthropic, model: str) -> None:
    flow.script(says(model, "Let me look.", reasoning="Hm.", calls=[("c1", "look", {"at": "x"}), ("c2", "look", {})]))
    thinking: Any = {"type": "adaptive", "display": "summarized"}
    with client.messages.stream(model=model, max_tokens=4000, messages=HI, tools=[LOOK], thinking=thinking) as helper:
        kinds = [event.type for event in helper]
        message = helper.get_final_message()
    assert kinds.count("content_block_stop") == 4
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.input for block in message.content if block.type == "tool_use"] == [{"at": "x"}, {}]
    assert message.content[0].type == "thinking"
    assert message.content[0].signature
    assert message.stop_reason == "tool_use"
    assert message.to_dict()["isthmus"]["model"] == model.partition("/")[2]  # type: ignore[index]


@every
def test_a_loop_of_tools_with_thinking(flow: Flow, client: Anthropic, model: str) -> None:
    messages: Any = [*HI]
    for number in range(3):
        flow.script(says(model, reasoning=f"Thought {number}.", calls=[(f"c{number}", "look", {})]))
        message = client.messages.create(
            model=model, max_tokens=4000, messages=messages, tools=[LOOK], thinking={"type": "adaptive"}
        )
        call = message.content[-1]
        assert call.type == "tool_use"
        messages.append({"role": "assistant", "content": message.content})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": f"result {number}"}
        messages.append({"role": "user", "content": [result]})
    flow.script(says(model, "Done."))
    last = client.messages.create(
        model=model, max_tokens=4000, messages=messages, tools=[LOOK], thinking={"type": "adaptive"}
    )
    assert last.content[-1].type == "text"
    assert all(f"result {number}" in repr(flow.sent[-1]) for number in range(3))


def test_the_asynchronous_client(flow: Flow) -> None:
    async def ask() -> str:
        async with (
            AsyncAnthropic(base_url=flow.server.url, api_key="any", max_retries=0) as client,
            client.messages.stream(model=CHAT, max_tokens=9, messages=HI) as helper,
        ):
            return "".join([text async for text in helper.text_stream])

    flow.script(chat("Hello there"))
    assert asyncio.run(ask()) == "Hello there"


@every
def test_count_tokens_and_models(flow: Flow, client: Anthropic, model: str) -> None:
    bare = client.messages.count_tokens(model=model, messages=HI).input_tokens
    more = client.messages.count_tokens(model=model, messages=HI, tools=[LOOK], system="word " * 50).input_tokens
    assert 0 < bare < more
    assert flow.sent == []
    ids = [found.id for found in client.models.list(limit=3)]  # pages by itself
    assert model in ids
    assert (f"claude-{model}" in ids) == (model != CLAUDE)
    assert client.models.retrieve(model).id == model


@every
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (529, "overloaded_error", anthropic.InternalServerError),
    ],
)
def test_errors_are_those_of_the_sdk(
    flow: Flow, client: Anthropic, model: str, status: int, word: str, kind: type[Exception], streamed: bool
) -> None:
    flow.script(claude_error(status, word, "no") if model == CLAUDE else error(status, "no"))
    with pytest.raises(kind) as raised:
        client.messages.create(model=model, max_tokens=9, messages=HI, stream=streamed)
    told: Any = raised.value
    assert told.body["type"] == "error"
    assert told.request_id.startswith("req_")


def test_a_refusal_of_anthropic_itself_comes_through(flow: Flow, client: Anthropic) -> None:
    flow.script(claude_error(529, "overloaded_error", "Overloaded"))
    with pytest.raises(anthropic.InternalServerError) as raised:
        client.messages.create(model=CLAUDE, max_tokens=9, messages=HI)
    assert raised.value.status_code == 529


@every
def test_a_stream_that_breaks_off_raises(flow: Flow, client: Anthropic, model: str) -> None:
    words = "Hello there"
    native_words, claude_words = native_events(native_items(words)), events([said(words)])
    told: Any = {CHAT: chat_chunks(words), NATIVE: native_words, CLAUDE: list(named_sse(claude_words))}[model]
    flow.script(stream([*told[:4], CUT], done=False))
    with (
        pytest.raises(anthropic.APIStatusError, match=r"upstream|broke|cut|closed"),
        client.messages.stream(model=model, max_tokens=9, messages=HI) as helper,
    ):
        list(helper)


def test_the_sdk_waits_as_long_as_it_is_told(flow: Flow) -> None:
    flow.script(reply({"error": {"message": "slow"}}, status=429, headers={"retry-after": "0.05"}), chat("Hello"))
    with Anthropic(base_url=flow.server.url, api_key="any", max_retries=1) as client:
        assert client.messages.create(model=CHAT, max_tokens=9, messages=HI).content[0].type == "text"


@every
def test_the_sdk_for_typescript(flow: Flow, model: str) -> None:
    """Create, stream, a loop of tools with thinking, a count, the models, an error."""
    flow.script(
        says(model, "Hello"),
        says(model, "Let me look.", reasoning="Hm.", calls=[("c1", "look", {"at": "x"})]),
        says(model, "Done."),
        error(429, "slow") if model != CLAUDE else claude_error(429, "rate_limit_error", "slow"),
    )
    told = run_node("anthropic.mjs", flow.server.url, model)
    assert told["created"] == "Hello"
    assert told["kinds"] == ["thinking", "text", "tool_use"]
    assert told["input"] == {"at": "x"}
    assert told["answer"] == "Done."
    assert told["counted"] > 0
    assert model in told["models"]
    assert told["error"] == {"status": 429, "type": "rate_limit_error"}
