from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.providers import load_provider
from isthmus.upstream.codex.models import describe_entry, read_models

CODEX = load_provider("codex")
ENTRY = {
    "id": "gpt-9",
    "displayName": "GPT-9",
    "supportedReasoningEfforts": [{"reasoningEffort": "ultra"}, {"reasoningEffort": "low"}],
    "inputModalities": ["text", "image", "smell"],
}


class Told:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def models(self) -> list[dict[str, Any]]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return list(self._answer)


def test_an_entry_says_more_than_the_file() -> None:
    known = describe_entry(ENTRY, CODEX)
    assert (known.name, known.title) == ("codex/gpt-9", "GPT-9")
    assert known.efforts == ("low",)
    assert known.input == ("image",)
    assert known.context == 272_000


def test_an_entry_that_says_little_is_filled_from_the_file() -> None:
    known = describe_entry({"id": "gpt-6-sol", "supportedReasoningEfforts": "?"}, CODEX)
    assert known.title == "gpt-6-sol"
    assert known.efforts == ("low", "medium", "high", "xhigh", "max")
    assert known.input == ("image",)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        pytest.param([ENTRY, {"id": None}], ["gpt-9"], id="an entry without a name"),
        pytest.param(UpstreamFailed("down"), [], id="a process that is down"),
    ],
)
def test_what_cannot_be_listed_is_left_out(answer: Any, names: list[str]) -> None:
    listed = asyncio.run(read_models(Told(answer), CODEX))
    assert [known.model for known in listed] == names
