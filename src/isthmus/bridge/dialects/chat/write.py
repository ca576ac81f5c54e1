"""Decisions and messages → the Chat Completions body. It carries out; it never looks at capabilities.

The body is byte-stable: the same plan always gives the same keys in the same order, so that the
provider's prompt cache stays warm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.merge import deep_merge
from isthmus.bridge.tools.choice import render_provider_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.types.contract import OutputContract
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.json import JsonObject


def build_chat_request(
    model: str,
    messages: Sequence[JsonObject],
    tools: ToolPlan,
    contract: OutputContract,
    decisions: Iterable[CompatibilityDecision],
    extra_body: Mapping[str, Any],
) -> JsonObject:
    """The exact body that goes upstream."""
    body: JsonObject = {"model": model, "messages": list(messages)}
    if tools.declarations:
        body["tools"] = render_provider_tool_declarations(tools.declarations)
        choice = render_provider_tool_choice(tools.choice)
        if choice is not None:
            body["tool_choice"] = choice
    if contract.send is not None:
        body["response_format"] = _response_format(contract.send)
    return deep_merge(body, *(decision.sends for decision in decisions if decision.sends), extra_body)


def ask_again_chat(body: JsonObject, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The same request, with each failed answer and the words that ask for a better one behind it."""
    messages = list(body["messages"])
    for answer, words in said:
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": words}]
    return {**body, "messages": messages}


def _response_format(send: JsonObject) -> JsonObject:
    """Chat Completions nests what Responses spells flat."""
    if send["type"] != "json_schema":
        return send
    return {"type": "json_schema", "json_schema": {name: value for name, value in send.items() if name != "type"}}
