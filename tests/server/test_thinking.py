"""Thinking is told as a summary to clients that read nothing else, and to whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from flowing import DEEPSEEK, Flow
from isthmus.bridge.types.clients import ANY_CLIENT, CODEX, SUMMARY_READERS
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL
from isthmus.server.thinking import shown_to
from isthmus.testing import chat

THINKS = {"model": DEEPSEEK, "input": "Why?", "reasoning": {"effort": "high"}}
AI_SDK = {"user-agent": "ai/7.0.169 ai-sdk-provider-utils/5.0.79 node.js/v20.20.2"}
PLAIN_SDK = {"user-agent": "OpenAI/Python 3.49.0"}


def thought(flow: Flow, headers: dict[str, str], **more: Any) -> tuple[str, str, set[str]]:
    """What is told as a summary, what as text (whole and streamed alike), and the events that told it."""
    flow.script(chat("So.", reasoning="Let me think."), chat("So.", reasoning="Let me think."))
    asked = {**THINKS, **more}
    whole = flow.create(asked, headers)
    events, streamed = flow.stream(asked, headers)
    told = [_words(response["output"][0]) for response in (whole, streamed)]
    assert told[0] == told[1]
    return *told[0], {event["type"].split(".")[1] for event in events if ".reasoning" in event["type"]}


def _words(item: dict[str, Any]) -> tuple[str, str]:
    assert item["type"] == "reasoning"
    return "".join(part["text"] for part in item["summary"]), "".join(p["text"] for p in item.get("content", ()))


AS_SUMMARY = ("Let me think.", "", {"reasoning_summary_part", "reasoning_summary_text"})
AS_TEXT = ("", "Let me think.", {"reasoning_text"})


@pytest.mark.parametrize("agent", SUMMARY_READERS)
def test_a_client_that_reads_only_summaries_gets_them_unasked(flow: Flow, agent: str) -> None:
    assert thought(flow, {"user-agent": f"{agent} 1.0"}) == AS_SUMMARY


@pytest.mark.parametrize("headers", [{}, PLAIN_SDK, {"user-agent": "agent-framework-python/1.23.0"}])
def test_every_other_one_gets_the_thinking_as_it_is(flow: Flow, headers: dict[str, str]) -> None:
    assert thought(flow, headers) == AS_TEXT


def test_the_header_outranks_what_is_known_of_the_client(flow: Flow) -> None:
    assert thought(flow, {**PLAIN_SDK, "isthmus-thinking": "summary"}) == AS_SUMMARY
    assert thought(flow, {**AI_SDK, "isthmus-thinking": "text"}) == AS_TEXT
    assert thought(flow, {**AI_SDK, "isthmus-thinking": "auto"}) == AS_SUMMARY


def test_the_request_outranks_them_all(flow: Flow) -> None:
    wants, refuses = {"effort": "high", "summary": "auto"}, {"effort": "high", "summary": "none"}
    assert thought(flow, {**PLAIN_SDK, "isthmus-thinking": "text"}, reasoning=wants) == AS_SUMMARY
    assert thought(flow, {**AI_SDK, "isthmus-thinking": "summary"}, reasoning=refuses) == AS_TEXT


def test_a_null_asks_for_nothing(flow: Flow) -> None:
    assert thought(flow, AI_SDK, reasoning={"effort": "high", "summary": None}) == AS_SUMMARY


def test_a_configuration_may_say_it_for_everybody(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra='[server]\nthinking = "summary"')
    assert thought(flow, PLAIN_SDK) == AS_SUMMARY
    assert thought(flow, {**PLAIN_SDK, "isthmus-thinking": "text"}) == AS_TEXT


def test_a_configuration_may_know_more_clients(special: Callable[..., Flow]) -> None:
    flow = special(store="memory", extra='[server]\nsummary_readers = ["my-agent/"]')
    assert thought(flow, {"user-agent": "my-agent/0.1 (Linux)"}) == AS_SUMMARY
    assert thought(flow, AI_SDK) == AS_SUMMARY
    assert thought(flow, PLAIN_SDK) == AS_TEXT


def test_another_word_is_refused(flow: Flow) -> None:
    answer = flow.post("/v1/responses", THINKS, {"isthmus-thinking": "aloud"})
    assert (answer.status, answer.error["param"]) == (400, "Isthmus-Thinking")
    assert "`auto` or `text` or `summary`" in answer.error["message"]


TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize("stored", [True, False])
def test_thinking_told_as_a_summary_goes_back_to_its_model_whole(flow: Flow, stored: bool) -> None:
    """Sealed beside the summary, so that nobody takes it for one: also strict mode has nothing to refuse."""
    flow.script(chat(calls=[("c1", "look", "{}")], reasoning="Let me look."), chat("Seen."))
    asked = {**THINKS, "tools": [TOOL], "store": stored}
    first = flow.create(asked, AI_SDK)
    output = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "a wall"}
    again: dict[str, Any] = (
        {**asked, "previous_response_id": first["id"], "input": [output]}
        if stored
        else {**asked, "input": [{"role": "user", "content": "Why?"}, *first["output"], output]}
    )
    second = flow.create(again, {**AI_SDK, "isthmus-strict": "true"})
    assert second["status"] == "completed"
    acted = next(message for message in flow.sent[1]["messages"] if message["role"] == "assistant")
    assert acted["reasoning_content"] == "Let me look."


# ── the decision alone ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("client", "header", "setting", "summaries"),
    [
        (ANY_CLIENT, None, "auto", False),
        (ANY_CLIENT, None, "summary", True),
        (ANY_CLIENT, " Summary ", "text", True),
        (SUMMARY_READERS["ai-sdk"], None, "auto", True),
        (SUMMARY_READERS["ai-sdk"], None, "text", False),
        (SUMMARY_READERS["ai-sdk"], "auto", "text", True),
        (CODEX, "summary", "summary", False),
    ],
)
def test_one_decision_for_each_request(client: Any, header: str | None, setting: str, summaries: bool) -> None:
    scope = {"headers": [] if header is None else [(b"isthmus-thinking", header.encode())]}
    shown = shown_to(replace(LOCAL, client=client), scope, setting, ())
    assert shown.client == replace(client, reads_summaries=summaries)
    assert client is not CODEX or shown.client is CODEX


def test_an_unknown_word_names_the_header() -> None:
    with pytest.raises(RequestRefused) as refused:
        shown_to(LOCAL, {"headers": [(b"isthmus-thinking", b"x")]}, "auto", ())
    assert refused.value.param == "Isthmus-Thinking"
