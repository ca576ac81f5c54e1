"""The bytes that reach a provider: the same for the same request, whoever sends it and from whichever process.

Providers keep what they have read of a prompt, and find it again byte by byte.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowing import DEEPSEEK, FULL, ZHIPU, Flow, running_flow
from isthmus.testing import chat

TOOLS = [
    {
        "type": "function",
        "name": name,
        "parameters": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
    }
    for name in ("look", "write", "run")
]
ASKED = {
    "instructions": "Be brief.",
    "input": [{"role": "user", "content": "hi"}],
    "tools": TOOLS,
    "temperature": 0.5,
    "reasoning": {"effort": "high"},
    "parallel_tool_calls": True,
    "user": "somebody",
    "metadata": {"z": "1", "a": "2"},
}


def sent(flow: Flow, body: dict[str, object]) -> bytes:
    flow.script(chat("hello"))
    flow.create(body)
    return bytes(flow.upstream.requests[-1].body)


@pytest.mark.parametrize("model", [FULL, DEEPSEEK, ZHIPU])
def test_the_same_request_is_the_same_bytes(tmp_path: Path, model: str) -> None:
    asked = {"model": model, **ASKED}
    with running_flow(tmp_path, store="memory") as flow:
        first, second, turned = (sent(flow, body) for body in (asked, asked, dict(reversed(asked.items()))))
    assert first == second
    assert turned[: turned.index(b'"tools"')] == first[: first.index(b'"tools"')], "messages first, in any case"


@pytest.mark.parametrize("model", [FULL, DEEPSEEK])
def test_a_later_turn_begins_with_the_bytes_of_the_earlier_one(tmp_path: Path, model: str) -> None:
    with running_flow(tmp_path, store="memory") as flow:
        flow.script(chat("hello"))
        first = flow.create({"model": model, **ASKED})
        before = bytes(flow.upstream.requests[-1].body)
        after = sent(flow, {"model": model, **ASKED, "previous_response_id": first["id"], "input": "and now?"})
        messages = json.dumps(json.loads(before)["messages"], separators=(",", ":"), ensure_ascii=False)
        shared = before[: before.index(messages.encode()) + len(messages) - 1]
        assert after.startswith(shared)


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_what_explain_shows_is_what_is_sent(tmp_path: Path, seed: str) -> None:
    """Another process, with another order of its sets."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"model": "deepseek-v4-pro", **ASKED}))
    command = [sys.executable, "-m", "isthmus", "explain", str(request), "--provider", "deepseek", "--body-only"]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": seed}, cwd=tmp_path, capture_output=True, check=True, timeout=60
    )
    shown = json.dumps(json.loads(ran.stdout), separators=(",", ":"), ensure_ascii=False).encode()
    with running_flow(tmp_path, store="memory") as flow:
        assert sent(flow, {"model": DEEPSEEK, **ASKED}) == shown
