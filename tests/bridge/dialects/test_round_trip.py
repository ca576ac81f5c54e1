"""Items → history → body, and the body read back as items: nothing is lost that the plan does not report."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.bridge.dialects.codex.write import user_item
from isthmus.bridge.doors.chat.read_messages import translate_messages
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

Json = dict[str, Any]

KEY = b"k" * 32
TARGETS = {
    "chat": ("openai", "gpt-4o", "chat"),
    "chat with reasoning": ("deepseek", "deepseek-v4-pro", "chat"),
    "chat in strict order": ("mistral", "mistral-medium-3.5", "chat"),
    "chat taking turns": ("vllm", "google/gemma-3-12b-it", "chat"),
    "responses": ("openai", "gpt-5.6", "responses"),
    "responses, partial": ("deepseek", "deepseek-v4-pro", "responses"),
    "messages": ("anthropic", "claude-opus-5-5", "messages"),
    "messages, with budgets": ("anthropic", "claude-haiku-4-5", "messages"),
    "messages, partial": ("deepseek", "deepseek-v4-pro", "messages"),
    "codex": ("codex", "gpt-5.5", None),
}


def planned(name: str, items: list[Json]) -> Plan:
    provider, model, dialect = TARGETS[name]
    capabilities = capabilities_for(load_provider(provider), model, dialect)  # type: ignore[arg-type]
    request = parse_request({"model": "m", "input": items})
    return plan_request(request, Target("p", model, capabilities), Host(), envelope_key=KEY)


def echoed(plan: Plan) -> list[Json]:
    """What a server that repeats its request would say, as items."""
    body = plan.body
    match plan.target.capabilities.dialect:
        case "chat":
            return translate_messages(body["messages"])[0]
        case "responses":
            return list(body["input"])
        case "messages":
            return [item for message in body["messages"] for item in from_blocks(message)]
        case _:
            opened = [user_item(body["input"])] if body["input"] else []
            base = [{"type": "message", "role": "system", "content": body["baseInstructions"]}]
            return [*base, *body.get("history", ()), *opened]


def from_blocks(message: Json) -> Iterator[Json]:
    """A message of the Messages protocol as items."""
    for block in message["content"]:
        match block["type"]:
            case "tool_use":
                arguments = msgspec.json.encode(block["input"]).decode()
                yield {"type": "function_call", "call_id": block["id"], "name": block["name"], "arguments": arguments}
            case "tool_result":
                inside = block.get("content", "")
                output = inside if isinstance(inside, str) else [from_block(one) for one in inside]
                yield {"type": "function_call_output", "call_id": block["tool_use_id"], "output": output}
            case _:
                yield {"type": "message", "role": message["role"], "content": [from_block(block)]}


def from_block(block: Json) -> Json:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    source = block["source"]
    return {"type": "input_image", "image_url": f"data:{source['media_type']};base64,{source['data']}"}


class Fact(NamedTuple):
    path: str
    kind: str
    token: str


def facts_of(items: Iterable[Json]) -> Iterator[Fact]:
    for index, item in enumerate(items):
        path = f"input[{index}]"
        match item["type"]:
            case "message":
                yield from _parts(f"{path}.content", item.get("content"))
                if item.get("phase"):
                    yield Fact(f"{path}.phase", "phase", item["phase"])
            case "reasoning":
                for part in item.get("content") or ():
                    yield Fact(path, "reasoning", part["text"])
                if item.get("encrypted_content"):
                    yield Fact(path, "sealed", item["encrypted_content"])
            case "function_call" | "custom_tool_call":
                yield Fact(path, "call", f"{item['name']} {item.get('arguments') or item.get('input')}")
            case "function_call_output" | "custom_tool_call_output":
                yield from _parts(f"{path}.output", item["output"])
            case _:
                yield Fact(path, "item", repr(sorted(item.items(), key=str)))


def _parts(path: str, content: Any) -> Iterator[Fact]:
    for index, part in enumerate([{"text": content}] if isinstance(content, str) else content or ()):
        if "image_url" in part:
            yield Fact(f"{path}[{index}]", "image", part["image_url"])
        elif part.get("type") == "thinking":  # Mistral's place for reasoning
            yield from (Fact(path, "reasoning", chunk["text"]) for chunk in part["thinking"])
        else:
            yield Fact(path, "text", part.get("text") or part.get("refusal") or "")


def is_reported(fact: Fact, plan: Plan) -> bool:
    paths = {decision.path for decision in plan.decisions if decision.path.startswith("input[")}
    if fact.kind == "phase":  # one decision speaks of them all
        return any(path.endswith(".phase") for path in paths)
    return fact.path in paths or any(fact.path.startswith((f"{path}.", f"{path}[")) for path in paths)


_counter = itertools.count()


def word() -> str:
    return f"word{next(_counter)}."


def image() -> Json:
    return {"type": "input_image", "image_url": f"data:image/png;base64,{next(_counter):08d}"}


def said(role: str, *parts: Json, **fields: Any) -> Json:
    return {"type": "message", "role": role, "content": list(parts), **fields}


def text(kind: str = "input_text") -> Json:
    return {"type": kind, "text": word()}


def sealed() -> Json:
    blob = word()
    inside = {"type": "reasoning", "summary": [], "encrypted_content": blob}
    envelope = seal(Sealed("p", "", {"encrypted_content": [inside]}), KEY)
    return {"type": "reasoning", "summary": [], "encrypted_content": envelope, "blob": blob}


def thought() -> Json:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": word()}]}


def user(draw: Any) -> list[Json]:
    return [said("user", *(draw(st.sampled_from([text, image]))() for _ in range(draw(st.integers(1, 2)))))]


def speech(draw: Any) -> list[Json]:
    phase = draw(st.sampled_from([{}, {"phase": "commentary"}, {"phase": "final_answer"}]))
    return [said("assistant", *(text("output_text") for _ in range(draw(st.integers(1, 2)))), **phase)]


def calls(draw: Any) -> list[Json]:
    ids = [word() for _ in range(draw(st.integers(1, 2)))]
    made: list[Json] = []
    for call_id in ids:
        made += draw(st.sampled_from([[], [thought()], [sealed()]]))
        made.append({"type": "function_call", "call_id": call_id, "name": "look", "arguments": f'{{"at":"{word()}"}}'})
    outputs = [[text()], [text(), image()]]
    return made + [
        {"type": "function_call_output", "call_id": call_id, "output": draw(st.sampled_from([word(), *outputs]))}
        for call_id in ids
    ]


def hosted(draw: Any) -> list[Json]:
    asked = {"type": "mcp_approval_request", "id": word(), "server_label": "s", "name": "n", "arguments": "{}"}
    answered = {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
    search = {"type": "web_search_call", "id": word(), "status": "completed", "action": {"type": "search"}}
    return draw(st.sampled_from([[asked, answered], [search]]))  # type: ignore[no-any-return]


def reasoning(draw: Any) -> list[Json]:
    return [draw(st.sampled_from([thought, sealed]))(), *speech(draw)]


@st.composite
def conversations(draw: Any) -> list[Json]:
    pieces = draw(st.lists(st.sampled_from([user, speech, calls, hosted, reasoning]), max_size=6))
    return [*user(draw), *(item for piece in pieces for item in piece(draw)), *user(draw)]


@pytest.mark.parametrize("name", TARGETS)
@given(conversations())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_is_lost_that_the_plan_does_not_report(name: str, items: list[Json]) -> None:
    plan = planned(name, [{key: value for key, value in item.items() if key != "blob"} for item in items])
    back = list(facts_of(echoed(plan)))
    whole = {kind: "\n".join(fact.token for fact in back if fact.kind == kind) for kind in KINDS}
    asked = [{**item, "encrypted_content": item["blob"]} if "blob" in item else item for item in items]
    for fact in facts_of(asked):
        assert fact.token in whole[fact.kind] or is_reported(fact, plan), fact


KINDS = ("text", "image", "call", "reasoning", "sealed", "phase", "item")


def spoken(items: Iterable[Json]) -> list[str]:
    """Words and calls in their order, however they are cut into messages."""
    kinds = ("text", "call")
    return [token for fact in facts_of(items) if fact.kind in kinds for token in fact.token.split("\n") if token]


CONVERSATION: list[Json] = [
    said("user", {"type": "input_text", "text": "Look at a and b."}),
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
    said("assistant", {"type": "output_text", "text": "Looking."}, phase="commentary"),
    {"type": "function_call", "call_id": "c00000001", "name": "look", "arguments": '{"at":"a"}'},
    {"type": "function_call", "call_id": "c00000002", "name": "look", "arguments": '{"at":"b"}'},
    {"type": "function_call_output", "call_id": "c00000001", "output": "blue"},
    {"type": "function_call_output", "call_id": "c00000002", "output": "green"},
    said("assistant", {"type": "output_text", "text": "Blue and green."}),
    said("assistant", {"type": "output_text", "text": "Done."}, phase="final_answer"),
    said("user", {"type": "input_text", "text": "Thanks."}),
]


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_conversation_says_the_same_in_every_dialect(name: str) -> None:
    assert spoken(echoed(planned(name, CONVERSATION))) == spoken(CONVERSATION)
