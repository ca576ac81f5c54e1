"""Marks of the prompt cache: four at most, all of one life, the client's own first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.dialects.messages.cache import MAX_MARKS, place_marks

Json = dict[str, Any]


def made(tools: int, system: int, turns: int) -> tuple[list[Json], list[Json], list[Json]]:
    roles = ["user" if index % 2 == 0 else "assistant" for index in range(turns)]
    messages = [{"role": role, "content": [{"n": index}, {"n": index}]} for index, role in enumerate(roles)]
    return [{"t": index} for index in range(tools)], [{"s": index} for index in range(system)], messages


def marks(tools: list[Json], system: list[Json], messages: list[Json]) -> list[Json]:
    blocks = [*tools, *system, *(block for message in messages for block in message["content"])]
    return [block for block in blocks if "cache_control" in block]


def test_the_ends_of_tools_system_and_the_last_two_user_turns_are_marked() -> None:
    tools, system, messages = made(3, 2, 5)
    assert place_marks(tools, system, messages, [], "") == 0
    found = [next(iter(block.items())) for block in marks(tools, system, messages)]
    assert found == [("t", 2), ("s", 1), ("n", 2), ("n", 4)]
    assert "cache_control" in messages[4]["content"][-1]


def test_the_marks_of_the_client_take_the_place_of_ours_and_the_last_four_count() -> None:
    tools, system, messages = made(1, 1, 9)
    chosen = [message["content"][0] for message in messages[:6]]
    assert place_marks(tools, system, messages, chosen, "") == 2
    assert [block["n"] for block in marks(tools, system, messages)] == [2, 3, 4, 5]


def test_a_longer_life_is_that_of_all() -> None:
    tools, system, messages = made(1, 1, 3)
    place_marks(tools, system, messages, [], "1h")
    assert {str(block["cache_control"]) for block in marks(tools, system, messages)} == {
        "{'type': 'ephemeral', 'ttl': '1h'}"
    }


@given(st.integers(0, 5), st.integers(0, 3), st.integers(1, 9), st.integers(0, 9))
def test_there_are_never_more_than_four(tools: int, system: int, turns: int, chosen: int) -> None:
    parts = made(tools, system, turns)
    own = [message["content"][0] for message in parts[2]][:chosen]
    lost = place_marks(*parts, own, "")
    assert len(marks(*parts)) <= MAX_MARKS
    assert not own or lost == len(own) - len(marks(*parts))
