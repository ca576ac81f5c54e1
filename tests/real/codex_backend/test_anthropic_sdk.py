"""Anthropic's SDK against a provider that uses Codex: nothing is special."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from real.codex_backend.house import MODEL, House
from real.codex_backend.rig import calls, outputs_in, real, says

anthropic = pytest.importorskip("anthropic")
pytestmark = real

LOOK: Any = {"name": "get_tide", "input_schema": {"type": "object", "properties": {"harbour": {"type": "string"}}}}
HI: Any = [{"role": "user", "content": "When is high water in Brest?"}]


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
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "high water at 14:10"}
    turns = [*HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    last = client.messages.create(model=MODEL, max_tokens=100, messages=turns, tools=[LOOK])
    assert last.content[-1].text == "At 14:10."
    assert outputs_in(house.sent[1]) == [("call_1", "high water at 14:10")]
