"""Deltas of an answer → its events and its object, each judged by the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.testing.fold import plan_for, stream
from wire.oracle import check_response, check_stream

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "function", "name": "g", "parameters": {"type": "object"}},
    {"type": "custom", "name": "note"},
    {"type": "shell"},
    {"type": "local_shell"},
    {"type": "apply_patch"},
    {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "echo"}]},
]
PLAN = plan_for({"tools": TOOLS})


def run(*deltas: Delta, plan: Plan = PLAN) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    events, response = stream(deltas, plan=plan)
    check_stream(events)
    check_response(response)
    return events, response


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events[2:]]
