"""The guard over whole requests is able to fail: what was made slower on purpose in one door is red there."""

from __future__ import annotations

import pytest
from bench.speed.baseline import LIMIT, Expected, Figures
from bench.speed.judge import judge, red
from bench.speed.measure import measure_doors

PLANTED = {
    "isthmus.server.responses:encode_events": ("Responses, 50 deltas", "Responses, a tool call"),
    "isthmus.bridge.doors.chat.render:ChatRenderer.render": ("Chat, 50 deltas",),
    "isthmus.bridge.doors.messages.render:MessagesRenderer.render": ("Messages, 50 deltas",),
    "isthmus.server.lanes:_Sink.write": ("WebSocket, 50 deltas",),
    "isthmus.server.chat:render_chat_completion": ("Chat, whole",),
    "isthmus.server.messages:render_message": ("Messages, whole",),
    "isthmus.server.responses:ResponsesApi.create": ("Responses, whole",),
}
"""Where a loop of nothing is put, and the doors that must be red for it at least."""
TURNS = 10_000
"""Two to three instructions each: a third of what a whole answer takes, however seldom the function is called."""


@pytest.fixture(scope="module")
def honest() -> Figures:
    return measure_doors()


@pytest.mark.parametrize("at", PLANTED)
def test_a_regression_in_one_door_is_red_in_that_door(at: str, honest: Figures) -> None:
    slow = measure_doors({"at": at, "turns": TURNS})
    words = red(judge(slow, Expected(honest, LIMIT)))
    for door in PLANTED[at]:
        assert any(each.startswith(f"door, {door}:") and "slower by" in each for each in words), words


def test_the_same_code_is_not_red(honest: Figures) -> None:
    assert red(judge(measure_doors(), Expected(honest, LIMIT))) == []
