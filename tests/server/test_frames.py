"""Frames of a client, read without a socket; errors as frames."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.server.frames import Asked, error_frame, read_frame


def read(limits: RequestLimits = DEFAULT_LIMITS, **frame: Any) -> Asked:
    return read_frame(json.dumps({"type": "response.create", **frame}).encode(), limits)


def test_the_request_is_what_the_frame_holds_and_always_a_stream() -> None:
    asked = read(stream_id="a", model="m", input="hi", stream=False, of_tomorrow=1)
    assert asked.request is not None
    assert asked.request.body == {"model": "m", "input": "hi", "stream": True, "of_tomorrow": 1}
    assert (asked.lane, asked.failure) == ("a", None)
    assert asked.request.size == asked.size


@pytest.mark.parametrize("lane", ["x", "A-z_0.9", "y" * 256])
def test_a_lane_has_a_name(lane: str) -> None:
    assert read(stream_id=lane, input="hi").lane == lane


@pytest.mark.parametrize("lane", [None, ""])
def test_no_name_is_the_default_lane_but_an_empty_one_is_an_error(lane: str | None) -> None:
    asked = read(stream_id=lane, input="hi")
    assert (asked.lane, asked.failure is None) == ("", lane is None)


def test_a_request_that_is_refused_keeps_its_lane_and_its_parent() -> None:
    asked = read(stream_id="a", previous_response_id="resp_1", input=7)
    assert asked.failure is not None
    assert (asked.request, asked.lane, asked.parent) == (None, "a", "resp_1")


def test_limits_of_requests_hold() -> None:
    asked = read(RequestLimits(max_items=1), input=[{"role": "user", "content": "x"}] * 2)
    assert asked.failure is not None
    assert "max_items" in asked.failure.message


def test_an_error_says_when_to_ask_again() -> None:
    frame = error_frame(IsthmusError("later", code="server_is_overloaded", retry_after=3.2), "a")
    assert (frame["status"], frame["stream_id"], frame["error"]["headers"]["retry-after"]) == (503, "a", "4")


def test_an_error_without_a_lane_names_none() -> None:
    assert "stream_id" not in error_frame(RequestRefused("no", param="input"))
