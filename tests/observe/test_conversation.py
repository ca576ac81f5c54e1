"""One conversation as the doctor reads it from its traces."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import Cost
from isthmus.observe.conversation import Conversation
from isthmus.observe.inside import Inside
from traced_plans import traced


def turns(*, full: bool = True, **facts: Any) -> Conversation:
    said = [{"role": "user", "content": f"turn {n}"} for n in range(3)]
    bodies = [{"instructions": f"It is 09:4{int(n > 1)}.", "input": said[:n]} for n in (1, 2, 3)]
    made = [traced(n, body, full=full, **facts) for n, body in enumerate(bodies, 1)]
    return Conversation(made, lambda provider, model: Cost(input=1.0, cached=0.5, output=1.0))


def test_its_turns_are_examined_and_priced() -> None:
    found = turns(full=False)
    assert [turn.verdict for turn in found.found.turns] == ["first", "broken", "hit"]
    assert found.found.cost == pytest.approx((1000 + 1500 + 2000) / 1_000_000)
    assert found.to_json()["conversation"] == "thread_1"
    assert turns(conversation="conv_1").name == "conv_1"


@pytest.mark.parametrize("full", [True, False])
def test_the_words_that_changed_are_known_where_contents_were_kept(full: bool) -> None:
    found = turns(full=full)
    inside = Inside("messages[0].content", "It is 09:40.", "It is 09:41.")
    assert [found.inside(turn) for turn in found.found.turns] == [None, inside if full else None, None]
    assert ("inside" in found.to_json()["turns"][1]) == full


def test_a_turn_that_asked_nobody_is_left_out() -> None:
    made = traced(1, {"input": "Hi"})
    refused = type(made)(summary=made.summary)
    assert Conversation([refused], lambda *_: Cost()).found.turns == ()
