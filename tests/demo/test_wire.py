from __future__ import annotations

import json
from typing import Any

import pytest

from demo_requests import WEATHER, request
from isthmus.demo.model import MODELS, answer
from isthmus.demo.question import Refused
from isthmus.demo.wire import closing, error_body, model_list, opening, piece_chunks, whole


def _chunks(*data: bytes) -> list[Any]:
    events = b"".join(data).decode().split("\n\n")
    return [json.loads(event.removeprefix("data: ")) for event in events if event and not event.endswith("[DONE]")]


def test_the_stream_joined_is_the_whole_answer() -> None:
    reply = answer(request("weather in Paris and Rome", WEATHER, reasoning_effort="low"))
    chunks = _chunks(opening(reply), *piece_chunks(reply), closing(reply, usage=True))
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    message = whole(reply)["choices"][0]["message"]
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == message["reasoning_content"]
    for index, call in enumerate(message["tool_calls"]):
        pieces = [piece["function"]["arguments"] for piece in calls if piece["index"] == index]
        assert "".join(pieces) == call["function"]["arguments"]
    assert chunks[-2]["choices"][0]["finish_reason"] == whole(reply)["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"] == whole(reply)["usage"]
    assert deltas[0] == {"role": "assistant", "content": ""}


def test_usage_is_only_told_on_request_and_done_is_the_end() -> None:
    reply = answer(request("hi"))
    assert all("usage" not in chunk for chunk in _chunks(closing(reply, usage=False)))
    assert closing(reply, usage=True).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (429, "rate_limit_error"), (503, "server_error")]
)
def test_an_error_has_openais_shape(status: int, kind: str) -> None:
    error = error_body(Refused(status, "no", "code"))["error"]
    assert error == {"message": "no", "type": kind, "param": None, "code": "code"}


def test_every_model_is_listed() -> None:
    assert [model["id"] for model in model_list()["data"]] == list(MODELS)
