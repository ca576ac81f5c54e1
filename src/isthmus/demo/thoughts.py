"""What the demo model thinks aloud: one thought for little effort, many for much, about this very request."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, cycle, islice
from typing import Final

from isthmus.demo.choose import Call
from isthmus.demo.question import Question

_THOUGHTS: Final = {"none": 0, "minimal": 1, "low": 2, "medium": 4, "high": 8, "xhigh": 12, "max": 16}
_MEDIUM: Final = _THOUGHTS["medium"]
_DOUBTS: Final = (
    "Is there another way to read the question? The plain reading is the likely one.",
    "Would the same question tomorrow get the same answer? It must: there is no clock and no chance in me.",
    "Has the whole request been used? What matters of it has.",
    "Once more from the beginning, then: the same result.",
)


def think(question: Question, calls: Sequence[Call], *, always: bool) -> str:
    """The reasoning, or nothing. `always`: for a model that cannot be kept from thinking."""
    effort = question.effort
    count = _THOUGHTS.get(effort, _MEDIUM) if effort else _MEDIUM if always else 0
    if always:
        count = max(count, 1)
    return " ".join(islice(chain(_observations(question, calls), cycle(_DOUBTS)), count))


def _observations(question: Question, calls: Sequence[Call]) -> list[str]:
    words = question.text.split()
    shown = " ".join(words[:12]) + (" …" if len(words) > 12 else "")
    seen = [f"The user wrote {len(words)} {'word' if len(words) == 1 else 'words'}: “{shown}”."]
    if question.results:
        seen.append(f"Tools have answered so far: {len(question.results)}.")
    if calls:
        seen.extend(f"The tool {call.name} fits; call it with {call.arguments[:200]}." for call in calls)
    elif question.tools:
        seen.append(f"None of the {len(question.tools)} tools needs to be called now.")
    if question.format in ("json_schema", "json_object") and not calls:
        seen.append("The answer has to be JSON, and nothing but JSON.")
    if question.images:
        seen.append("There are images to look at.")
    return seen
