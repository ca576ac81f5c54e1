"""What a provider says of its rate limits, picked from the headers of its answer, for the client whose answer it is.

In: the headers of one answer. Out: those named `x-ratelimit-…`, in lower case. Worth knowing: they come from outside
and go into our own head, so names and values are held to what belongs there, and to a number of them; nothing else of
a provider's head travels on. `openai-model` above all must not: Codex takes another name than it asked for as a sign
that its account was flagged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from isthmus.scrub import Scrubber

MAX_HEADERS: Final = 32
MAX_VALUE: Final = 128
_PREFIX: Final = "x-ratelimit-"
_NAME: Final = re.compile(r"x-ratelimit-[a-z0-9][a-z0-9-]{0,51}")
_VALUE: Final = re.compile(rf"[ -~]{{1,{MAX_VALUE}}}")


def rate_limits(headers: Mapping[str, str], scrubber: Scrubber) -> dict[str, str]:
    """Empty where it says nothing."""
    found: dict[str, str] = {}
    for name in headers:
        if name[:12].lower() == _PREFIX and len(found) < MAX_HEADERS:
            lower, value = name.lower(), headers[name].strip()
            if _NAME.fullmatch(lower) and _VALUE.fullmatch(value):
                found[lower] = scrubber.text(value)
    return found
