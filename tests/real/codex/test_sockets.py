"""The real Codex over one WebSocket: its input sent ahead, its turns continued, its tools used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isthmus.testing import chat, error
from real.codex.rig import CLASSIC, LITE, OURS, UNKNOWN, Json, real, rig, shell_arguments, shell_call
from socketing import watch_frames

pytestmark = real

SOCKET = "supports_websockets = true\nrequest_max_retries = 0\nstream_max_retries = 1"


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """What Codex sends over its sockets."""
    return watch_frames(monkeypatch)


@pytest.mark.parametrize("slug", [CLASSIC, LITE, UNKNOWN, OURS])
def test_a_turn_with_a_tool_over_one_socket(tmp_path: Path, frames: list[Json], slug: str) -> None:
    call = ("call_1", shell_call(slug), shell_arguments(slug, "echo marker-$((40 + 2))"))
    with rig(tmp_path, chat(None, calls=[call], usage=(1200, 7)), chat("It printed marker-42.", usage=(1300, 8))) as it:
        outcome = it.exec("run it", slug=slug, provider=SOCKET).worked()
        first, second = it.bodies
    assert outcome.commands == [("marker-42\n", 0)]
    assert outcome.said == ["It printed marker-42."]
    assert outcome.reconnects == []
    assert (outcome.usage["input_tokens"], outcome.usage["output_tokens"]) == (2500, 15)
    warm, asked, went_on = frames
    assert (warm["generate"], "previous_response_id" in warm) == (False, False)
    assert asked["previous_response_id"] != went_on["previous_response_id"]
    assert [item["type"].endswith("_output") for item in went_on["input"]] == [True]
    # Each request to the model has the whole conversation: what was sent ahead, what was asked, what the tool said.
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert [message["role"] for message in second["messages"][len(first["messages"]) :]] == ["assistant", "tool"]


def test_the_model_is_sent_the_same_as_over_http(tmp_path: Path, frames: list[Json]) -> None:
    sent: list[Json] = []
    for name, provider in (("socket", SOCKET), ("http", "")):
        folder = tmp_path / name
        folder.mkdir()
        with rig(folder, chat("Hi.")) as it:
            it.exec("say hi", slug=OURS, provider=provider).worked()
            (body,) = it.bodies
            text = json.dumps(body).replace(str(folder), "FOLDER")
            sent.append(json.loads(text))
    over_socket, over_http = sent
    assert over_socket.keys() == over_http.keys()
    assert over_socket["tools"] == over_http["tools"]
    assert [message["role"] for message in over_socket["messages"]] == [
        message["role"] for message in over_http["messages"]
    ]
    assert frames


def test_what_the_socket_has_forgotten_is_sent_whole(tmp_path: Path, frames: list[Json]) -> None:
    call = ("call_1", "exec_command", {"cmd": "echo marker-$((40 + 2))"})
    forgetful = "[websocket]\nmax_state = 100"
    with rig(tmp_path, chat(None, calls=[call]), chat("It printed marker-42."), server=forgetful) as it:
        outcome = it.exec("run it", slug=OURS, provider=SOCKET.replace("retries = 1", "retries = 5")).worked()
    assert outcome.said == ["It printed marker-42."]
    assert any("previous_response_id" in frame for frame in frames)


def test_a_failure_is_told_as_over_http(tmp_path: Path, frames: list[Json]) -> None:
    with rig(tmp_path, error(400, "this model takes no such thing", code="invalid_request_error")) as it:
        outcome = it.exec("hi", slug=OURS, provider=SOCKET)
    assert "this model takes no such thing" in outcome.failure
    assert frames
