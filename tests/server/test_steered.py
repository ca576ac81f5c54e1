"""What becomes of words, without a socket: nothing that was accepted is lost. The flows show it over real ones."""

from __future__ import annotations

import json
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.bridge.limits import DEFAULT_LIMITS
from isthmus.bridge.parse import parse_request
from isthmus.config.schema import Limits
from isthmus.errors import RequestRefused
from isthmus.server.frames import Asked
from isthmus.server.lane import OpenLane, Waiting
from isthmus.server.room import Room
from isthmus.server.steered import Steered
from isthmus.server.steering import Steer

CALL = {"type": "function_call", "call_id": "call_1", "name": "look"}


class Wire:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    async def write(self, texts: list[bytes]) -> None:
        self.told += map(json.loads, texts)


class Run:
    """One that has told seven events."""

    finished = False
    plan = SimpleNamespace(steers=True, compaction=None)

    def __init__(self, status: str | None = None, output: Any = ()) -> None:
        self.id, self.told, self.steered = "resp_1", 7, 0
        self.response = None if status is None else {"status": status, "output": output}

    def tell_steering(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.told += 1
        return {"type": kind, "sequence_number": self.told - 1, **fields}

    def steer(self) -> None:
        self.steered += 1


def make(run: Any = None) -> tuple[Steered, OpenLane, list[dict[str, Any]]]:
    """The words of a socket with one lane, in which this runs."""
    wire: Any = Wire()
    lane = OpenLane("a", wire)
    if run is not None:
        asked = {"model": "m", "input": "hi", "temperature": 0.5}
        lane.steering.begin(run, parse_request(asked, DEFAULT_LIMITS))
    return Steered({"a": lane}, OpenLane("", wire), Room(Limits(max_memory=0), None, 10)), lane, wire.told


def shown(told: list[dict[str, Any]]) -> list[tuple[str, int, str | None, str]]:
    """Of each event: its kind, its number, the lane, and why it failed."""
    return [
        (
            event["type"].rpartition(".")[2],
            event["sequence_number"],
            event.get("stream_id"),
            event.get("error", {}).get("code", ""),
        )
        for event in told
    ]


async def test_words_for_nobody_come_back_each_for_itself() -> None:
    steered, _, told = make()
    for target in ("resp_1", "resp_2"):
        await steered.take(Steer(target, "x"))
    assert shown(told) == [("failed", 0, None, "response_not_found")] * 2


async def test_words_for_what_is_over_come_back_numbered_on() -> None:
    steered, lane, told = make(Run("completed"))
    await steered.go_on(lane)
    for _ in range(2):
        await steered.take(Steer("resp_1", "x"))
    assert shown(told) == [("failed", number, "a", "response_already_completed") for number in (7, 8)]


async def test_words_that_come_while_something_is_told_wait_for_the_next_moment() -> None:
    run: Any = Run()
    steered, lane, told = make(run)
    lane.telling = True
    await steered.take(Steer("resp_1", "x", size=10))
    assert (told, run.steered) == ([], 0)
    lane.telling = False
    await steered.take_late(lane, run)
    assert (shown(told), run.steered, lane.late) == ([("accepted", 7, "a", "")], 1, [])


async def test_words_that_come_while_a_wait_is_told_wait_for_the_same() -> None:
    run: Any = Run("completed", [CALL])
    steered, lane, told = make(run)
    lane.steering.take(Steer("resp_1", "x"), nullcontext())
    run.finished, tell = True, lane._socket.write

    async def slowly(texts: list[bytes]) -> None:
        lane._socket.write = tell  # type: ignore[method-assign,assignment]
        await steered.take(Steer("resp_1", "y", size=10))
        await tell(texts)

    lane._socket.write = slowly  # type: ignore[method-assign,assignment]
    await steered.go_on(lane)
    assert [kind for kind, *_ in shown(told)] == ["pending", "accepted", "pending"]
    assert (lane.late, [each.input for each in lane.steering.words("resp_1")]) == ([], ["x", "y"])


@pytest.mark.parametrize("status", ["completed", "incomplete"])
async def test_a_successor_comes_before_whatever_waits(status: str) -> None:
    steered, lane, _ = make(Run(status))
    lane.waiting.append(Waiting(Asked("a"), ExitStack()))
    said = {"type": "message", "role": "user", "content": "x"}
    taken = lane.steering.take(Steer("resp_1", "x", (said,)), nullcontext())
    await steered.go_on(lane)
    first = lane.waiting[0]
    assert (first.ours, first.words, first.asked.parent) == (True, [taken], "resp_1")
    assert first.asked.request is not None
    assert (first.asked.request.items, first.asked.request.body["temperature"]) == ((said,), 0.5)
    assert lane.steering.words("resp_1") == []


@pytest.mark.parametrize("status", [None, "failed", "cancelled"])
async def test_what_failed_has_no_successor_and_the_words_come_back(status: str | None) -> None:
    steered, lane, told = make(Run(status))
    lane.steering.take(Steer("resp_1", "x"), nullcontext())
    await steered.go_on(lane)
    assert shown(told) == [("failed", 7, "a", "successor_creation_failed")]
    assert (told[0]["steer"]["input"], len(lane.waiting)) == ("x", 0)


@pytest.mark.parametrize("goes", ["elsewhere", "there, in vain"])
async def test_words_that_wait_for_outputs_come_back_when_those_do_not(goes: str) -> None:
    steered, lane, told = make(Run("completed", [CALL]))
    words = lane.steering.take(Steer("resp_1", "x"), nullcontext())
    await steered.go_on(lane)
    assert shown(told) == [("pending", 7, "a", "")]
    if goes == "elsewhere":
        await steered.leave(lane, "resp_1")
        assert len(told) == 1, "that is what they wait for"
        await steered.leave(lane, "resp_2")
    else:
        waiting = Waiting(Asked("a", parent="resp_1"), ExitStack(), [words])
        await steered.fail(lane, waiting, RequestRefused("no", param="input"))
    assert shown(told)[1:] == [("failed", 8, "a", "successor_creation_failed")]
    assert (lane.steering.waits_for, lane.steering.words("resp_1")) == ("", [])
