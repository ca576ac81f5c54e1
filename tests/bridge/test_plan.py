"""Whole plans: what one decision must not do to another, and what every gate sees."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import ask_again, plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

Json = dict[str, Any]

LOOK: Json = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
PAINT: Json = {"type": "image_generation"}
SCHEMA: Json = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
FORMAT: Json = {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}


def chat(name: str, model: str = "") -> Target:
    provider = load_provider(name)
    model = model or provider.default_model
    return Target(name, model, capabilities_for(provider, model, "chat"))


def native(name: str, model: str = "") -> Target:
    provider = load_provider(name)
    model = model or provider.default_model
    return Target(name, model, capabilities_for(provider, model, "responses"))


def plan(target: Target, *, strict: bool = False, history: list[Json] | None = None, **body: Any) -> Plan:
    request = parse_request({"model": "m", "input": "hi", **body})
    return plan_request(request, target, Host(strict=strict), history=history or ())


def fates(found: Plan, *paths: str) -> list[tuple[str, str]]:
    return [(d.path, d.action) for d in found.decisions if d.path in paths]


# An ignored tool


def test_an_ignored_tool_leaves_the_effort_alone() -> None:
    asked: Json = {"reasoning": {"effort": "high"}}
    assert plan(chat("openai"), tools=[PAINT], **asked).body == plan(chat("openai"), **asked).body


def test_an_ignored_tool_leaves_the_format_alone() -> None:
    groq = chat("groq", "openai/gpt-oss-120b")
    assert not groq.capabilities.response_formats.with_tools
    found = plan(groq, tools=[PAINT], text=FORMAT)
    assert found.body == plan(groq, text=FORMAT).body
    assert fates(found, "text.format", "tools[0]") == [("text.format", "supported"), ("tools[0]", "ignored")]


def test_a_tool_that_is_sent_still_makes_thinking_give_way() -> None:
    found = plan(chat("openai"), tools=[PAINT, LOOK], reasoning={"effort": "high"})
    assert found.body["reasoning_effort"] == "none"


# One reading of `tool_choice`

FLAT: Json = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]}
NESTED: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": FLAT["tools"]}}


@pytest.mark.parametrize("model", ["deepseek-v4-pro", "deepseek-v4-flash"])
def test_allowed_tools_mean_the_same_nested_and_flat(model: str) -> None:
    flat, nested = (
        plan(chat("deepseek", model), tools=[LOOK], tool_choice=choice, reasoning={"effort": "high"})
        for choice in (FLAT, NESTED)
    )
    assert flat.body == nested.body
    assert flat.decisions == nested.decisions
    assert not flat.compatibility.thinking


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param({"type": "function", "name": "look"}, id="flat"),
        pytest.param({"type": "function", "function": {"name": "look"}}, id="nested"),
    ],
)
def test_a_named_tool_means_the_same_nested_and_flat(choice: Json) -> None:
    found = plan(chat("deepseek"), tools=[LOOK], tool_choice=choice, reasoning={"effort": "high"})
    assert found.body["thinking"] == {"type": "disabled"}


# Reasoning that is not replayed

THOUGHT: Json = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
SAID: Json = {"type": "message", "role": "assistant", "content": "Yes."}
USER: Json = {"type": "message", "role": "user", "content": "And?"}
CALL: Json = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
STRANGE: Json = {**USER, "content": [{"type": "hologram", "text": "words"}]}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "ok"}


@pytest.mark.parametrize(
    ("items", "replayed"),
    [
        pytest.param([USER, THOUGHT, SAID, USER], False, id="a turn without calls"),
        pytest.param([USER, THOUGHT, USER], False, id="a thought that led nowhere"),
        pytest.param([USER, {"type": "reasoning", "summary": []}, CALL, OUTPUT], False, id="an empty one"),
        pytest.param([USER, THOUGHT, CALL, OUTPUT], True, id="a turn with calls"),
    ],
)
def test_only_reasoning_that_goes_back_switches_thinking_on(items: list[Json], replayed: bool) -> None:
    found = plan(chat("deepseek"), input=items)
    assert any("reasoning_content" in message for message in found.body["messages"]) is replayed
    assert (found.body.get("thinking") == {"type": "enabled"}) is replayed
    assert found.compatibility.thinking is replayed


# Strict mode


def test_strict_mode_sees_what_the_allow_list_holds_back() -> None:
    capabilities = ProviderCapabilities(allow=frozenset({"temperature"}), extra_body={"speed": "high"})
    with pytest.raises(RequestRefused, match=r"`upstream\.speed`"):
        plan(Target("p", "m", capabilities), strict=True)
    assert "speed" not in plan(Target("p", "m", capabilities)).body


def test_strict_mode_names_every_planners_decisions_at_once() -> None:
    with pytest.raises(RequestRefused) as refused:
        plan(chat("openai", "gpt-4o"), strict=True, tools=[PAINT], top_k=3, input=[STRANGE])
    assert {note["path"] for note in refused.value.metadata["diagnostics"]} == {
        "top_k",
        "tools[0]",
        "input[0].content[0]",
    }


# Where things stand


def test_paths_count_the_clients_own_input() -> None:
    stored = [USER, SAID]
    items = [{"type": "additional_tools", "tools": [PAINT]}, STRANGE]
    found = plan(chat("openai", "gpt-4o"), history=stored, input=items)
    assert {d.path for d in found.diagnostics} == {"input[0].tools[0]", "input[1].content[0]"}


def test_paths_of_stored_items_say_so() -> None:
    stored = [USER, {"type": "additional_tools", "tools": [PAINT]}]
    found = plan(chat("openai", "gpt-4o"), history=stored)
    assert [d.path for d in found.diagnostics] == ["history[1].tools[0]"]


# The echo


def test_the_echo_shows_what_took_effect() -> None:
    rules = {"temperature": ParameterRule(high=2), "max_output_tokens": ParameterRule(high=10)}
    found = plan(Target("p", "m", ProviderCapabilities(parameters=rules)), temperature=5, max_output_tokens=50)
    assert (found.echo["temperature"], found.echo["max_output_tokens"]) == (2, 10)


def test_the_echo_shows_the_default_of_what_was_left_out() -> None:
    asked: Json = {"temperature": 0.1, "top_p": 0.5, "parallel_tool_calls": False, "max_tool_calls": 3}
    found = plan(Target("p", "m", ProviderCapabilities()), **asked)
    assert {name: found.echo[name] for name in asked} == {
        "temperature": 1.0,
        "top_p": 1.0,
        "parallel_tool_calls": True,
        "max_tool_calls": None,
    }


def test_the_echo_shows_the_effort_that_was_sent() -> None:
    assert plan(chat("deepseek"), reasoning={"effort": "medium"}).echo["reasoning"]["effort"] == "high"
    assert plan(chat("openai", "gpt-4o"), reasoning={"effort": "low"}).echo["reasoning"]["effort"] is None
    verbosity = plan(chat("deepseek"), text={"verbosity": "low"}).echo["text"]
    assert verbosity == {"format": {"type": "text"}}


def test_the_echo_keeps_labels_that_the_gateway_uses_itself() -> None:
    found = plan(chat("deepseek"), prompt_cache_key="k", metadata={"a": "b"}, safety_identifier="s")
    assert (found.echo["prompt_cache_key"], found.echo["metadata"]) == ("k", {"a": "b"})


# Input that asks nothing


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"input": None}, id="missing"),
        pytest.param({"input": ""}, id="empty text"),
        pytest.param({"input": []}, id="no items"),
        pytest.param({"input": [{"role": "user", "content": ""}]}, id="an empty message"),
    ],
)
def test_a_request_that_asks_nothing_is_refused(body: Json) -> None:
    with pytest.raises(RequestRefused) as refused:
        plan(chat("deepseek"), **body)
    assert (refused.value.param, refused.value.code) == ("input", "missing_required_parameter")


def test_instructions_or_history_are_enough_to_ask() -> None:
    assert plan(chat("openai"), input=[], instructions="Tell a joke.").body["messages"]
    assert plan(chat("openai"), input=[], history=[USER]).body["messages"]


# Log probabilities


def test_log_probabilities_are_really_asked_for() -> None:
    included = ["message.output_text.logprobs"]
    found = plan(native("openai", "gpt-4o"), include=included)
    assert fates(found, "include") == [("include", "supported")]
    assert included[0] in found.body["include"]
    assert found.body["include"].count("reasoning.encrypted_content") == 1


def test_extras_go_to_an_endpoint_that_takes_them() -> None:
    extra = "web_search_call.action.sources"
    assert extra in plan(native("openai"), include=[extra]).body["include"]
    held = plan(native("deepseek"), include=[extra, "reasoning.encrypted_content"])
    assert "include" not in held.body
    assert fates(held, "include") == [("include", "degraded")]


# The word JSON


def test_json_mode_that_needs_no_word_changes_nothing() -> None:
    asked: Json = {"text": {"format": {"type": "json_object"}}}
    found = plan(chat("llama-cpp", "some-model"), **asked)
    assert found.body["messages"] == [{"role": "user", "content": "hi"}]
    assert fates(found, "text.format") == [("text.format", "supported")]


def test_words_that_json_mode_needs_are_told() -> None:
    asked: Json = {"text": {"format": {"type": "json_object"}}}
    found = plan(chat("openai", "gpt-4o"), **asked)
    assert found.body["messages"][0]["role"] == "system"
    assert [d.path for d in found.diagnostics] == ["text.format"]
    said = plan(chat("openai", "gpt-4o"), instructions="Answer in JSON.", **asked)
    assert said.body["messages"][0]["content"] == "Answer in JSON."
    assert said.diagnostics == ()


def test_later_words_do_not_change_the_opening() -> None:
    asked: Json = {"text": {"format": {"type": "json_object"}}}
    first = plan(chat("openai", "gpt-4o"), input=[USER], **asked).body["messages"]
    later = plan(chat("openai", "gpt-4o"), input=[USER, SAID, {**USER, "content": "JSON?"}], **asked).body["messages"]
    assert later[: len(first)] == first


# Asking again


@pytest.mark.parametrize("name", ["openai", "mistral"])
def test_an_empty_answer_is_not_sent_back(name: str) -> None:
    found = plan(chat(name, "gpt-4o" if name == "openai" else ""))
    again = ask_again(found, [("", "Please answer.")])
    assert [message["role"] for message in again["messages"]] == ["user", "user"]
    assert again["messages"][-1] == {"role": "user", "content": "Please answer."}


def test_asking_again_keeps_the_message_rules() -> None:
    mistral = chat("mistral")
    found = plan(mistral, input=[USER, CALL, OUTPUT])
    roles = [message["role"] for message in ask_again(found, [("", "Please answer.")])["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    merging = msgspec.structs.replace(
        mistral.capabilities, messages=msgspec.structs.replace(mistral.capabilities.messages, turns="merged")
    )
    again = ask_again(plan(Target("p", "m", merging)), [("", "Please answer.")])
    assert again["messages"] == [{"role": "user", "content": "hi\n\nPlease answer."}]


# Breakpoints of the prompt cache


def test_breakpoints_reach_a_provider_that_has_them_and_no_other() -> None:
    mark = {"mode": "explicit", "ttl": "12h"}
    text: Json = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": mark}
    image: Json = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "prompt_cache_breakpoint": mark}
    call: Json = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    items: list[Json] = [
        {"type": "message", "role": "developer", "content": [text, {"type": "input_text", "text": "b"}]},
        {"type": "message", "role": "user", "content": [text, image]},
        call,
        {"type": "function_call_output", "call_id": "c", "output": [text]},
    ]
    sent = plan(native("openai"), input=items).body["input"]
    assert [part.get("prompt_cache_breakpoint") for part in sent[0]["content"]] == [mark, None]
    assert [part["prompt_cache_breakpoint"] for part in sent[1]["content"]] == [mark, mark]
    assert sent[3]["output"][0]["prompt_cache_breakpoint"] == mark
    for other in (chat("openai"), chat("deepseek"), native("xai")):
        found = plan(other, input=items)
        assert "breakpoint" not in str(found.body)
        said = [one for one in found.diagnostics if "breakpoint" in one.path]
        assert [(one.action, one.path, one.metadata) for one in said] == [
            ("ignored", "input[0].content[0].prompt_cache_breakpoint", {"left_out": 4})
        ]
