"""Who asks, as far as it changes the answer: what a client is known to need beyond its protocol.

In: two headers. Out: a `ClientProfile`, which goes into the plan. A client is known by data alone: `SUMMARY_READERS`
grows by a line when another one turns out to show nothing but summaries.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace


class ClientProfile(msgspec.Struct, frozen=True):
    """What a client is known to need beyond its protocol: a door recognises it, the assembler carries it out."""

    name: str = ""
    leaves_cut_items_open: bool = False
    """Of a failure: the client keeps every closed item as whole, and would send half an answer back."""
    final_code: str = ""
    """The code under which a failure is told that no repetition cures, where the client would repeat its own."""
    specified: bool = False
    """Whether events are spelled as Open Responses specifies them, where OpenAI's clients read them otherwise."""
    plain_call_ids: bool = False
    """Whether ids of calls are of letters, digits, `_` and `-` alone, 64 of them at most: others poison a session
    (claude-code-router#1808, #1334)."""
    needs_hosted_tools: bool = False
    """Whether a request is refused for a tool that nobody runs: the client would take an answer without it for its
    result (clowder-ai#1077)."""
    shows_sources: bool = False
    """Whether the pages that a search found belong to its item, also where the request does not include them."""
    reads_summaries: bool = False
    """Whether thinking is told as a summary also where the request asks for none: the client shows nothing else."""


ANY_CLIENT: Final = ClientProfile()
SPECIFIED: Final = ClientProfile(specified=True)
# After a failed stream Codex asks five times more, unless the code is one of four that it takes as final; the message
# of `invalid_prompt` is the one that it shows as it is, without the JSON around it (seen with 0.163 and 0.166).
# It asks for summaries where it wants them.
CODEX: Final = ClientProfile("codex", leaves_cut_items_open=True, final_code="invalid_prompt")


# A block that ends is whole for a client of Messages: Claude Code would go on from half a text, and run half a call.
MESSAGES: Final = ClientProfile(
    leaves_cut_items_open=True, plain_call_ids=True, needs_hosted_tools=True, shows_sources=True
)
CLAUDE_CODE: Final = replace(MESSAGES, name="claude-code")

# Each was given a model that thinks aloud, and left `reasoning_text` out of what its user sees: pydantic-ai 2.66.0,
# AI SDK 7.0.169 with @ai-sdk/openai 4.0.114, Agents SDK for JavaScript 0.20.0 (2026-11-17); opencode 1.18.33 is built
# on the AI SDK.
# LangChain and agno do so too, but call themselves `OpenAI/Python`, as every program does that uses that SDK.
SUMMARY_READERS: Final = {
    "opencode/": ClientProfile("opencode", reads_summaries=True),
    "ai-sdk": ClientProfile("ai-sdk", reads_summaries=True),
    "pydantic-ai/": ClientProfile("pydantic-ai", reads_summaries=True),
    "Agents/JavaScript": ClientProfile("agents-js", reads_summaries=True),
}
"""What stands in the `User-Agent` of a client that reads nothing but summaries; the first that fits counts."""

KNOWN_CLIENTS: Final = {client.name: client for client in (ANY_CLIENT, CODEX, CLAUDE_CODE, *SUMMARY_READERS.values())}
"""By name, as logs, traces and memos have it."""


def recognise_client(*, originator: str, user_agent: str) -> ClientProfile:
    """The client behind these two headers. Codex sends both, its forks and older versions one of them."""
    if user_agent.startswith("claude-cli/"):
        return CLAUDE_CODE
    if originator.startswith("codex") or user_agent.startswith("codex"):
        return CODEX
    for words, client in SUMMARY_READERS.items():
        if words in user_agent:
            return client
    return ANY_CLIENT


def on_messages(client: ClientProfile) -> ClientProfile:
    """The same client, at the door of Messages."""
    if client in (CODEX, CLAUDE_CODE):
        return client
    return replace(MESSAGES, name=client.name) if client.name else MESSAGES
