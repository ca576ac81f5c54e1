"""Rules for messages, read from a model's chat template: by the sentences that it would raise, and by nothing else.

In: the text of a Jinja template, as llama.cpp's `/props` gives it. Out: a `Word`. Worth knowing: a template is a
program, and nobody runs it here; but what it refuses, it refuses with `raise_exception("…")`, in words that are the
same in all templates of a family. A template that raises nothing says nothing, and our files say the rest. What the
sentences are (read on 2026-11-16):

    Mistral, Devstral   "After the optional system message, conversation roles must alternate user and assistant …",
                        "Only user and assistant roles are supported, with the exception of an initial optional system
                        message!"
    Gemma 1 to 3        "Conversation roles must alternate user/assistant/…"; 1 and 2: "System role not supported"
    Llama 2             the same, and "Only user and assistant roles are supported!"
    Qwen3.5             "System message must be at the beginning.", "No user query found in messages."
    Llama 3, Qwen3, ChatML, Phi, DeepSeek raise nothing about the order of roles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from isthmus.providers.word.told import Word

_READ: Final = 128 * 1024
_pattern: Final = partial(re.compile, flags=re.IGNORECASE)
_RAISED: Final = re.compile(r"""raise_exception\(\s*(?:"([^"\n]{1,400})|'((?:[^'\\\n]|\\.){1,400}))""")
_ALTERNATE: Final = _pattern(r"roles must alternate|must alternate (between )?user")
_FIRST: Final = _pattern(
    r"initial (optional )?system message|system message must be (at the beginning|(the )?first)"
    r"|system role (is )?not supported|only user and assistant roles are supported"
)
_ASKED: Final = _pattern(r"no user (query|message) found")
_AFTER_TOOL: Final = _pattern(
    r"\buser\b.{0,40}\bafter\b.{0,30}\btool\b|\btool\b.{0,40}(must|should) be followed by.{0,20}assistant"
)
_RULES: Final[tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...]] = (
    (_ALTERNATE, {"turns": "alternating", "system": "leading"}),
    (_FIRST, {"system": "leading"}),
    (_ASKED, {"needs_user": True}),
    (_AFTER_TOOL, {"after_tool": "assistant"}),
)


def read_template(text: str) -> Word:
    """What the template refuses, as far as its own sentences say so."""
    raised = [one or two for one, two in _RAISED.findall(_without_comments(text[:_READ]))]
    found: dict[str, Any] = {}
    for pattern, facts in _RULES:
        if any(pattern.search(sentence) for sentence in raised):
            found |= facts
    return Word(**found)


def _without_comments(text: str) -> str:
    """Not by a pattern: one that looks for the end of each beginning goes over the text as often as there are any."""
    kept, at = [], 0
    while (start := text.find("{#", at)) >= 0 and (end := text.find("#}", start + 2)) >= 0:
        kept.append(text[at:start])
        at = end + 2
    return "".join((*kept, text[at:]))
