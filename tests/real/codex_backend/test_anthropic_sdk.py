"""Anthropic's SDKs against a provider that uses Codex: nothing is special."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from isthmus.testing import CUT, error, stream
from node_scripts import run_node
from real.codex_backend.house import MODEL, House
from real.codex_backend.rig import calls, opened_message, outputs_in, real, says, text_delta

anthropic = pytest.importorskip("anthropic")
pytestmark = real

LOOK: Any = {"name": "get_tide", "input_schema": {"type": "object", "properties": {"harbour": {"type": "string"}}}}
HI: Any = [{"role": "user", "content": "When is high water in Brest?"}]
THINKS: Any = {"type": "adaptive", "display": "summarized"}


@pytest.fixture
def client(house: House) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=house.server.url, api_key="none", max_retries=0) as client:
        yield client


def test_create_and_stream(house: House, client: Any) -> None:
    house.script(says("At ", "14:10."), says("At ", "14:10."))
    message = client.messages.create(model=MODEL, max_tokens=100, system="Be brief.", messages=HI)
    assert message.content[-1].text == "At 14:10."
    with client.messages.stream(model=MODEL, max_tokens=100, messages=HI) as helper:
        assert "".join(helper.text_stream) == "At 14:10."


def test_a_tool_is_called_and_answered(house: House, client: Any) -> None:
    house.script(calls(("call_1", "get_tide", '{"harbour":"Brest"}')), says("At 14:10."))
    first = client.messages.create(model=MODEL, max_tokens=100, messages=HI, tools=[LOOK])
    call = first.content[-1]
    assert (call.type, call.input, first.stop_reason) == ("tool_use", {"harbour": "Brest"}, "tool_use")
    last = client.messages.create(model=MODEL, max_tokens=100, messages=answered(first), tools=[LOOK])
    assert last.content[-1].text == "At 14:10."
    assert outputs_in(house.sent[1]) == [("call_1", "high water at 14:10")]


def test_thinking_is_told_signed_and_taken_back(house: House, client: Any) -> None:
    house.script(calls(("call_1", "get_tide", "{}"), thought="Brest it is.", text="Let me look."), says("At 14:10."))
    asked: Any = {"model": MODEL, "max_tokens": 4000, "tools": [LOOK], "thinking": THINKS}
    with client.messages.stream(**asked, messages=HI) as helper:
        first = helper.get_final_message()
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    assert first.content[0].thinking == "Brest it is."
    assert first.content[0].signature
    last = client.messages.create(**asked, messages=answered(first))
    assert (last.content[-1].text, last.stop_reason) == ("At 14:10.", "end_turn")
    assert len(set(house.threads)) == 1
    assert [body["reasoning"]["summary"] for body in house.sent] == ["auto", "auto"]


def answered(first: Any) -> Any:
    """The conversation that follows a call, as the SDK's users write it."""
    result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "high water at 14:10"}
    return [*HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]


def test_tokens_are_counted_here_and_nobody_is_asked(house: House, client: Any) -> None:
    bare = client.messages.count_tokens(model=MODEL, messages=HI).input_tokens
    more = client.messages.count_tokens(model=MODEL, messages=HI, tools=[LOOK], system="word " * 50).input_tokens
    assert 0 < bare < more
    assert house.sent == []
    assert MODEL in [model.id for model in client.models.list(limit=5)]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (503, anthropic.InternalServerError),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_errors_are_those_of_the_sdk(
    house: House, client: Any, status: int, kind: type[Exception], streamed: bool
) -> None:
    house.script(error(status, "the real reason"))
    with pytest.raises(kind) as raised:
        client.messages.create(model=MODEL, max_tokens=9, messages=HI, stream=streamed)
    told: Any = raised.value
    assert told.body["type"] == "error"
    assert told.request_id.startswith("req_")


def test_a_stream_that_breaks_off_raises(house: House, client: Any) -> None:
    house.script(stream([*opened_message(), text_delta("At "), CUT], done=False))
    with (
        pytest.raises(anthropic.APIStatusError),
        client.messages.stream(model=MODEL, max_tokens=9, messages=HI) as helper,
    ):
        list(helper)


def test_the_sdk_for_typescript(house: House) -> None:
    """Create, stream, a loop of tools with thinking, a count, the models, an error."""
    house.script(
        says("Hello"),
        calls(("c1", "look", '{"at":"x"}'), thought="Hm.", text="Let me look."),
        says("Done."),
        error(429, "slow"),
    )
    told = run_node("anthropic.mjs", house.server.url, MODEL)
    assert told["created"] == "Hello"
    assert told["kinds"] == ["thinking", "text", "tool_use"]
    assert told["input"] == {"at": "x"}
    assert told["answer"] == "Done."
    assert told["counted"] > 0
    assert MODEL in told["models"]
    assert told["error"] == {"status": 429, "type": "rate_limit_error"}
