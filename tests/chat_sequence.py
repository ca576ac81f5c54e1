"""What every Chat Completions provider demands of a message list, as a check that says what is wrong."""

from __future__ import annotations

from typing import Any


def validate_chat_sequence(messages: list[dict[str, Any]]) -> str | None:
    """`None` when valid: each call answered exactly once, right after the assistant message that made it."""
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            call_id = message["tool_call_id"]
            if call_id not in open_ids:
                return f"messages[{index}] answers `{call_id}`, which is not open"
            if open_ids[0] != call_id:
                return f"messages[{index}] answers `{call_id}` out of call order"
            open_ids.pop(0)
            continue
        if open_ids:
            return f"messages[{index}] comes before {open_ids} are answered"
        if role == "assistant":
            calls = message.get("tool_calls", [])
            if "tool_calls" in message and not calls:
                return f"messages[{index}] has empty tool_calls"
            open_ids = [call["id"] for call in calls]
            if any(not call["function"]["name"] for call in calls):
                return f"messages[{index}] calls a tool without a name"
            if len(set(open_ids)) != len(open_ids) or seen & set(open_ids):
                return f"messages[{index}] repeats a call id"
            seen.update(open_ids)
            if not calls and not message.get("content"):
                return f"messages[{index}] is an empty assistant message"
        elif not message.get("content"):
            return f"messages[{index}] is an empty {role} message"
    return f"{open_ids} are never answered" if open_ids else None
