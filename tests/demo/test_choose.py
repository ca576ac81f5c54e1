from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from demo_requests import CODEX, PATCH, SHELL, STRING, TIME, WEATHER, ask, calls, choice, say, tool, with_results

NUMBER = {"type": "number"}
ADD = tool("add", "Add two numbers.", a=NUMBER, b=NUMBER)
MULTIPLY = tool("multiply", "Multiply two numbers.", a=NUMBER, b=NUMBER)
CALCULATOR = tool("calculator", "Evaluates.", expression=STRING)
FLIGHT = tool("book_flight", "Book a seat.", origin=STRING, destination=STRING, passengers={"type": "integer"})
MESSAGE = tool("send_message", "Send it.", recipient=STRING, text=STRING)
EMAIL = tool("sendEmail", "Send it.", to=STRING, subject=STRING)
FORECAST = tool("lookup", "Tells about rain and sunshine in the coming days.", ["where"], where=STRING)
LOCAL_SHELL = tool("local_shell", "Run one program.", command={"type": "array", "items": STRING})
SHELLS = tool("shell", "Run commands.", commands={"type": "array", "items": STRING, "minItems": 1})
WRITE = tool("write_file", "Write a file.", path=STRING, content=STRING)
NAMESPACED = tool("mcp__maps__find_route", "", start_city=STRING, end_city=STRING)


def patch(*lines: str) -> dict[str, str]:
    return {"input": "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])}


@pytest.mark.parametrize(
    ("text", "tools", "made"),
    [
        ("What is the weather in Paris?", [TIME, WEATHER], [("get_weather", {"city": "Paris"})]),
        ("weather in New York in fahrenheit", [WEATHER], [("get_weather", {"city": "New York", "unit": "fahrenheit"})]),
        ("weather in oslo please", [WEATHER], [("get_weather", {"city": "oslo"})]),
        ("weather in San Francisco, CA", [WEATHER], [("get_weather", {"city": "San Francisco"})]),
        (
            "weather in Paris and London",
            [WEATHER],
            [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "London"})],
        ),
        (
            "weather in paris, oslo and rome",
            [WEATHER],
            [("get_weather", {"city": city}) for city in ("paris", "oslo", "rome")],
        ),
        (
            "What is the weather and the time in Tokyo?",
            [TIME, WEATHER],
            [("get_weather", {"city": "Tokyo"}), ("get_time", {"place": "Tokyo"})],
        ),
        ("use get_time for Oslo", [WEATHER, TIME], [("get_time", {"place": "Oslo"})]),
        ("add 2 and 3.5", [ADD], [("add", {"a": 2, "b": 3.5})]),
        (
            "Book a flight from Paris to London for 2 passengers",
            [FLIGHT],
            [("book_flight", {"origin": "Paris", "destination": "London", "passengers": 2})],
        ),
        (
            'Send a message to Alice and Bob saying "hi"',
            [MESSAGE],
            [("send_message", {"recipient": name, "text": "hi"}) for name in ("Alice", "Bob")],
        ),
        (
            'send email to ada@example.com about "Lunch"',
            [EMAIL],
            [("sendEmail", {"to": "ada@example.com", "subject": "Lunch"})],
        ),
        (
            "find route from Paris to Rome",
            [NAMESPACED],
            [("mcp__maps__find_route", {"start_city": "Paris", "end_city": "Rome"})],
        ),
        ("search the web for cats", CODEX, [("web_search", {"query": "cats"})]),
        ("view the image a/b.png", CODEX, [("view_image", {"path": "a/b.png"})]),
        ("get the goal", CODEX, [("get_goal", {})]),
        ("update the goal: it is blocked", CODEX, [("update_goal", {"status": "blocked"})]),
    ],
)
def test_words_choose_the_tool_and_fill_it(text: str, tools: list[dict[str, Any]], made: list[tuple[str, Any]]) -> None:
    told = choice(text, *tools)
    assert calls(told["message"]) == made
    assert told["finish_reason"] == "tool_calls"
    assert told["message"]["content"] is None


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("hello", [WEATHER]),
        ("say weather", [WEATHER]),
        ("count to 3", [WEATHER, ADD]),
        ("Tell me a joke", [WEATHER, TIME]),
        ("weather in Paris, but use no tools", [WEATHER]),
        ("say hi", CODEX),
        ("Explain this repository", CODEX),
        ("Fix the failing tests", CODEX),
        ("Please add type hints to app.py", CODEX),
    ],
)
def test_without_need_no_tool_is_called(text: str, tools: list[dict[str, Any]]) -> None:
    assert say(text, *tools)


HELLO = ("*** Add File: hello.txt", "+hello world")


@pytest.mark.parametrize(
    ("text", "tools", "made"),
    [
        ("create hello.txt with hello world", CODEX, ("apply_patch", patch(*HELLO))),
        ('Create a file called "hello.txt" that says "hello world".', CODEX, ("apply_patch", patch(*HELLO))),
        ("write 'hello world' into hello.txt", CODEX, ("apply_patch", patch(*HELLO))),
        (
            "make a file named a/b.yaml with:\na: 1\nb: 2",
            [PATCH],
            ("apply_patch", patch("*** Add File: a/b.yaml", "+a: 1", "+b: 2")),
        ),
        (
            "create hello.txt with hello world",
            [SHELL],
            ("exec_command", {"cmd": "printf '%s\\n' 'hello world' > hello.txt"}),
        ),
        (
            "create hello.txt with hello world",
            [SHELL, WRITE],
            ("write_file", {"path": "hello.txt", "content": "hello world"}),
        ),
        ("run `ls -la`", CODEX, ("exec_command", {"cmd": "ls -la"})),
        ("Please run pytest -q.", CODEX, ("exec_command", {"cmd": "pytest -q"})),
        ("what does `git log` say?", CODEX, ("exec_command", {"cmd": "git log"})),
        ("run `ls`", [LOCAL_SHELL], ("local_shell", {"command": ["bash", "-lc", "ls"]})),
        ("run `ls`", [SHELLS], ("shell", {"commands": ["ls"]})),
    ],
)
def test_deeds_are_done_with_what_is_there(text: str, tools: list[dict[str, Any]], made: tuple[str, Any]) -> None:
    assert calls(ask(text, *tools)) == [made]


def test_a_patch_as_an_operation_names_what_it_does() -> None:
    kinds = [{"type": "object", "properties": {"type": {"const": f"{kind}_file"}}} for kind in ("create", "delete")]
    operation = tool("apply_patch", operation={"type": "object", "oneOf": kinds})
    (made,) = calls(ask("create hello.txt with hello world", operation))
    assert made[1] == {"operation": {"type": "create_file", "path": "hello.txt", "diff": "+hello world\n"}}


def test_a_coding_session_makes_the_file_runs_the_command_and_reports() -> None:
    text = "create hello.txt with hello world, then run `cat hello.txt`"
    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    first = ask("", *CODEX, messages=messages)
    assert calls(first) == [("apply_patch", patch(*HELLO))]
    messages += with_results(first, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated:\nA hello.txt\n")
    second = ask("", *CODEX, messages=messages)
    assert calls(second) == [("exec_command", {"cmd": "cat hello.txt"})]
    messages += with_results(second, "Chunk ID: b9\nProcess exited with code 0\nOutput:\nhello world\n")
    report = say("", *CODEX, messages=messages)
    assert report == "Done.\napply_patch answered: Success. Updated:\nA hello.txt\nexec_command answered: hello world"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ('{"temperature": 21, "sky": "clear"}', "temperature: 21, sky: clear"),
        ("21 degrees", "21 degrees"),
        ("x" * 600, "x" * 500 + "…"),
        ('[{"a": 1}]', '[{"a": 1}]'),
    ],
)
def test_results_are_reported(output: str, said: str) -> None:
    question = {"role": "user", "content": "weather in Paris"}
    messages = [question, *with_results(ask("weather in Paris", WEATHER), output)]
    assert say("", WEATHER, messages=messages, tool_choice="required") == f"Done. get_weather answered: {said}"


def test_an_empty_result_is_reported_as_such() -> None:
    messages = [{"role": "user", "content": "run `true`"}, *with_results(ask("run `true`", SHELL), "")]
    assert say("", SHELL, messages=messages) == "Done. exec_command finished without a word."


@pytest.mark.parametrize("text", ["hello", "say hi", "", "weather in Rome and Oslo", "x" * 10_000])
def test_required_calls_a_tool_whatever_the_text(text: str) -> None:
    made = calls(ask(text, WEATHER, TIME, tool_choice="required"))
    assert made
    assert all(arguments.get("city") for name, arguments in made if name == "get_weather")


def test_a_named_tool_is_the_one_that_is_called() -> None:
    named = {"type": "function", "function": {"name": "get_time"}}
    assert calls(ask("weather in Paris", WEATHER, TIME, tool_choice=named)) == [("get_time", {"place": "Paris"})]


def test_none_calls_nothing() -> None:
    assert say("weather in Paris", WEATHER, tool_choice="none")


def test_one_call_at_a_time_when_asked_so() -> None:
    made = ask("weather and time in Paris and London", WEATHER, TIME, parallel_tool_calls=False)
    assert calls(made) == [("get_weather", {"city": "Paris"})]


def test_bad_json_breaks_the_arguments() -> None:
    (call,) = ask("[[demo: bad json]] weather in Paris", WEATHER)["tool_calls"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(call["function"]["arguments"])


@pytest.mark.parametrize("offered", [*CODEX, ADD, CALCULATOR, FLIGHT, EMAIL, LOCAL_SHELL, SHELLS, WRITE])
@pytest.mark.parametrize("text", ["hello", "create a.txt with hi", "2 cats in Rome", "run `ls`"])
def test_arguments_are_always_valid(offered: dict[str, Any], text: str) -> None:
    for _, arguments in calls(ask(text, offered, tool_choice="required")):
        jsonschema_rs.validate(offered["function"]["parameters"], arguments)
