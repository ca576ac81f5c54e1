"""Formats on the real server: kept by its grammar where it has one, by the gateway where it has none."""

from __future__ import annotations

import json

import pytest

from real.models.rig import ASKS_COLOUR, ASKS_WEATHER, CHAT, NATIVE, SCHEMA, WEATHER, Rig, codes_of, real
from talking import message_text

pytestmark = real


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_schema_is_kept_by_the_server(rig: Rig, streamed: bool) -> None:
    body = {"model": CHAT, "input": "Say hello.", "text": {"format": SCHEMA}}
    response = rig.stream(body, {"Isthmus-Strict": "true"})[1] if streamed else rig.create(body)
    assert response["status"] == "completed"
    assert json.loads(message_text(response)) == {"colour": "ultraviolet"}
    assert codes_of(response) == []


def test_a_schema_on_the_native_endpoint_is_told_in_words_and_checked(rig: Rig) -> None:
    body = {"model": NATIVE, "input": "Say hello.", "text": {"format": SCHEMA}}
    reply = rig.post("/v1/responses", body)
    assert reply.status == 200, reply.body
    response = reply.json
    assert "bridge.param.degraded" in codes_of(response, "text.format")
    if response["status"] == "completed":
        assert json.loads(message_text(response)) == {"colour": "ultraviolet"}
    elif response["status"] == "failed":
        assert "bridge.response.invalid_output_format" in codes_of(response)
    assert rig.post("/v1/responses", body, {"Isthmus-Strict": "true"}).status == 400


def test_plain_json_needs_no_words_of_ours(rig: Rig) -> None:
    body = {"model": CHAT, "input": ASKS_COLOUR, "text": {"format": {"type": "json_object"}}}
    response = rig.create(body)
    assert message_text(response).lstrip().startswith("{")
    # The grammar binds, but a tiny model need not find the end of its object.
    assert set(codes_of(response)) <= {"bridge.response.invalid_output_format"}
    asked = {"model": "m", "messages": [{"role": "user", "content": ASKS_COLOUR}], "max_tokens": 1}
    alone = rig.ask_server("/v1/chat/completions", {**asked, "response_format": {"type": "json_object"}})
    assert response["usage"]["input_tokens"] == alone["usage"]["prompt_tokens"]


def test_a_schema_beside_tools_is_told_in_words_so_that_tools_can_be_called(rig: Rig) -> None:
    body = {"model": CHAT, "input": ASKS_WEATHER, "tools": [WEATHER], "text": {"format": SCHEMA}}
    response = rig.create(body)
    assert "bridge.param.degraded" in codes_of(response, "text.format")
    assert any(item["type"] == "function_call" for item in response["output"])
