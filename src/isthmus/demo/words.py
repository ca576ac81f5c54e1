"""Reads a text for what can fill a form: names, numbers, quotes, addresses, dates, files.

In: the user's text. Out: `Words`. It knows no grammar: capital letters, quotes and a few small words are
enough to find `Paris` in "what is the weather in Paris?", and `Alice` and `Bob` in a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_QUOTED: Final = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)")
_EMAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL: Final = re.compile(r"https?://[^\s\"'<>`]*[\w/]")
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DATE: Final = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?|today|tonight|tomorrow|(?:next |this )?{_DAY})\b",
    re.IGNORECASE,
)
_FILE: Final = re.compile(r"(?<![\w@/])(?:~|\.{1,2})?/?[\w-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,7}\b(?!\()")
_WORD: Final = re.compile(r"[^\W_][\w'’-]*")
_OBJECT: Final = re.compile(
    r"\b(?:in|for|at|about|of|to|from|on|is)\s+((?:(?!\b(?:in|for|at|to|from|is)\b)[^.?!;:\n])+)"
)
_JOINT: Final = re.compile(r"\s*(?:,\s*(?:and|or)\s+|,\s*|\s+(?:and|or)\s+|\s*&\s*)(?:the\s+|in\s+|for\s+)?")


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


COMMON: Final = word_set("""
    a about actually add after all also am an and any are as ask at be been before book by calculate call can check
    compute convert copy could count create days delete describe did do does don draw each echo every execute explain
    extract fetch file files fill find first following for from generate get give go going has have hello help her here
    hey hi his how i if i'd i'm in into is it it's its json just know let let's like list look make many may me might
    more most much must my need next no not now of off ok okay on once one open or our out over please plot print
    put read really repeat reply respond return run say schedule search see send set she should show so some start
    summarise summarize tell text thank thanks that that's the their them then there these they thing things think
    this those time today tomorrow tonight tool tools translate try two update use using want was we weather were
    what what's when where which while who whom whose why will with would write yes yesterday you your
""")
"""Words that say little: no names, even where a sentence begins with them."""


MOST_READ: Final = 4_000
"""Characters that are read: nobody writes what to do any longer."""


class Found(NamedTuple):
    at: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Words:
    text: str
    quoted: tuple[str, ...]
    things: tuple[str, ...]
    """Names and quotes in order; without any, what follows small words such as `in`; without that, the last word."""
    listed: tuple[str, ...]
    """The things that stand in one list: `Paris, London and Rome`."""
    numbers: tuple[int | float, ...]
    emails: tuple[str, ...]
    urls: tuple[str, ...]
    dates: tuple[str, ...]
    files: tuple[str, ...]


def read_words(text: str) -> Words:
    text = text[:MOST_READ]
    quotes = [Found(found.start(), found.end(), _inside(found)) for found in _QUOTED.finditer(text)]
    special = [*_EMAIL.finditer(text), *_URL.finditer(text), *_DATE.finditer(text)]
    masked = [(quote.at, quote.end) for quote in quotes] + [found.span() for found in special]
    names = [name for name in _names(text) if not any(at <= name.at < end for at, end in masked)]
    found = sorted(quotes + names)
    things = [thing.text for thing in found] or _objects(text)
    return Words(
        text=text,
        quoted=tuple(quote.text for quote in quotes),
        things=tuple(things or _last(text)),
        listed=tuple(_listed(text, found) if found else things if len(things) > 1 else ()),
        numbers=tuple(float(n) if "." in n else int(n) for n in _NUMBER.findall(text)),
        emails=tuple(_EMAIL.findall(text)),
        urls=tuple(_URL.findall(text)),
        dates=tuple(_DATE.findall(text)),
        files=tuple(match for match in _FILE.findall(_URL.sub(" ", text))),
    )


def telling(text: str) -> list[str]:
    """The words that mean something, in lower case."""
    return [word for word in (found.lower() for found in _WORD.findall(text)) if word not in COMMON]


def _inside(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group)


def _names(text: str) -> list[Found]:
    """Runs of capitalised words."""
    names: list[Found] = []
    for found in _WORD.finditer(text):
        word = found[0].removesuffix("'s").removesuffix("’s")
        if not word[0].isupper() or word.lower() in COMMON:
            continue
        last = names[-1] if names else None
        if last and text[last.end : found.start()] == " ":
            names[-1] = Found(last.at, found.start() + len(word), f"{last.text} {word}")
        else:
            names.append(Found(found.start(), found.start() + len(word), word))
    return names


def _listed(text: str, found: list[Found]) -> list[str]:
    """The longest run of things with nothing but commas and `and` between them."""
    best: list[Found] = []
    run: list[Found] = []
    for thing in found:
        run = [*run, thing] if run and _JOINT.fullmatch(text[run[-1].end : thing.at]) else [thing]
        best = run if len(run) > len(best) else best
    # Two with a comma between them are one place more often than two: San Francisco, CA.
    joined = any(text[one.end : other.at].strip(" ,") for one, other in pairwise(best))
    return [thing.text for thing in best] if joined or len(best) > 2 else []


def _objects(text: str) -> list[str]:
    """What stands behind the last small word, for those who write in lower case."""
    found = list(_OBJECT.finditer(text.lower()))
    if not found:
        return []
    words = (" ".join(telling(part)) for part in re.split(_JOINT, found[-1][1]))
    return [thing for thing in words if thing]


def _last(text: str) -> list[str]:
    return telling(text)[-1:]
