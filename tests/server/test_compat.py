"""Whose spelling a caller gets."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from isthmus.bridge.types.clients import ANY_CLIENT, CODEX, SPECIFIED, SUMMARY_READERS
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL
from isthmus.server.compat import spelled_for


def asking(value: str | None = None) -> Any:
    return {"headers": [] if value is None else [(b"isthmus-compat", value.encode())]}


@pytest.mark.parametrize(
    ("header", "setting", "expected"),
    [
        (None, "openai", ANY_CLIENT),
        (None, "open-responses", SPECIFIED),
        ("open-responses", "openai", SPECIFIED),
        (" Open-Responses ", "openai", SPECIFIED),
        ("openai", "open-responses", ANY_CLIENT),
        ("", "open-responses", SPECIFIED),
    ],
)
def test_the_header_outranks_the_setting(header: str | None, setting: str, expected: Any) -> None:
    assert spelled_for(LOCAL, asking(header), setting).client is expected


def test_codex_is_spoken_to_as_it_reads() -> None:
    caller = replace(LOCAL, client=CODEX)
    assert spelled_for(caller, asking("open-responses"), "open-responses") is caller


def test_whoever_else_is_known_keeps_what_is_known() -> None:
    client = SUMMARY_READERS["ai-sdk"]
    spelled = spelled_for(replace(LOCAL, client=client), asking("open-responses"), "openai")
    assert spelled.client == replace(client, specified=True)


def test_another_spelling_is_refused() -> None:
    with pytest.raises(RequestRefused) as refused:
        spelled_for(LOCAL, asking("klingon"), "openai")
    assert refused.value.param == "Isthmus-Compat"
