"""Every provider file's message rules, asked with conversations that trip vendors: none is refused for its order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from chat_sequence import validate_chat_sequence
from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Target
from provider_facts import each_model, facts_of
from strict_vendors import Refusal, refused_by_a_strict_template, refused_by_gemini, refused_by_mistral

Json = dict[str, Any]

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def call(call_id: str) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


def output(call_id: str, given: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": given}


SEEN = [{"type": "input_text", "text": "Seen:"}, {"type": "input_image", "image_url": PIXEL}]
LATE = {"type": "message", "role": "developer", "content": "Be brief."}
SAID = {"type": "message", "role": "assistant", "content": "Fine."}

CONVERSATIONS: dict[str, list[Json]] = {
    "an image in a result": [user("Look"), call("c1"), output("c1", SEEN)],
    "images in two results": [user("Look"), call("c1"), call("c2"), output("c1", SEEN), output("c2", SEEN)],
    "steered in mid-turn": [user("Look"), call("c1"), output("c1"), user("No, there")],
    "interrupted": [user("Look"), call("c1"), user("Stop"), user("Now what?")],
    "compacted in mid-turn": [user("[summary] we looked"), user("Look"), call("c1"), output("c1"), user("[summary]")],
    "two users in a row": [user("Files:"), user("Fix it")],
    "a late instruction": [user("Hi"), SAID, LATE, user("Go")],
    "an instruction after a result": [user("Look"), call("c1"), output("c1"), LATE],
    "the assistant begins": [SAID, user("Hi")],
}


def messages_of(name: str, model: str, items: list[Json]) -> list[Json]:
    facts = facts_of(name, model)
    request = parse_request({"model": "m", "instructions": "I", "input": items})
    messages: list[Json] = plan_request(request, Target(name, model, facts), Host()).body["messages"]
    return messages


def refusals_of(rules: MessageRules) -> Iterator[str]:
    """The rules in words that a message list can break."""
    if rules.turns == "alternating":
        yield "alternating"
    if rules.turns != "free":
        yield "two in a row"
    if rules.after_tool == "assistant":
        yield "user after tool"
    if rules.system == "leading":
        yield "late system"


def broken(messages: list[Json]) -> set[str]:
    pairs = [(one["role"], other["role"]) for one, other in itertools.pairwise(messages)]
    found = set()
    if any(one == other != "tool" for one, other in pairs):
        found.add("two in a row")
    if ("tool", "user") in pairs:
        found.add("user after tool")
    if any(message["role"] == "system" for message in messages[1:]):
        found.add("late system")
    if refused_by_a_strict_template(messages):
        found.add("alternating")
    return found


@each_model
def test_the_files_own_rules_are_kept(name: str, model: str) -> None:
    facts = facts_of(name, model)
    if facts.dialect != "chat":
        return
    for title, items in CONVERSATIONS.items():
        messages = messages_of(name, model, items)
        assert validate_chat_sequence(messages) is None, title
        assert not broken(messages) & set(refusals_of(facts.messages)), title


VENDORS: dict[str, Refusal] = {"mistral": refused_by_mistral}
LOCAL = ("llama-cpp", "lmstudio", "sglang", "vllm")


@each_model
def test_what_the_vendor_is_known_to_refuse_is_never_sent(name: str, model: str) -> None:
    refuses = VENDORS.get(name)
    if name in LOCAL and any(family in model.lower() for family in ("mistral", "gemma")):
        refuses = refused_by_a_strict_template
    if facts_of(name, model).messages.replay_extras_fallback is not None:  # Gemini from 3 on, wherever it is served
        refuses = refused_by_gemini
    for title, items in CONVERSATIONS.items() if refuses is not None else ():
        assert refuses is not None
        assert refuses(messages_of(name, model, items)) is None, title


@pytest.mark.parametrize("name", LOCAL)
def test_local_templates_never_see_two_messages_of_one_speaker(name: str) -> None:
    assert facts_of(name, "unlisted").messages.turns == "merged"


@each_model
def test_a_search_that_the_client_keeps_off_the_web_never_goes_there(name: str, model: str) -> None:
    facts = facts_of(name, model)
    search = {"type": "web_search", "external_web_access": False}
    request = parse_request({"model": "m", "input": "hi", "tools": [search]})
    plan = plan_request(request, Target(name, model, facts), Host())
    assert facts.tools.cached_search or not plan.body.get("tools")
    assert [d.action for d in plan.decisions if d.path == "tools[0]"] == ["ignored"]
