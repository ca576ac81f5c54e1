from __future__ import annotations

import pytest

from demo_requests import CODEX, TIME, WEATHER, say
from isthmus.demo.answers import MOST_NUMBERS, MOST_WORDS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("count to 5", "1, 2, 3, 4, 5."),
        ("Please count to 3", "1, 2, 3."),
        ("count from 8 to 10!", "8, 9, 10."),
        ("count down from 3", "3, 2, 1."),
        ("count to 1", "1."),
        ("say good morning", "good morning"),
        ('Say "good morning"', "good morning"),
        ("say hi 3 times", "hi hi hi"),
        ("repeat after me: a\nb", "a\nb"),
        ("lorem 3", "Lorem ipsum dolor."),
        ("what is 12*7?", "12*7 is 84."),
        ("What's 2 + 2", "2 + 2 is 4."),
        ("calculate (1 + 2) * -3", "(1 + 2) * -3 is -9."),
        ("10/4", "10/4 is 2.5."),
        ("0.1+0.2", "0.1+0.2 is 0.3."),
        ("7*6 =", "7*6 is 42."),
        ("1/0", "1/0 is undefined, for nothing can be divided by zero."),
        ("My name is Ada Lovelace", "Nice to meet you, Ada Lovelace. "),
        ("What is my name?", "You have not told me your name in this conversation."),
        ("Hello there!", "Hello! I am the demo model"),
        ("what can you do?", "Hello! I am the demo model"),
        ("2026-11-15", "You said: “2026-11-15”."),
        ("9**9**9", "You said: “9**9**9”."),
        ("", "Your message has no text."),
    ],
)
def test_a_skill_answers(text: str, said: str) -> None:
    assert say(text).startswith(said)


def test_other_texts_are_noticed_with_all_that_came_along() -> None:
    said = say("Explain the tides", WEATHER, TIME)
    assert said.startswith("You said: “Explain the tides”.")
    assert "1 message and 2 tools (get_weather, get_time)" in said


def test_verbosity_is_heard() -> None:
    low, medium, high = (say("Explain the tides", verbosity=word) for word in ("low", "medium", "high"))
    assert len(low) < len(medium) < len(high)


def test_a_coding_agent_is_told_what_it_can_do() -> None:
    assert "create hello.txt with hello world" in say("hello", *CODEX)


def test_images_and_other_media_are_noticed() -> None:
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.jpg"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]
    said = say(parts)
    assert "You said: “what is this?”. With it came 2 images and 1 attachment." in said


def test_the_conversation_is_remembered() -> None:
    before = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Nice to meet you."},
    ]
    named = [*before, {"role": "user", "content": "What is my name?"}]
    other = [*before, {"role": "user", "content": "Go on"}]
    assert say("", messages=named) == "Your name is Ada."
    assert "4 messages, instructions and no tools" in say("", messages=other)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "<environment_context>\n<cwd>/tmp</cwd>\n</environment_context>"},
        {"role": "user", "content": [{"type": "text", "text": "[from the output of `view_image`]"}]},
        {"role": "developer", "content": "Say nothing."},
    ],
    ids=["context", "media of a tool", "developer"],
)
def test_what_no_person_wrote_is_not_answered(message: dict[str, object]) -> None:
    assert say("", messages=[{"role": "user", "content": "say hi"}, message]) == "hi"


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "<b>bold</b>"}],
        [{"role": "system", "content": "say hi"}],
        [{"role": "assistant", "content": None}],
    ],
    ids=["only tags", "only instructions", "only the assistant"],
)
def test_a_conversation_without_a_person_is_answered_as_well(messages: list[dict[str, object]]) -> None:
    assert say("", messages=messages)


def test_long_answers_have_an_end() -> None:
    assert say("count to 999999999").endswith(
        f", {MOST_NUMBERS}. That is 10000 numbers, and I count no further at once."
    )
    assert len(say("lorem 999999999").split()) == MOST_WORDS
    assert len(say("x" * 100_000)) < 2_000
