"""Which request goes on with which thread."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.dialects.codex.resume import (
    past_of,
    read_continuation,
    read_outputs,
    said_key,
    thread_head,
    turn_head,
    waiting_key,
)
from isthmus.bridge.history.normalise import NO_OUTPUT

Json = dict[str, Any]


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def assistant(text: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(id: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}


def output(id: str, text: str = "out") -> Json:
    return {"type": "function_call_output", "call_id": id, "output": text}


def looked(id: str, **fields: str) -> Json:
    image = {"type": "input_image", "image_url": "data:x", **fields}
    return {"type": "function_call_output", "call_id": id, "output": [{"type": "input_text", "text": "see"}, image]}


def body(history: list[Json], text: str = "", **fields: Any) -> Json:
    asked = [{"type": "text", "text": text}] if text else []
    return {"model": "m", "baseInstructions": "", "history": history, "input": asked, **fields}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param([call("a")], id="a call"),
        pytest.param([assistant("Wait"), call("a")], id="words and a call"),
    ],
)
def test_outputs_find_the_turn_that_waits_for_them(act: list[Json]) -> None:
    first = body([], "Hi")
    parked = waiting_key(past_of(first), ["a"])
    found = read_outputs(body([user("Hi"), *act, output("a")]))
    assert found is not None
    assert found.key == parked
    assert found.outputs == {"a": "out"}


def test_outputs_come_in_any_order() -> None:
    found = read_outputs(body([user("Hi"), call("a"), call("b"), output("b"), output("a")]))
    assert found is not None
    assert found.key == waiting_key([user("Hi")], ["a", "b"]) == waiting_key([user("Hi")], ["b", "a"])


def test_an_image_is_an_output_like_any_other() -> None:
    found = read_outputs(body([user("Hi"), call("a"), looked("a")]))
    assert found is not None
    assert found.outputs == {"a": looked("a")["output"]}


def test_a_second_round_of_tools_is_a_turn_of_its_own() -> None:
    round_one = [user("Hi"), call("a"), output("a")]
    found = read_outputs(body([*round_one, call("b"), output("b")]))
    assert found is not None
    assert found.key == waiting_key(round_one, ["b"])
    assert found.outputs == {"b": "out"}


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(body([], "Hi"), id="a question"),
        pytest.param(body([user("Hi"), call("a"), output("a")], "And?"), id="a question behind the output"),
        pytest.param(body([user("Hi"), call("a"), output("a"), user("And?")]), id="a message behind the output"),
        pytest.param(body([user("Hi"), call("a"), call("b"), output("a")]), id="one of two"),
        pytest.param(body([user("Hi"), call("a"), call("b"), output("a"), output("b", NO_OUTPUT)]), id="one made up"),
        pytest.param(body([user("Hi"), call("a"), looked("a", detail="high")]), id="an image to be looked at closely"),
        pytest.param(body([]), id="nothing at all"),
    ],
)
def test_anything_else_is_no_answer_to_a_waiting_turn(asked: Json) -> None:
    assert read_outputs(asked) is None


def test_an_edited_past_does_not_find_the_turn() -> None:
    found = read_outputs(body([user("Hi, edited"), call("a"), output("a")]))
    assert found is not None
    assert found.key != waiting_key([user("Hi")], ["a"])


def test_the_next_question_finds_the_thread_that_gave_the_last_answer() -> None:
    parked = said_key(body([], "Hi"), "Hello")
    found = read_continuation(body([user("Hi"), assistant("Hello")], "And?"))
    assert found is not None
    assert (found.key, found.news) == (parked, ())
    between = read_continuation(body([user("Hi"), assistant("Hello"), user("Oh")], "And?"))
    assert between is not None
    assert (between.key, between.news) == (parked, (user("Oh"),))


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([user("Hi")], id="never spoke"),
        pytest.param([user("Hi"), assistant("Wait"), call("a"), output("a")], id="last called tools"),
        pytest.param([], id="empty"),
    ],
)
def test_without_last_words_there_is_nothing_to_go_on_from(history: list[Json]) -> None:
    assert read_continuation(body(history, "And?")) is None


def test_words_and_waiting_never_share_a_key() -> None:
    assert waiting_key([], []) != said_key(body([]), "")


def test_a_turn_is_bound_by_more_than_its_thread() -> None:
    one, other = body([], "Hi", effort="low"), body([], "Hi", effort="high")
    assert thread_head(one) == thread_head(other)
    assert turn_head(one) != turn_head(other)
    tools = body([], "Hi", dynamicTools=[{"name": "f"}])
    assert thread_head(one) != thread_head(tools)


THOUGHT: Json = {"type": "reasoning", "summary": [], "encrypted_content": "x"}


def test_reasoning_that_comes_back_changes_nothing() -> None:
    parked = waiting_key(past_of(body([], "Hi")), ["a", "b"])
    act = [THOUGHT, assistant("Wait"), call("a"), THOUGHT, call("b")]
    found = read_outputs(body([user("Hi"), *act, output("a"), output("b")]))
    assert found is not None
    assert found.key == parked
    said = read_continuation(body([user("Hi"), THOUGHT, assistant("Hello")], "And?"))
    assert said is not None
    assert said.key == said_key(body([], "Hi"), "Hello")


def test_words_in_several_messages_are_the_words_that_were_spoken() -> None:
    said = read_continuation(body([user("Hi"), assistant("Hel"), assistant("lo")], "And?"))
    assert said is not None
    assert said.key == said_key(body([], "Hi"), "Hello")
