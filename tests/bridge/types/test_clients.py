"""A client is known by its headers, and what is known of it goes into the plan."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.types.clients import (
    ANY_CLIENT,
    CLAUDE_CODE,
    CODEX,
    KNOWN_CLIENTS,
    MESSAGES,
    SPECIFIED,
    SUMMARY_READERS,
    ClientProfile,
    on_messages,
    recognise_client,
)

AI_SDK, OPENCODE = SUMMARY_READERS["ai-sdk"], SUMMARY_READERS["opencode/"]


@pytest.mark.parametrize(
    ("originator", "user_agent", "client"),
    [
        ("codex_cli_rs", "codex_cli_rs/0.163.0", CODEX),
        ("codex_exec", "", CODEX),
        ("", "codex_exec/0.163.0 (Linux)", CODEX),
        ("", "OpenAI/Python 2.0", ANY_CLIENT),
        ("", "claude-cli/2.1.325 (external, cli)", CLAUDE_CODE),
        ("", "Anthropic/Python 2.8.0", ANY_CLIENT),
        ("", "", ANY_CLIENT),
        ("", "ai/7.0.169 ai-sdk-provider-utils/5.0.79 node.js/v20.20.2", AI_SDK),
        ("", "opencode/1.18.33 ai-sdk/provider-utils/4.0.40 runtime/bun/1.3.14", OPENCODE),
        ("", "pydantic-ai/2.66.0", SUMMARY_READERS["pydantic-ai/"]),
        ("", "Agents/JavaScript 0.20.0", SUMMARY_READERS["Agents/JavaScript"]),
        ("", "Agents/Python 0.24.0", ANY_CLIENT),
        ("", "agent-framework-python/1.23.0", ANY_CLIENT),
        ("", "litellm/1.106.2", ANY_CLIENT),
    ],
)
def test_a_client_is_known_by_its_headers(originator: str, user_agent: str, client: ClientProfile) -> None:
    assert recognise_client(originator=originator, user_agent=user_agent) is client


def test_every_known_client_is_found_by_its_name() -> None:
    assert all(KNOWN_CLIENTS[client.name] is client for client in (CODEX, CLAUDE_CODE, *SUMMARY_READERS.values()))
    assert len(KNOWN_CLIENTS) == len(SUMMARY_READERS) + 3, "no two have the same name"


@pytest.mark.parametrize("client", SUMMARY_READERS.values(), ids=lambda client: client.name)
def test_who_reads_only_summaries_needs_nothing_else(client: ClientProfile) -> None:
    assert client == ClientProfile(client.name, reads_summaries=True)


@pytest.mark.parametrize(
    ("client", "there"),
    [
        (ANY_CLIENT, MESSAGES),
        (SPECIFIED, MESSAGES),
        (CODEX, CODEX),
        (CLAUDE_CODE, CLAUDE_CODE),
    ],
)
def test_at_the_door_of_messages_a_client_is_one_of_messages(client: Any, there: Any) -> None:
    assert on_messages(client) is there


def test_one_that_is_known_keeps_its_name_there() -> None:
    there = on_messages(AI_SDK)
    assert (there.name, there.plain_call_ids, there.needs_hosted_tools) == ("ai-sdk", True, True)
