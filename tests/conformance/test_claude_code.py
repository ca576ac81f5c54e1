"""Claude Code's own requests, asked of every provider file: whatever it sends by default is taken, and told about."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from claude_requests import Recorded, recorded_requests
from isthmus.bridge.doors.messages.read import MessagesRequest, receive_messages_request
from isthmus.bridge.fit import fit_request
from isthmus.bridge.types.clients import CLAUDE_CODE
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.gateway.attempts import HONOURED
from isthmus.providers import Provider, load_provider, provider_names
from isthmus.providers.dialects import capabilities_for

Json = dict[str, Any]
REQUESTS = recorded_requests()
SEARCH = "web-search-side-call"
PROVIDERS = [load_provider(name) for name in provider_names()]


def dialects_of(provider: Provider) -> list[str]:
    found = [provider.capabilities().dialect]
    found += ["responses"] if provider.responses is not None else []
    return found + (["messages"] if provider.messages_endpoint is not None else [])


WAYS = [(provider, dialect) for provider in PROVIDERS for dialect in dialects_of(provider)]
each_way = pytest.mark.parametrize(("provider", "dialect"), WAYS, ids=lambda one: getattr(one, "name", one))


def read(given: Recorded) -> MessagesRequest:
    return receive_messages_request(given.body, headers=given.headers, counting=given.path.endswith("count_tokens"))


def plan(asked: MessagesRequest, provider: Provider, dialect: Any) -> Plan:
    model = provider.default_model or "some-model"
    target = Target(provider.name, model, capabilities_for(provider, model, dialect))
    return fit_request(
        asked.request,
        target,
        Host(HONOURED),
        envelope_key=bytes(32),
        noted=asked.decisions,
        client=CLAUDE_CODE,
    )


def _searches(provider: Provider, dialect: Any) -> bool:
    facts = capabilities_for(provider, provider.default_model or "some-model", dialect).tools
    return "web_search" in (*facts.native, *facts.degraded)


@each_way
def test_every_field_that_claude_code_sends_has_a_decision(provider: Provider, dialect: Any) -> None:
    for given in REQUESTS:
        asked = read(given)
        if given.name == SEARCH and not _searches(provider, dialect):
            with pytest.raises(RequestRefused, match="tools") as refused:  # the only thing that is refused
                plan(asked, provider, dialect)
            assert asked.path(refused.value.param or "") == "tools[0]"
            continue
        decisions = plan(asked, provider, dialect).decisions
        paths = [asked.path(decision.path) for decision in decisions]
        assert {re.split(r"[.\[]", path)[0] for path in paths} >= set(given.body), given.name
        for index, tool in enumerate(given.body.get("tools", ())):
            assert f"tools[{index}]" in paths, (given.name, tool["name"])
        assert all(decision.action != "rejected" for decision in decisions), given.name


@each_way
def test_nothing_private_leaves_the_house(provider: Provider, dialect: Any) -> None:
    """Not the client's ids, not its folders, not its accounts; and no field that only its vendor knows."""
    for given in REQUESTS:
        if given.name == SEARCH and not _searches(provider, dialect):
            continue
        body = plan(read(given), provider, dialect).body
        sent = repr(body)
        for word in (
            "device_id",
            "account_uuid",
            "classifier_context",
            "live_cwd",
            "x-anthropic-billing",
            "cc_version",
        ):
            assert word not in sent, given.name
        assert not {"safeguards", "context_management", "diagnostics"} & set(body), given.name
        assert "DeferredToolPlaceholder" not in sent, given.name
        assert "tool_reference" not in sent, given.name


@each_way
def test_a_conversation_keeps_its_prefix_from_turn_to_turn(provider: Provider, dialect: Any) -> None:
    """What is sent for the longer conversation begins with what was sent for the shorter one, instructions in between
    and moving marks included."""
    longer = next(one for one in REQUESTS if one.name == "tool-turns")
    turns = longer.body["messages"]
    ends = [index + 1 for index, turn in enumerate(turns) if turn["role"] == "system"]
    bodies = []
    for end in ends:
        shorter = [{**turn, "content": _unmarked(turn["content"])} for turn in turns[:end]]
        request = Recorded("cut", longer.path, longer.headers, {**longer.body, "messages": shorter})
        bodies.append(_said(plan(read(request), provider, dialect).body))
    assert len(bodies) > 2
    for before, after in pairwise(bodies):
        assert after[: len(before)] == before


def _unmarked(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in content]


def _said(body: Json) -> list[Any]:
    """All that the model reads of the conversation, without the marks that move."""
    turns = body.get("messages") or [*body.get("history", ()), *body.get("input", ())]
    merged: list[Any] = []
    for turn in turns:
        content = turn.get("content") if isinstance(turn, dict) else None
        parts = content if isinstance(content, list) else [content]
        facts = {name: value for name, value in turn.items() if name != "content"}
        merged += [(facts, _unmarked([part])[0] if isinstance(part, dict) else part) for part in parts]
    return merged
