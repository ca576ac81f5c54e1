"""Decides which tools to call, with what: the same for the same question.

In: a `Question`. Out: the calls of this turn, or none when it is time to speak. The text is read in steps
("create a.txt, then run `cat a.txt`"): each step is one round of calls, and after the last the model
answers. A tool is called when the text has its name, asks for the deed it does, or shares its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from isthmus.demo.answers import is_command
from isthmus.demo.arguments import fill_arguments, list_field, shape_of
from isthmus.demo.deeds import find_command, find_file
from isthmus.demo.question import Question, Refused, Tool
from isthmus.demo.supply import words_of
from isthmus.demo.words import MOST_READ, read_words, word_set


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: str
    """JSON, unless the user ordered otherwise."""


_STEP: Final = re.compile(
    r"(?P<kept>`[^`]*`|\"[^\"]*\"|“[^”]*”)|(?P<cut>\s*[,;.]?\s*(?:\band\s+)?\bthen\b[,:]?\s*|,?\s+and\s+(?=(?:run|execute)\b))",
    re.IGNORECASE,
)
_NO_TOOLS: Final = re.compile(r"\b(?:no|without|don['’]?t|do not|never)\b.{0,20}\btools?\b", re.IGNORECASE)
_VERBS: Final = word_set("""
    get set list create make add update delete remove find fetch read write send do call run use tool function user
    my new current input output request data info by of the for and to from in on with mcp functions codex show open
    close start stop id ids all any
""")
"""Words in the names of tools that fit too many texts to mean anything alone."""


def choose_calls(question: Question) -> list[Call]:
    ordered = question.directives.calls
    if ordered:
        return _ordered(question, ordered) if not question.rounds else []
    if not question.tools or question.choice == "none":
        return []
    steps = _split_steps(question.text[:MOST_READ])
    if question.choice == "required":
        return _forced(question, steps) if not question.rounds else []
    if _NO_TOOLS.search(question.text):
        return []
    rounds = [calls for calls in (_calls_for(question, step, question.text) for step in steps) if calls]
    return rounds[question.rounds] if question.rounds < len(rounds) else []


def _ordered(question: Question, ordered: Sequence[tuple[str, str]]) -> list[Call]:
    known = [tool.name for tool in question.tools]
    for name, _ in ordered:
        if name not in known:
            offered = ", ".join(known) or "none"
            raise Refused(400, f"the directive calls `{name}`, which is not among the tools: {offered}", "unknown_tool")
    return [Call(name, arguments) for name, arguments in ordered]


def _split_steps(text: str) -> list[str]:
    steps, begin = [], 0
    for found in _STEP.finditer(text):
        if found["cut"]:
            steps.append(text[begin : found.start()])
            begin = found.end()
    return [step for step in (*steps, text[begin:]) if step.strip()] or [text]


def _forced(question: Question, steps: list[str]) -> list[Call]:
    if question.named:
        tool = next(tool for tool in question.tools if tool.name == question.named)
        return _spread(question, tool, steps[0])
    return _calls_for(question, steps[0], question.text, forced=True) or _spread(question, question.tools[0], steps[0])


def _calls_for(question: Question, step: str, whole: str, *, forced: bool = False) -> list[Call]:
    tools = _mentioned(question.tools, step) or _for_deed(question.tools, step)
    if not tools and (forced or not is_command(whole)):
        tools = _alike(question.tools, step)
    calls = [call for tool in tools for call in _spread(question, tool, step)]
    return calls if question.parallel else calls[:1]


def _mentioned(tools: Sequence[Tool], step: str) -> list[Tool]:
    """The tools whose name is in the text, in the order of the text."""
    found: list[tuple[int, Tool]] = []
    for tool in tools:
        short = tool.name.rsplit("__", 1)[-1]
        spelled = {tool.name, short, " ".join(words_of(short))}
        places = [match.start() for name in spelled if (match := _spot(name, step))]
        if places:
            found.append((min(places), tool))
    return [tool for _, tool in sorted(found, key=lambda pair: pair[0])]


def _spot(name: str, step: str) -> re.Match[str] | None:
    # Outside of code and file names: `cat add.py` does not ask for a tool named `cat` or `add`.
    prose = re.sub(r"`[^`]* [^`]*`", " ", step)
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", prose, re.IGNORECASE)


def _for_deed(tools: Sequence[Tool], step: str) -> list[Tool]:
    """The best tool for a file to make, or a command to run."""
    shapes = {shape_of(tool): tool for tool in reversed(tools)}
    wanted = ["operation", "patch", "write", "shell"] if find_file(step) else ["shell"] if find_command(step) else []
    return [shapes[shape] for shape in wanted if shape in shapes][:1]


def _alike(tools: Sequence[Tool], step: str) -> list[Tool]:
    """For each word that the text shares with the name of a tool, the tool that fits best."""
    said = [_stem(word) for word in re.findall(r"\w+", step.lower())]
    chosen: list[Tool] = []
    for word in dict.fromkeys(said):
        fitting = [tool for tool in tools if word in _name_stems(tool) - _VERBS]
        best = max(fitting, key=lambda tool: len(_name_stems(tool) & set(said)), default=None)
        if best is not None and best not in chosen:
            chosen.append(best)
    return chosen


def _name_stems(tool: Tool) -> set[str]:
    return {_stem(word) for word in words_of(tool.name)}


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def _spread(question: Question, tool: Tool, step: str) -> list[Call]:
    """One call, or one for each thing of a list that the tool takes one at a time."""
    words = read_words(step)
    things = words.listed if question.parallel and list_field(tool) else ()
    if len(things) < 2:
        return [_call(tool, fill_arguments(tool, step))]
    return [_call(tool, fill_arguments(tool, step, replace(words, things=(thing,)))) for thing in things]


def _call(tool: Tool, arguments: object) -> Call:
    return Call(tool.name, msgspec.json.encode(arguments).decode())
