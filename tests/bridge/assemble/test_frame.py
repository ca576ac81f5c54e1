"""The Response object around the output."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from isthmus.bridge.assemble.frame import Frame, usage_object
from isthmus.bridge.deltas import Usage
from isthmus.testing.fold import plan_for
from wire.oracle import check_response


def test_a_response_that_has_not_begun_is_a_whole_object() -> None:
    response = Frame(plan_for(), "resp_1", 1).response("queued")
    check_response(dict(response))
    assert "isthmus" not in response


def test_an_alias_is_told_only_where_there_is_one() -> None:
    for alias in (None, "fast"):
        plan = plan_for()
        frame = Frame(msgspec.structs.replace(plan, target=replace(plan.target, alias=alias)), "resp_1", 1)
        finished = frame.finished(frame.response("in_progress"), ())
        assert finished["isthmus"].get("alias") == alias
        assert ("alias" in finished["isthmus"]) is (alias is not None)


def test_estimated_usage_says_so() -> None:
    assert "estimated" not in usage_object(Usage(1, 2, 3))
    assert usage_object(Usage(1, 2, 3, estimated=True))["estimated"] is True
    assert usage_object(Usage(1, 2, 3) + Usage(1, 1, 2, estimated=True))["total_tokens"] == 5
