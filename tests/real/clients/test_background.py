"""Background responses and webhooks as OpenAI's own SDKs use them, in Python and in JavaScript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from flowing import PLAIN, Flow, running_flow
from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, reply, stream
from node_scripts import run_node
from waiting import until

pytestmark = pytest.mark.real

SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="


@pytest.fixture
def client(flow: Flow) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{flow.server.url}/v1", api_key="any", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("after", [0, 1, 4, "last but one", "last"])
def test_python_reads_on_from_any_number(flow: Flow, client: openai.OpenAI, after: Any) -> None:
    flow.script(stream(chat_chunks("one two three", pieces=3)))
    told = list(client.responses.create(model=PLAIN, input="x", background=True, stream=True))
    number = {"last but one": len(told) - 2, "last": len(told) - 1}.get(after, after)
    id = told[0].response.id  # type: ignore[union-attr]
    rest = client.responses.retrieve(id, stream=True, starting_after=number)
    assert [event.to_dict() for event in rest] == [event.to_dict() for event in told[number + 1 :]]


def test_pythons_helper_reads_on(flow: Flow, client: openai.OpenAI) -> None:
    gate = Gate()
    chunks = chat_chunks("one two three", pieces=3)
    flow.script(stream([*chunks[:2], gate, *chunks[2:]]))
    numbers: list[int] = []
    with client.responses.stream(model=PLAIN, input="x", background=True) as left:
        for event in left:
            numbers.append(event.sequence_number)
            if event.type == "response.created":
                id = event.response.id
            if event.type == "response.output_text.delta":
                break
    gate.open()
    with client.responses.stream(response_id=id, starting_after=numbers[-1]) as again:
        numbers += [event.sequence_number for event in again]
        assert again.get_final_response().output_text == "one two three"
    assert numbers == list(range(len(numbers)))


def test_node_reads_on_with_its_helper_and_from_a_number(flow: Flow) -> None:
    flow.script(stream(chat_chunks("one two three", pieces=3)))
    told = run_node("background.mjs", flow.server.url, PLAIN)
    assert told["text"] == "one two three"
    assert told["numbers"] == list(range(len(told["numbers"])))
    assert told["rest"] == told["numbers"][3:]
    assert (told["status"], told["cancelled"]) == ("completed", "completed")


def test_node_and_python_unwrap_what_a_receiver_gets(tmp_path: Path) -> None:
    with ScriptedUpstream.running([reply({})]) as receiver:
        hook = (
            f'[webhooks]\nprivate_hosts = ["127.0.0.1:{receiver.port}"]\n'
            f'[webhooks.endpoints.hook]\nurl = "{receiver.url}/"\nsecret = "{SECRET}"\n'
        )
        with running_flow(tmp_path, extra=hook) as flow:
            flow.script(chat("Done"))
            id = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", "background": True}).json["id"]
            request = receiver.wait_received()
            until(lambda: flow.rows()["outbox"] == 0)
    headers = {name: value for name, value in request.headers.items() if name.startswith("webhook-")}
    event = openai.OpenAI(api_key="any", webhook_secret=SECRET).webhooks.unwrap(request.body, headers)
    assert (event.type, event.data.id) == ("response.completed", id)
    told = run_node("webhooks.mjs", json.dumps({"body": request.body.decode(), "headers": headers, "secret": SECRET}))
    assert told["event"] == json.loads(request.body)
    assert told["forged"] == "InvalidWebhookSignatureError"
