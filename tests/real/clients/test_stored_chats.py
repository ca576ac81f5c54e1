"""The official SDKs on stored chat completions, and asking again under an `Idempotency-Key`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat, reply
from isthmus.testing.replies import chat_reply
from node_scripts import run_node
from waiting import until

pytestmark = pytest.mark.real

HI: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
def client(flow: Flow) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def mark() -> str:
    """What this test's completions are found by: others use the same gateway."""
    return secrets.token_hex(8)


def test_every_call_of_the_sdk(flow: Flow, client: OpenAI, mark: str) -> None:
    stored = client.chat.completions
    flow.script(*(chat(f"answer {number}") for number in range(5)))
    made = [
        stored.create(model=PLAIN, messages=HI, store=True, metadata={"mark": mark, "n": str(number)}).id
        for number in range(5)
    ]
    assert [each.id for each in stored.list(metadata={"mark": mark}, limit=2)] == made
    assert [each.id for each in stored.list(metadata={"mark": mark}, limit=3, order="desc")] == made[::-1]
    assert [each.id for each in stored.list(metadata={"mark": mark, "n": "3"}, model="some-model")] == [made[3]]
    found = stored.retrieve(made[1])
    assert found.choices[0].message.content == "answer 1"
    changed: Any = stored.update(made[1], metadata={"mark": mark, "n": "one"})
    assert changed.metadata == {"mark": mark, "n": "one"}
    assert [each.id for each in stored.list(metadata={"mark": mark, "n": "one"})] == [made[1]]
    assert [(each.id, each.content) for each in stored.messages.list(made[1])] == [(f"{made[1]}-0", "hi")]
    assert stored.delete(made[1]).deleted
    with pytest.raises(openai.NotFoundError):
        stored.retrieve(made[1])
    assert [each.id for each in stored.list(metadata={"mark": mark})] == [made[0], *made[2:]]


def test_the_sdk_in_javascript(flow: Flow, mark: str) -> None:
    flow.script(*(chat(f"answer {number}") for number in range(3)))
    told = run_node("stored_chats.mjs", flow.server.url, PLAIN, mark)
    assert told["listed"] == told["made"]
    assert told["found"] == "answer 1"
    assert told["messages"] == [["hi", None]]
    assert told["changed"] == {"mark": mark, "n": "one"}
    assert told["deleted"] is True
    assert told["missing"] == 404


def test_under_one_key_the_model_is_asked_once(flow: Flow, client: OpenAI, mark: str) -> None:
    gate = Gate()
    flow.script(reply(chat_reply("slow"), after=gate))
    headers = {"Idempotency-Key": mark}
    background = client.responses.create(model=PLAIN, input="hi", background=True, extra_headers=headers)
    again = client.responses.create(model=PLAIN, input="hi", background=True, extra_headers=headers)
    assert again.id == background.id
    with pytest.raises(openai.ConflictError, match="another request"):
        client.responses.create(model=PLAIN, input="other", background=True, extra_headers=headers)
    gate.open()
    until(lambda: client.responses.retrieve(background.id).status == "completed", "it does not end")
    assert len(flow.sent) == 1
