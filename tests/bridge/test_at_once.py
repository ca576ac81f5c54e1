"""A turn conducted on the spot: the same machine as a stream, folded; what needs the model again is not hidden."""

from __future__ import annotations

import pytest

from isthmus.bridge.at_once import reconstruct_response_object
from isthmus.bridge.deltas import Failed, Finished, Text
from isthmus.bridge.types.plan import Host
from isthmus.errors import OutputInvalid
from isthmus.testing.fold import plan_for

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
BOUND = {"text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}}}


def made(text: str, *, repairs: int = 1) -> dict[str, object]:
    plan = plan_for(BOUND, host=Host(repair_budget=repairs))
    deltas = [Text(text), Finished("stop")]
    return {**reconstruct_response_object(plan, deltas, response_id="resp_1", created_at=1, completed_at=2)}


def test_a_whole_reply_is_the_stream_folded() -> None:
    assert made('{"a": 1}')["output_text"] == '{"a": 1}'


@pytest.mark.parametrize("repairs", [0, 1])
def test_a_broken_contract_is_raised_since_nobody_here_can_ask_again(repairs: int) -> None:
    with pytest.raises(OutputInvalid):
        made("no json", repairs=repairs)


def test_a_reply_that_says_that_it_failed_is_a_response_that_failed() -> None:
    deltas = [Text("hi"), Failed("it broke"), Finished("stop")]
    response = reconstruct_response_object(plan_for(), deltas, response_id="resp_1", created_at=1, completed_at=2)
    assert (response["status"], response["error"]) == ("failed", {"code": "server_error", "message": "it broke"})
