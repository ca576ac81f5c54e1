from __future__ import annotations

from typing import Any

import pytest

from demo_requests import WEATHER, request
from isthmus.demo.question import Refused, Result, Tool, read_earlier, read_question


def test_what_was_asked_and_with_what_at_hand() -> None:
    parts = [{"type": "text", "text": "[[demo: length]] look"}, {"type": "image_url"}, {"type": "file"}]
    schema = {"type": "object"}
    asked = request(
        parts,
        WEATHER,
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        parallel_tool_calls=False,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"schema": schema}},
    )
    question = read_question(asked)
    assert (question.text, question.directives.length, question.images, question.media) == ("look", True, 1, 1)
    assert question.tools == (Tool(**WEATHER["function"]),)
    assert (question.choice, question.named, question.parallel) == ("required", "get_weather", False)
    assert (question.format, question.schema, question.effort) == ("json_schema", schema, "low")


def test_results_and_rounds_are_those_since_the_users_last_words() -> None:
    def act(id: str) -> list[dict[str, Any]]:
        call = {"id": id, "type": "function", "function": {"name": f"tool_{id}", "arguments": "{}"}}
        return [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": id, "content": f"r{id}"}]

    messages = [{"role": "user", "content": "one"}, *act("a"), {"role": "user", "content": "two"}, *act("b"), *act("c")]
    question = read_question(request("", messages=messages))
    assert (question.text, question.earlier, question.rounds) == ("two", ("one",), 2)
    assert question.results == (Result("tool_b", "rb"), Result("tool_c", "rc"))


REMINDER = "<system-reminder>\nWrite a.txt with <b>bold</b> words.\n</system-reminder>\n"


@pytest.mark.parametrize(
    "content",
    [
        f"{REMINDER}\ncreate hello.txt",
        [{"type": "text", "text": REMINDER}, {"type": "text", "text": "create hello.txt"}],
        f"create hello.txt\n{REMINDER}{REMINDER}",
    ],
)
def test_reminders_beside_the_users_words_are_not_the_users(content: Any) -> None:
    late = {"role": "user", "content": REMINDER}
    question = read_question(request("", messages=[{"role": "user", "content": content}, late]))
    assert (question.text, question.earlier) == ("create hello.txt", ())
    again = [{"role": "user", "content": content}, {"role": "user", "content": "more"}]
    assert read_question(request("", messages=again)).earlier == ("create hello.txt",)
    assert read_question(request("", messages=[late])).text == REMINDER.strip()


def test_past_directives_no_longer_matter() -> None:
    assert read_earlier("[[demo: cut]] hi") == "hi"
    assert read_earlier("[[demo: nonsense]] hi") == "[[demo: nonsense]] hi"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{}]}, "with a `role`"),
        ({"tool_choice": {"function": {"name": "x"}}}, "names `x`, which is not among"),
        ({"tools": [{"function": {"name": "f", "parameters": {"type": "nonsense"}}}]}, "not a valid JSON Schema"),
        ({"response_format": {"json_schema": {"schema": {"type": 3}}}}, "not a valid JSON Schema"),
    ],
)
def test_a_wrong_shape_is_refused_as_a_provider_would(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        read_question(request("hi", **fields))
    assert refused.value.status == 400
