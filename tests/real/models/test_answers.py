"""What a client gets from the real server through either dialect: answers, thoughts, chains, limits, counts."""

from __future__ import annotations

from typing import Any

import pytest

from real.models.llama_server import WINDOW
from real.models.rig import (
    ASKS_COLOUR,
    ASKS_WEATHER,
    CHAT,
    COUNT,
    DIALECTS,
    NATIVE,
    PIXEL,
    WEATHER,
    Rig,
    codes_of,
    real,
)
from talking import message_text, shown

pytestmark = real

Json = dict[str, Any]


@pytest.mark.parametrize("model", DIALECTS)
def test_an_answer_with_its_thoughts_whole_and_streamed(rig: Rig, model: str) -> None:
    body = {"model": model, "input": ASKS_COLOUR}
    whole = rig.create(body)
    events, streamed = rig.stream(body)
    assert whole["status"] == "completed"
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message"]
    assert message_text(whole)
    assert whole["usage"]["output_tokens"] > 0
    assert whole["usage"]["total_tokens"] == whole["usage"]["input_tokens"] + whole["usage"]["output_tokens"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert {**shown(whole), "usage": None} == {**shown(streamed), "usage": None}
    assert whole["usage"]["output_tokens"] == streamed["usage"]["output_tokens"]
    assert codes_of(whole) == []


@pytest.mark.parametrize("model", DIALECTS)
def test_a_chain_brings_the_earlier_turn_back(rig: Rig, model: str) -> None:
    first = rig.create({"model": model, "input": ASKS_COLOUR})
    _, second = rig.stream({"model": model, "input": "And the sky?", "previous_response_id": first["id"]})
    alone = rig.create({"model": model, "input": "And the sky?"})
    assert second["status"] == "completed"
    assert second["usage"]["input_tokens"] > alone["usage"]["input_tokens"]


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_was_cut_is_incomplete(rig: Rig, model: str, streamed: bool) -> None:
    body = {"model": model, "input": COUNT, "max_output_tokens": 8}
    response = rig.stream(body)[1] if streamed else rig.create(body)
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][-1]["status"] == "incomplete"
    told = ["bridge.response.length_untold"] if model == NATIVE else []
    assert codes_of(response) == told


@pytest.mark.parametrize("model", DIALECTS)
def test_an_answer_within_its_limit_is_complete(rig: Rig, model: str) -> None:
    response = rig.create({"model": model, "input": ASKS_COLOUR, "max_output_tokens": 60})
    assert (response["status"], codes_of(response)) == ("completed", [])


@pytest.mark.parametrize("model", DIALECTS)
def test_no_effort_means_no_thoughts(rig: Rig, model: str) -> None:
    thinking = rig.create({"model": model, "input": ASKS_COLOUR})
    response = rig.create({"model": model, "input": ASKS_COLOUR, "reasoning": {"effort": "none"}})
    assert [item["type"] for item in response["output"]] == ["message"]
    assert codes_of(response) == []
    assert response["usage"]["input_tokens"] != thinking["usage"]["input_tokens"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("effort", [{}, {"reasoning": {"effort": "none"}}], ids=["thinking", "not thinking"])
def test_log_probabilities_are_those_of_the_text(rig: Rig, streamed: bool, effort: Json) -> None:
    body = {
        "model": CHAT,
        "input": ASKS_COLOUR,
        "top_logprobs": 2,
        "include": ["message.output_text.logprobs"],
        **effort,
    }
    response = rig.stream(body, {"Isthmus-Strict": "true"})[1] if streamed else rig.create(body)
    part = response["output"][-1]["content"][0]
    assert part["logprobs"]
    assert all(len(entry["top_logprobs"]) == 2 for entry in part["logprobs"])
    # The first token after a thought may begin with the line breaks that part the two.
    assert "".join(entry["token"] for entry in part["logprobs"]).strip() == part["text"].strip()
    assert codes_of(response) == []


def test_log_probabilities_beside_streamed_tools_are_left_out_and_said_to_be(rig: Rig) -> None:
    body = {"model": CHAT, "input": ASKS_WEATHER, "tools": [WEATHER], "top_logprobs": 1}
    _, response = rig.stream(body)
    assert codes_of(response, "top_logprobs") == ["bridge.param.ignored"]
    refused = rig.post("/v1/responses", {**body, "stream": True}, {"Isthmus-Strict": "true"})
    assert refused.status == 400


def test_log_probabilities_of_the_native_endpoint_are_said_to_be_missing(rig: Rig) -> None:
    response = rig.create({"model": NATIVE, "input": ASKS_COLOUR, "top_logprobs": 2})
    assert codes_of(response, "top_logprobs") == ["bridge.param.ignored"]


LOOK = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": PIXEL}]


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_image_that_the_server_refuses_is_refused_once_and_named(unasked: Rig, model: str, streamed: bool) -> None:
    body = {"model": model, "input": [{"role": "user", "content": LOOK}], "stream": streamed}
    reply = unasked.post("/v1/responses", body)
    assert (reply.status, reply.error["param"]) == (400, "input[0].content[1]")
    assert "image" in reply.error["message"]
    assert len(unasked.posts) == 1


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_image_that_the_server_says_it_cannot_read_is_left_out_and_told(
    rig: Rig, model: str, streamed: bool
) -> None:
    body = {"model": model, "input": [{"role": "user", "content": LOOK}]}
    rig.get("/v1/models")  # waits until the server has been heard
    response = rig.stream(body)[1] if streamed else rig.create(body)
    assert response["status"] in ("completed", "incomplete")
    assert codes_of(response, "input[0].content[1]") == ["bridge.item.degraded"]
    refused = rig.post("/v1/responses", body, {"Isthmus-Strict": "true"})
    assert (refused.status, refused.error["param"]) == (400, "input[0].content[1]")
    assert len(rig.posts) == 1


@pytest.mark.parametrize("model", DIALECTS)
def test_the_catalogues_tell_the_window_and_the_senses_that_the_server_has(rig: Rig, unasked: Rig, model: str) -> None:
    told = rig.get("/v1/models?client_version=0.166.0").json
    (entry,) = [each for each in told["models"] if each["slug"] == model]
    assert (entry["context_window"], entry["max_context_window"]) == (WINDOW, WINDOW)
    assert entry["input_modalities"] == ["text"]
    shown = rig.get(f"/v1/models/{model}").json["isthmus"]
    assert (shown["context_window"], shown["input"]) == (WINDOW, ["text"])
    guessed = unasked.get(f"/v1/models/{model}").json["isthmus"]
    assert ("context_window" not in guessed, guessed["input"]) == (True, ["text", "image"])


@pytest.mark.parametrize("model", DIALECTS)
def test_what_cannot_fit_the_servers_window_is_not_sent(rig: Rig, model: str) -> None:
    rig.get("/v1/models")
    reply = rig.post("/v1/responses", {"model": model, "input": "word " * 40_000})
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert rig.posts == []


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("tools", [[], [WEATHER]], ids=["plain", "tools"])
def test_input_tokens_are_not_far_below_what_the_server_counts(rig: Rig, model: str, tools: list[Json]) -> None:
    body = {"model": model, "input": ASKS_WEATHER, **({"tools": tools} if tools else {})}
    counted = rig.post("/v1/responses/input_tokens", body).json
    used = rig.create(body)["usage"]["input_tokens"]
    assert used / 2 <= counted["input_tokens"] <= used * 4


@pytest.mark.parametrize("model", DIALECTS)
def test_sampling_parameters_are_heeded(rig: Rig, model: str) -> None:
    body = {"model": model, "input": ASKS_COLOUR, "temperature": 0, "top_p": 0.5}
    response = rig.create(body)
    assert (response["status"], codes_of(response)) == ("completed", [])


def test_stop_and_seed_of_a_chat_client_are_heeded(rig: Rig) -> None:
    body = {"model": CHAT, "messages": [{"role": "user", "content": COUNT}], "stop": ["2"], "seed": 1}
    choice = rig.chat(body)["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert "2" not in choice["message"]["content"]
