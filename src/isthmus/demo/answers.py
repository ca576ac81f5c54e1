"""What the demo model says: a handful of skills, and otherwise what it noticed about the request.

In: a `Question`. Out: short prose. No clock, no chance, no markdown: the same words for the same question.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from isthmus.demo.arguments import shape_of
from isthmus.demo.arithmetic import find_expression, solve
from isthmus.demo.question import Question, Result

MOST_NUMBERS: Final = 10_000
MOST_WORDS: Final = 50_000
MOST_SHOWN: Final = 500

_LOREM: Final = (
    "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna "
    "aliqua ut enim ad minim veniam quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo"
)
_TRY: Final = (
    "Try “count to 10”, “what is 12*7?”, “say good morning”, “lorem 200” for a long answer, "
    "or offer me a tool such as get_weather and ask about the weather in Paris."
)
_TRY_AGENT: Final = (
    "Try “create hello.txt with hello world”, “run `ls`”, or both with the word “then” between them; "
    "“count to 10” and “lorem 200” need no tools."
)
_COUNT: Final = re.compile(
    r"\W*(?:please\s+|can you\s+)?count\s+(?:(?P<down>down|backwards?)\s+)?(?:from\s+(?P<first>-?\d+)\s*)?(?:up\s+)?"
    r"(?:(?:down\s+)?to\s+(?P<last>-?\d+))?\b",
    re.IGNORECASE,
)
_SAY: Final = re.compile(
    r"\W*(?:please\s+)?(?:say|repeat|echo)\b\s*(?:after me\b)?\s*[:,]?\s*(?P<words>\S.*)", re.I | re.S
)
_TIMES: Final = re.compile(r"(?P<words>.+?)\s+(?P<times>\d{1,4})\s+times\W*", re.IGNORECASE | re.DOTALL)
_LOREM_ASKED: Final = re.compile(r"\W*lorem(?:\s+ipsum)?\s+(\d+)", re.IGNORECASE)
_HELLO: Final = re.compile(r"\W*(?:hello|hi|hey|good (?:morning|day|evening)|greetings)\b", re.IGNORECASE)
_HELP: Final = re.compile(r"\W*(?:help|what can you do|who are you|what are you)\b", re.IGNORECASE)
_MY_NAME: Final = re.compile(r"\b[Mm]y name is\s+([^\W\d_][\w'’-]*(?:\s+[A-Z][\w'’-]*)*)")
_ASKS_NAME: Final = re.compile(r"\bwhat(?:\s+is|['’]s)\s+my\s+name\b|\bwho am i\b", re.IGNORECASE)


def compose_answer(question: Question) -> str:
    """What to say when there is nothing to call."""
    if question.results:
        return _report(question.results)
    for skill in _SKILLS:
        said = skill(question)
        if said is not None:
            return said
    return _notice(question)


def is_command(text: str) -> bool:
    """Whether the text orders words: then no tool is needed, however much its description resembles the text."""
    ordered = (_SAY, _LOREM_ASKED, _HELLO, _HELP)
    return any(pattern.match(text) for pattern in ordered) or _count_range(text) is not None


def _count(question: Question) -> str | None:
    found = _count_range(question.text)
    if found is None:
        return None
    first, last = found
    step = 1 if last >= first else -1
    stop = first + step * min(abs(last - first), MOST_NUMBERS - 1)
    numbers = ", ".join(str(number) for number in range(first, stop + step, step))
    return numbers + ("." if stop == last else f". That is {MOST_NUMBERS} numbers, and I count no further at once.")


def _count_range(text: str) -> tuple[int, int] | None:
    found = _COUNT.match(text)
    if not found or not (found["last"] or (found["down"] and found["first"])):
        return None
    ends = [int(digits[:9]) for digits in (found["first"] or "1", found["last"] or "1")]
    return ends[0], ends[1]


def _say(question: Question) -> str | None:
    found = _SAY.match(question.text)
    if not found:
        return None
    words, times = found["words"].strip(), 1
    if len(words) < 2_000 and (repeated := _TIMES.fullmatch(words)):
        words, times = repeated["words"], int(repeated["times"])
    for left, right in ('""', "“”", "''", "``"):
        if len(words) > 1 and words[0] == left and words[-1] == right:
            words = words[1:-1]
    return " ".join([words] * max(1, min(times, 1000)))


def _lorem(question: Question) -> str | None:
    found = _LOREM_ASKED.match(question.text)
    if not found:
        return None
    count = max(1, min(int(found[1][:9]), MOST_WORDS))
    latin = _LOREM.split()
    words = [latin[at % len(latin)] for at in range(count)]
    sentences = [" ".join(words[at : at + 12]).capitalize() + "." for at in range(0, count, 12)]
    return " ".join(sentences)


def _sum(question: Question) -> str | None:
    expression = find_expression(question.text)
    value = solve(expression) if expression else None
    if expression is None or value is None:
        return None
    return f"{expression} is {value}."


def _remember(question: Question) -> str | None:
    if _ASKS_NAME.search(question.text):
        names = [found[1] for said in question.earlier for found in _MY_NAME.finditer(said)]
        return f"Your name is {names[-1]}." if names else "You have not told me your name in this conversation."
    if found := _MY_NAME.search(question.text):
        return f"Nice to meet you, {found[1]}. Ask me for your name later to see that the conversation is kept."
    return None


def _greet(question: Question) -> str | None:
    if not (_HELLO.match(question.text) or _HELP.match(question.text)) or len(question.text.split()) > 8:
        return None
    return (
        "Hello! I am the demo model, built into Isthmus. I need no key and no network, "
        f"and I answer the same question the same way every time. {_suggestion(question)}"
    )


def _suggestion(question: Question) -> str:
    """What to try next; to a coding agent, something that it can do."""
    at_work = any(shape_of(tool) in ("patch", "operation", "shell") for tool in question.tools)
    return _TRY_AGENT if at_work else _TRY


_SKILLS: Final[tuple[Callable[[Question], str | None], ...]] = (_count, _say, _lorem, _sum, _remember, _greet)


def _notice(question: Question) -> str:
    """Proof that everything arrived."""
    sentences = [f"You said: “{_shown(question.text)}”." if question.text else "Your message has no text."]
    came = [_many(count, noun) for count, noun in ((question.images, "image"), (question.media, "attachment")) if count]
    if came:
        sentences.append(f"With it came {' and '.join(came)}.")
    if question.verbosity == "low":
        return " ".join(sentences)
    seen = [_many(question.messages, "message")] + (["instructions"] if question.instructed else [])
    offered = ", ".join(tool.name for tool in question.tools[:10]) + (", …" if len(question.tools) > 10 else "")
    tools = f"{_many(len(question.tools), 'tool')} ({offered})" if question.tools else "no tools"
    sentences.append(f"I am the demo model; I was sent {', '.join(seen)} and {tools}.")
    sentences.append(_suggestion(question))
    if question.verbosity == "high":
        sentences.append("I stream at once; the model demo-paced takes its time, and demo-thinking thinks aloud first.")
    return " ".join(sentences)


def _report(results: tuple[Result, ...]) -> str:
    told = [_retell(result) for result in results]
    whole = "Done. " + "\n".join(told) if len(told) == 1 else "Done.\n" + "\n".join(told)
    return whole if len(whole) <= 4 * MOST_SHOWN else whole[: 4 * MOST_SHOWN] + "…"


def _retell(result: Result) -> str:
    words = _shown(_plain(result.text))
    return f"{result.name} answered: {words}" if words else f"{result.name} finished without a word."


def _plain(text: str) -> str:
    """Without the header that agents put above the output of a command; flat JSON as words."""
    _, found, output = text.partition("\nOutput:\n")
    text = output if found and text.startswith(("Chunk ID:", "Exit code:", "Wall time", "Script ")) else text
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.strip()
    if isinstance(value, dict) and not any(isinstance(inner, dict | list) for inner in value.values()):
        return ", ".join(f"{name}: {inner}" for name, inner in value.items())
    return value if isinstance(value, str) else text.strip()


def _shown(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN].rstrip() + "…"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
