"""Patterns in the worker process."""

from __future__ import annotations

import subprocess
import sys

from isthmus.observe.traces.patterns import SCRUBBER, decode_scrub, encode_scrub, run_scrub


def test_each_pattern_is_applied_to_each_text() -> None:
    payload = encode_scrub([r"\d+", "(?i)zeus"], ["a1", "Zeus 22", "", "\ud800 é"])
    assert decode_scrub(run_scrub(payload)) == ["a<redacted>", "<redacted> <redacted>", "", "\ud800 é"]


def test_it_loads_next_to_nothing() -> None:
    module = SCRUBBER.partition(":")[0]
    heavy = ("msgspec", "asyncio", "isthmus.bridge")
    code = f"import sys, {module}; print(*[name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
