"""What a client developer can order in the user's text: `[[demo: …]]`.

In: the text of the last user message. Out: the text without its directives, and `Directives`.

| directive                      | what the model does                                                   |
|--------------------------------|-----------------------------------------------------------------------|
| `[[demo: error 429]]`          | answers with that HTTP status, 400 to 599; 429 and 503 say when to retry |
| `[[demo: fail]]`               | sends an error object in the middle of the stream; whole: HTTP 500    |
| `[[demo: cut]]`                | closes the connection in the middle of the answer                     |
| `[[demo: garble]]`             | sends a chunk that is no JSON in the middle; whole: a body that is none |
| `[[demo: slow 5]]`             | waits so many seconds before the first token                          |
| `[[demo: pace 20]]`            | streams so many tokens per second                                     |
| `[[demo: length]]`             | stops halfway with `finish_reason: "length"`                          |
| `[[demo: refuse]]`             | refuses, in `refusal`                                                 |
| `[[demo: bad json]]`           | breaks its JSON: the answer's, or that of the arguments of its calls  |
| `[[demo: call NAME {"a": 1}]]` | calls this tool with exactly these arguments; several make several calls |

An unknown directive is an error that lists the known ones: a typing error must not look like an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

Break = Literal["cut", "fail", "garble"]

MAX_WAIT: Final = 600.0

_DIRECTIVE: Final = re.compile(r"\[\[\s*demo\s*:\s*(.*?)\s*\]\](?![\]}])", re.IGNORECASE | re.DOTALL)
_KNOWN: Final = "error N, fail, cut, garble, slow S, pace N, length, refuse, bad json, call NAME {…}"


@dataclass(frozen=True, slots=True)
class Directives:
    error: int | None = None
    breaks: Break | None = None
    wait: float = 0.0
    pace: float | None = None
    length: bool = False
    refuse: bool = False
    bad_json: bool = False
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments, as they were written."""


class BadDirective(ValueError):
    """A directive that nobody knows, or that lacks its number."""


def read_directives(text: str) -> tuple[str, Directives]:
    """The text without directives, and what they order."""
    found = Directives()
    for match in _DIRECTIVE.finditer(text):
        found = _add(found, match[1])
    return _DIRECTIVE.sub("", text).strip(), found


def _add(found: Directives, order: str) -> Directives:
    word, _, rest = order.partition(" ")
    rest = rest.strip()
    match word.lower(), rest.lower():
        case "error", _:
            return replace(found, error=int(_number(order, rest, 400, 599)))
        case ("cut" | "fail" | "garble") as breaks, "":
            return replace(found, breaks=breaks)
        case "slow", _:
            return replace(found, wait=_number(order, rest, 0, MAX_WAIT))
        case "pace", _:
            return replace(found, pace=_number(order, rest, 0.1, 100_000))
        case "length", "":
            return replace(found, length=True)
        case "refuse", "":
            return replace(found, refuse=True)
        case "bad", "json":
            return replace(found, bad_json=True)
        case "call", name if name:
            tool, _, arguments = rest.partition(" ")
            return replace(found, calls=(*found.calls, (tool, arguments.strip() or "{}")))
        case _:
            raise BadDirective(f"the demo model does not know the directive `{order}`; it knows: {_KNOWN}")


def _number(order: str, given: str, low: float, high: float) -> float:
    try:
        number = float(given)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise BadDirective(f"the directive `{order}` needs a number from {low:g} to {high:g}")
    return number
