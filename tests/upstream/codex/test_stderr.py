from __future__ import annotations

import pytest

from isthmus.upstream.codex.stderr import StderrTail, redact


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
