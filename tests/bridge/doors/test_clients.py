"""Who asks, by the headers that clients really send."""

from __future__ import annotations

import pytest

from isthmus.bridge.doors.clients import recognise_client
from isthmus.bridge.types.plan import ANY_CLIENT, CODEX, ClientProfile


@pytest.mark.parametrize(
    ("originator", "user_agent", "client"),
    [
        ("codex_cli_rs", "codex_cli_rs/0.163.0", CODEX),
        ("codex_exec", "", CODEX),
        ("", "codex_exec/0.163.0 (Linux)", CODEX),
        ("", "OpenAI/Python 2.0", ANY_CLIENT),
        ("", "", ANY_CLIENT),
    ],
)
def test_a_client_is_known_by_its_headers(originator: str, user_agent: str, client: ClientProfile) -> None:
    assert recognise_client(originator=originator, user_agent=user_agent) is client
