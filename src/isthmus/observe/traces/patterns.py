"""The operator's patterns at work, in a worker process: it loads next to nothing, so that one is ready at once.

In: patterns and texts. Out: the texts, in their order, with what was found hidden. Nobody knows how long an expression
takes, and the interpreter stands still meanwhile: where this runs it can be killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

SCRUB: Final = "scrub"
SCRUBBER: Final = "isthmus.observe.traces.patterns:run_scrub"
"""The kind of the job, and who does it."""
_HIDDEN: Final = "<redacted>"


def encode_scrub(patterns: Sequence[str], texts: Sequence[str]) -> bytes:
    return json.dumps([list(patterns), list(texts)]).encode()


def run_scrub(payload: bytes) -> bytes:
    patterns, texts = json.loads(payload)
    for pattern in map(re.compile, patterns):
        texts = [pattern.sub(_HIDDEN, text) for text in texts]
    return json.dumps(texts).encode()


def decode_scrub(found: bytes) -> list[str]:
    texts: list[str] = json.loads(found)
    return texts
