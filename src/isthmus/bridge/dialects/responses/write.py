"""A plan and its history → the body of a native Responses request.

Items stay what they were and where they were: sealed reasoning, several messages with their phase, images inside
results, hosted items and approvals. We hold the state, so the upstream is always told to store nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.bridge.dialects.items import ItemWriter, message
from isthmus.bridge.tools.choice import render_provider_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.types.history import History, Words, opening
from isthmus.bridge.types.plan import Plan, Written
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.json import JsonObject, deep_merge


def write(history: History, plan: Plan) -> Written:
    writer = ItemWriter(plan)
    leading = opening(history.turns)
    _lead(writer, plan.instructions, plan.preamble if plan.instructions else "")
    writer.write(leading)
    _lead(writer, "" if plan.instructions else plan.preamble)
    writer.write(history.turns[len(leading) :])
    body: JsonObject = {"model": plan.target.model, "input": writer.items, "store": False}
    tools = plan.tools
    if tools.declarations:
        body["tools"] = [_flat(tool) for tool in render_provider_tool_declarations(tools.declarations)]
        choice = render_provider_tool_choice(tools.choice)
        if choice is not None:
            body["tool_choice"] = _flat_choice(choice, tools)
    if plan.contract.send is not None:
        body["text"] = {"format": plan.contract.send}
    fragments = [*plan.compatibility.sends, plan.extra_body]
    built = deep_merge(body, *fragments)
    # Lists are not merged, so what each part of the plan wants included is gathered here.
    included = dict.fromkeys(name for fragment in reversed(fragments) for name in fragment.get("include", ()))
    if built.get("top_logprobs"):
        included["message.output_text.logprobs"] = None  # the number alone brings none
    if included:
        built["include"] = list(included)
    return Written(built, tuple(writer.decisions))


def again(plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject:
    writer = ItemWriter(plan)
    items = list(plan.body["input"])
    for answer, words in said:
        if answer:
            items.append(message("assistant", [writer.spoken(Words(answer))]))
        items.append(message("user", [writer.part(Words(words))]))
    return {**plan.body, "input": items}


def _lead(writer: ItemWriter, *texts: str) -> None:
    text = "\n\n".join(text for text in texts if text)
    if text:
        writer.items.append(message("system", [writer.part(Words(text))]))


def _flat(tool: JsonObject) -> JsonObject:
    if tool["type"] != "function" or "function" not in tool:
        return tool
    return {"type": "function", "strict": False, **tool["function"]}


def _flat_choice(choice: str | JsonObject, tools: ToolPlan) -> str | JsonObject:
    if isinstance(choice, str):
        return choice
    identity = tools.choice.identity
    if choice["type"] in ("function", "custom") and identity is not None:
        return {"type": choice["type"], "name": identity.provider_name}
    return {"type": "mcp", **choice["mcp"]} if choice["type"] == "mcp" else choice
