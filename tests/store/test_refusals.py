"""What every store refuses: whose field it is, a code that programs know, and what to do instead."""

from __future__ import annotations

import pytest

from isthmus.errors import RequestRefused
from isthmus.store.refusals import events_expired, not_found, too_long


@pytest.mark.parametrize(
    ("refused", "code", "param", "says"),
    [
        (
            not_found("r1", "r1"),
            "previous_response_not_found",
            "previous_response_id",
            ["previous response `r1` was not found", "send the whole history in `input`"],
        ),
        (
            not_found("r1", "r3"),
            "previous_response_not_found",
            "previous_response_id",
            ["`r3` cannot be continued", "its earlier turn `r1` was not found", "send the whole history in `input`"],
        ),
        (
            too_long("r3", 2),
            "previous_response_chain_too_long",
            "previous_response_id",
            ["ends in `r3`", "over 2 turns", "start a new one"],
        ),
        (
            events_expired("r1", 7),
            "events_expired",
            "starting_after",
            ["`r1`", "back to event 7", "fetch the response without `stream`"],
        ),
    ],
)
def test_a_refusal_names_what_is_wrong_where_and_the_next_step(
    refused: RequestRefused, code: str, param: str, says: list[str]
) -> None:
    assert (refused.code, refused.param) == (code, param)
    for words in says:
        assert words in refused.message
    assert refused.meaning.turn == "caller"
    assert refused.meaning.status == 400, "the id is a field of the request, not its address"
