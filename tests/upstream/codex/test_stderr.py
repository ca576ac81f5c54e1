from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.scrub import Scrubber
from isthmus.upstream.codex.options import CodexOptions, child_secrets
from isthmus.upstream.codex.stderr import StderrTail, redact, redact_params


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abcdefgh1234", "Authorization: [redacted] [redacted]"),
        ("key sk-proj-abcdefghij used", "key [redacted] used"),
        ('{"access_token":"abc123","x":1}', '{"access_token":"[redacted]","x":1}'),
        ("api_key=verysecret rest", "api_key=[redacted] rest"),
        ("jwt eyJhbGciOiJI.eyJzdWIi.c2ln end", "jwt [redacted] end"),
        ("\x1b[31mERROR\x1b[0m plain words", "ERROR plain words"),
    ],
    ids=["header", "openai-key", "json", "assignment", "jwt", "colours"],
)
def test_secrets_and_colours_do_not_survive(text: str, clean: str) -> None:
    assert "abc123" not in redact(text)
    assert redact(text).replace("Bearer [redacted]", "[redacted] [redacted]") == clean


def test_only_the_last_lines_are_kept_and_each_is_bounded() -> None:
    tail = StderrTail(lines=2, width=5)
    for line in (b"first", b"second", b"", b"third-and-long\n", b"\xff"):
        tail.add(line)
    assert tail.text() == "third\n\ufffd"


def test_what_the_child_was_handed_is_not_in_its_words() -> None:
    options = CodexOptions(
        binary=Path("codex"),
        environment={
            "MY_KEY": "plain words, no look",
            "PROXY": "http://joe:hush-hush@proxy:1",
            "FILE": "/etc/long/name",
        },
    )
    scrub = Scrubber(child_secrets(options)).text
    tail = StderrTail(scrub=scrub, width=60)
    tail.add(b"bad: " + b"x" * 45 + b"plain words, no look")  # the cut goes through it
    tail.add(b"http://joe:hush-hush@proxy:1 or /etc/long/name")
    assert tail.text() == f"bad: {'x' * 45}<redacted>\nhttp://<redacted>:<redacted>@proxy:1 or /etc/long/name"
    told = {"turn": {"error": {"message": "no plain words, no look; sk-proj-abcdefghij"}, "n": [1, None]}}
    assert redact_params(told, scrub) == {"turn": {"error": {"message": "no <redacted>; [redacted]"}, "n": [1, None]}}
