"""Patterns come from clients: one that backtracks without end must not hold the loop that serves everybody."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest

from isthmus.demo.pattern_sample import matches, sample_pattern

ENDLESS = ["^(a|a)*b$", "^(a+)+b$", r"^(?=a)(a|aa)*b$"]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_that_backtracks_without_end_is_given_up(pattern: str) -> None:
    """In a process of its own: Python's `re` would hold this one for ever."""
    program = f"from isthmus.demo.pattern_sample import matches; print(matches({pattern!r}, 'a' * 60))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^[a-z]{3}$", "abc", True),
        ("b", "abc", True),
        ("(?<year>[0-9]{4})", "in 2024", True),
        ("^b", "abc", False),
        ("(", "(", False),
    ],
)
def test_a_pattern_matches_as_json_schema_means_it(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "least"),
    [
        (r"^\d{4}-\d{2}$", 0),
        (r"^(foo|bar)+$", 0),
        (r"^[A-Za-z_][A-Za-z0-9_]*$", 12),
        (r"^(?:a|b)(?<name>c)\.(?P<other>d)$", 0),
        (r"^[^abc\s]+$", 5),
        (r"\$\w+\s?\S\D\W", 0),
        (r"^[a\-z\]]$", 0),
        (r"^#[0-9a-f]{6}$", 0),
        (r"^x{3,5}?$", 5),
        (r"^[[a]$", 0),
        (r"^[^a]b{2000}$", 0),
    ],
)
def test_a_pattern_is_matched(pattern: str, least: int) -> None:
    text = sample_pattern(pattern, least)
    assert text is not None
    assert len(text) >= least
    assert jsonschema_rs.is_valid({"pattern": pattern.replace("?P<", "?<")}, text)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "[", "(", "*", "a{20000}"])
def test_what_cannot_be_sampled_is_left(pattern: str) -> None:
    assert sample_pattern(pattern) is None


HUGE: dict[str, Any] = {
    "a long text": {"type": "string", "minLength": 10**9},
    "a long list": {"type": "array", "minItems": 10**9, "items": {"type": "integer"}},
    "lists of lists": {"type": "array", "minItems": 10**4, "items": {"type": "array", "minItems": 10**4}},
    "many fields": {"type": "object", "minProperties": 10**9},
    "repeats of repeats": {"type": "string", "pattern": "^((((a{999}){999}){999}){999})$"},
    "doubled again and again": {
        "$ref": "#/$defs/d0",
        "$defs": {
            "d28": {"type": "string"},
            **{
                f"d{n}": {
                    "type": "object",
                    "required": ["a", "b"],
                    "properties": {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "ab"},
                }
                for n in range(28)
            },
        },
    },
}


@pytest.mark.parametrize("schema", HUGE.values(), ids=HUGE)
def test_a_schema_that_asks_for_more_than_the_memory_holds_gets_less(schema: dict[str, Any]) -> None:
    """In a process of its own, with little memory."""
    program = (
        "import json, sys, resource; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))\n"
        "from isthmus.demo.schema_sample import sample\n"
        "print(len(json.dumps(sample(json.loads(sys.argv[1])))))"
    )
    command = [sys.executable, "-c", program, json.dumps(schema)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert int(done.stdout) < 2_000_000
