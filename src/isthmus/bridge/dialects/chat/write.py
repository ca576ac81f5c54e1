"""A plan and its history → the Chat Completions body. It carries out; it never looks at capabilities.

The body is byte-stable: the same plan always gives the same keys in the same order, so that the
provider's prompt cache stays warm.
"""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.bridge.dialects.chat.messages import build_messages
from isthmus.bridge.dialects.chat.order import MessageOrder
from isthmus.bridge.tools.choice import render_provider_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.types.history import History
from isthmus.bridge.types.plan import Plan, Written
from isthmus.protocol.json import JsonObject, deep_merge


def write(history: History, plan: Plan) -> Written:
    built = build_messages(
        history,
        rules=plan.rules,
        identities=plan.tools.identities,
        instructions=plan.instructions,
        preamble=plan.preamble,
        thinking=plan.compatibility.thinking,
    )
    body: JsonObject = {"model": plan.target.model, "messages": built.messages}
    if plan.tools.declarations:
        written = plan.tools.written
        if "chat" not in written:
            written["chat"] = render_provider_tool_declarations(plan.tools.declarations)
        body["tools"] = [*written["chat"]]
        choice = render_provider_tool_choice(plan.tools.choice)
        if choice is not None:
            body["tool_choice"] = choice
    send = plan.contract.send
    if send is not None and send["type"] == "json_schema":  # Chat Completions nests what Responses spells flat
        nested = {name: value for name, value in send.items() if name != "type"}
        body["response_format"] = {"type": "json_schema", "json_schema": nested}
    elif send is not None:
        body["response_format"] = send
    return Written(deep_merge(body, *plan.compatibility.sends, plan.extra_body), tuple(built.decisions))


def again(plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The same request, with each failed answer and the words that ask for a better one behind it. An answer without a
    word is not sent back: many providers refuse an assistant message that is empty."""
    order = MessageOrder(plan.rules, plan.body["messages"])
    for answer, words in said:
        if answer:
            order.add({"role": "assistant", "content": answer})
        order.add({"role": "user", "content": words})
    return {**plan.body, "messages": order.messages}
