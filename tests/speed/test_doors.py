"""The guard over whole requests is able to fail: what was made slower on purpose in one door is red in that door."""

from __future__ import annotations

import pytest
from bench.speed import baseline
from bench.speed.baseline import LIMIT, Expected, Figures
from bench.speed.doors import DOORS
from bench.speed.judge import judge, red
from bench.speed.measure import measure_doors

PLANTED = {
    "door, Responses, whole": "isthmus.server.responses:ResponsesApi.create",
    "door, Responses, 50 deltas": "isthmus.server.responses:encode_events",
    "door, Responses, a tool call": "isthmus.server.responses:encode_events",
    "door, Chat, whole": "isthmus.server.chat:render_chat_completion",
    "door, Chat, 50 deltas": "isthmus.bridge.doors.chat.render:ChatRenderer.render",
    "door, Messages, whole": "isthmus.server.messages:render_message",
    "door, Messages, 50 deltas": "isthmus.bridge.doors.messages.render:MessagesRenderer.render",
    "door, WebSocket, 50 deltas": "isthmus.server.lanes:_Sink.write",
}
"""Where a loop of nothing is put for each door."""


@pytest.fixture(scope="module")
def honest() -> Figures:
    return measure_doors()


def test_every_door_is_guarded_and_recorded() -> None:
    names = {each.name for each in DOORS}
    assert {each.door for each in DOORS} == {"responses", "chat", "messages", "websocket"}
    assert names == set(PLANTED) == set(baseline.read()[baseline.version()]["doors"])


@pytest.mark.parametrize("door", PLANTED)
def test_a_regression_on_purpose_is_red_in_its_door(door: str, honest: Figures) -> None:
    """A third of what the door takes, by a loop at one place in it; called more often, it is only more."""
    turns = round(honest[door]["instructions"] / 3 / 2)  # two instructions for each turn
    slow = measure_doors({"at": PLANTED[door], "turns": turns, "only": [door], "goes": 2})
    words = red(judge(slow, Expected({door: honest[door]}, LIMIT)))
    assert len(words) == 1
    assert words[0].startswith(f"{door}: instructions")
    assert "slower by" in words[0]


def test_the_same_code_is_not_red(honest: Figures) -> None:
    assert red(judge(measure_doors(), Expected(honest, 0.05))) == []
