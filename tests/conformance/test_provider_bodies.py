"""The same questions to every provider file: tools, messages, formats, replies, and what may leave."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.finish import TABLE
from isthmus.bridge.tools.hosted import fill_declaration
from isthmus.bridge.tools.survey import plan_tools, survey_tools
from provider_facts import MODELS, each_file, each_model, facts_of, nothing_to_ask, plan, provider_of, sent

TOOL: dict[str, Any] = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
SEARCH: dict[str, Any] = {
    "type": "web_search",
    "search_context_size": "high",
    "filters": {"allowed_domains": ["example.org"]},
    "user_location": {"type": "approximate", "country": "FR"},
}

# Tools


@each_model
def test_a_forced_choice_has_a_way_out_also_while_thinking(name: str, model: str) -> None:
    facts = facts_of(name, model)
    for choice, effort in itertools.product(["required", {"type": "function", "name": "look"}], [None, "high"]):
        force_a_tool(facts, choice, effort)


def force_a_tool(facts: ProviderCapabilities, choice: Any, effort: str | None) -> None:
    body: dict[str, Any] = {"tools": [TOOL], "tool_choice": choice}
    if effort:
        body["reasoning"] = {"effort": effort}
    found = plan(facts, body)
    tools = plan_tools(survey_tools([TOOL], (), choice, facts), thinking=found.thinking)
    decision = tools.choice.decision
    assert decision is not None
    assert decision.action in ("supported", "degraded")
    allowed = facts.tool_choice.while_thinking if found.thinking else None
    allowed = facts.tool_choice.supported if allowed is None else allowed
    mode = "function" if tools.choice.mode == "named" else tools.choice.mode
    if facts.tool_choice.sent:
        assert mode in allowed, "what is sent must be taken at this moment"
    else:
        assert mode == "omit", "the field itself is refused"
    if decision.action == "degraded":
        assert tools.choice.instruction
    if choice == "required" and "required" in facts.tool_choice.supported and facts.reasoning.off:
        assert decision.action == "supported", "thinking gives way to the choice"


@each_model
def test_tool_choices_are_words_that_exist(name: str, model: str) -> None:
    facts = facts_of(name, model)
    support = facts.tool_choice
    assert "auto" in support.supported
    assert support.supported <= {"auto", "none", "required", *facts.tools.native}
    if support.while_thinking is not None:
        assert "auto" in support.while_thinking
        assert support.while_thinking < support.supported


@each_model
def test_tools_are_native_or_stand_for_something_native(name: str, model: str) -> None:
    tools = facts_of(name, model).tools
    assert "function" in tools.native
    assert tools.max is not None
    for kind, used in tools.degraded.items():
        assert kind not in tools.native
        assert used in tools.native or used in tools.declarations
    assert set(tools.declarations) <= tools.native | set(tools.degraded.values())


@each_model
def test_codex_tools_all_survive(name: str, model: str) -> None:
    facts = facts_of(name, model)
    offered: list[dict[str, Any]] = [
        TOOL,
        {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
        {"type": "local_shell"},
        {"type": "namespace", "name": "mcp__git", "tools": [{**TOOL, "name": "log"}]},
    ]
    planned = plan_tools(survey_tools(offered, (), "auto", facts))
    assert len(planned.declarations) == 4
    assert not [d for d in planned.decisions if d.action in ("ignored", "rejected")]


@each_model
def test_a_native_search_is_declared_with_every_placeholder_filled(name: str, model: str) -> None:
    tools = facts_of(name, model).tools
    if "web_search" not in tools.native:
        nothing_to_ask("it has none")
        return
    for tool in (SEARCH, {"type": "web_search"}):
        filled = fill_declaration("web_search", tool, tools.declarations.get("web_search"))[0]
        assert filled["type"] == "web_search"
        assert "{" not in repr(list(_texts(filled)))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from itertools.chain(value, *map(_texts, value.values()))
        case list():
            yield from itertools.chain(*map(_texts, value))


# Messages, formats, replies


@each_model
def test_only_a_provider_that_knows_developers_gets_one(name: str, model: str) -> None:
    messages = facts_of(name, model).messages
    assert (messages.developer == "developer") == (name in ("openai", "demo", "codex"))


@each_model
def test_local_templates_get_one_leading_system_message(name: str, model: str) -> None:
    if name not in ("ollama", "vllm", "llama-cpp", "sglang", "lmstudio", "openai-compatible"):
        nothing_to_ask("it is not local")
        return
    messages = facts_of(name, model).messages
    assert messages.system == "leading"
    assert messages.empty_content == "empty"


@each_model
def test_call_ids_are_rewritten_only_where_they_must_be(name: str, model: str) -> None:
    assert (facts_of(name, model).messages.call_ids == "alphanumeric9") == (name == "mistral")


@each_model
def test_a_format_is_sent_weakened_or_told_but_never_dropped(name: str, model: str) -> None:
    facts = facts_of(name, model)
    assert {"text"} <= facts.response_formats.supported <= {"text", "json_object", "json_schema"}
    for kind in ("text", "json_object", "json_schema"):
        ask_for_format(facts, kind)


def ask_for_format(facts: ProviderCapabilities, kind: str) -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    format_ = {"type": kind, **({"name": "n", "schema": schema} if kind == "json_schema" else {})}
    decision = plan(facts, {"instructions": "Answer in JSON.", "text": {"format": format_}}).decision("text.format")
    assert decision is not None
    if kind in facts.response_formats.supported:
        assert (decision.action, decision.effective_value) == ("supported", kind)
    else:
        assert decision.action == "degraded"
        assert decision.effective_value in (facts.response_formats.supported | {"prompt"}) - {"text"}


@each_model
def test_usage_in_a_stream_is_asked_for_only_where_that_is_allowed(name: str, model: str) -> None:
    facts = facts_of(name, model)
    found = sent(plan(facts, {"stream": True}))
    assert found["stream"] is True
    assert ("stream_options" in found) == facts.streaming_usage == (name not in ("mistral", "anthropic"))


@each_model
def test_cached_and_reasoning_tokens_are_looked_for_somewhere(name: str, model: str) -> None:
    reply = facts_of(name, model).reply
    for paths in (reply.cached_tokens, reply.reasoning_tokens):
        assert paths
        assert all(re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", path) for path in paths)
    first = {"deepseek": "prompt_cache_hit_tokens", "kimi": "cached_tokens"}
    assert reply.cached_tokens[0] == first.get(name, "prompt_tokens_details.cached_tokens")


@each_model
def test_finish_reasons_map_to_known_ones_only(name: str, model: str) -> None:
    reasons = facts_of(name, model).reply.finish_reasons
    for reason, used in reasons.items():
        assert used in TABLE, reason
    if not reasons:
        nothing_to_ask("it has the usual ones")


@each_model
def test_leaked_markup_is_parsed_only_for_the_family_that_leaks_it(name: str, model: str) -> None:
    families = {"dsml": "deepseek", "glm": ("glm", "zhipu"), "qwen": "qwen"}
    leaked = facts_of(name, model).reply.leaked_tools
    if not leaked:
        nothing_to_ask("none is looked for")
        return
    words = families[leaked]
    assert any(word in f"{name}/{model}".lower() for word in ([words] if isinstance(words, str) else words))


# What leaves


@each_model
def test_the_allow_list_lets_everything_out_that_the_rules_can_send(name: str, model: str) -> None:
    facts = facts_of(name, model)
    if facts.allow is None:
        nothing_to_ask("it has none")
        return
    possible = {"model", "messages", "stream", "tools", "tool_choice", *facts.extra_body}
    possible |= {(rule.to or path).partition(".")[0] for path, rule in facts.parameters.items()}
    for table in (facts.reasoning.on, facts.reasoning.off, facts.reasoning.with_history, facts.reasoning.always):
        possible |= set(table)
    if facts.reasoning.effort == "native":
        possible.add(facts.reasoning.to.partition(".")[0])
    if facts.streaming_usage:
        possible.add("stream_options")
    if facts.response_formats.supported - {"text"}:
        possible.add("response_format")
    if "top_logprobs" in facts.parameters:
        possible.add("logprobs")
    assert possible - facts.allow == set()


@each_file
def test_the_allow_list_names_nothing_that_no_model_can_send(name: str) -> None:
    provider = provider_of(name)
    if provider.capabilities().allow is None:
        nothing_to_ask("it has none")
        return
    used = {"model", "messages", "stream", "tools", "tool_choice", "stream_options", "response_format", "logprobs"}
    for facts in map(provider.capabilities, MODELS[name]):
        used |= {(rule.to or path).partition(".")[0] for path, rule in facts.parameters.items()}
        for table in (facts.reasoning.on, facts.reasoning.off, facts.reasoning.always):
            used |= set(table)
        used.add(facts.reasoning.to if facts.reasoning.effort == "native" else "model")
    assert (provider.capabilities().allow or frozenset()) - used == set()


@each_model
def test_sampling_ranges_are_sane(name: str, model: str) -> None:
    parameters = facts_of(name, model).parameters
    temperature = parameters.get("temperature")
    if temperature is not None:
        assert temperature.low == 0
        assert temperature.high is not None
        assert 1 <= temperature.high <= 2
    top_p = parameters.get("top_p")
    if top_p is not None:
        assert top_p.high == 1
        assert top_p.low is not None
        assert 0 <= top_p.low < 1
    for rule in parameters.values():
        assert rule.low is None or rule.high is None or rule.low < rule.high


@each_model
def test_a_temperature_out_of_range_is_clamped_or_ignored_but_never_sent(name: str, model: str) -> None:
    facts = facts_of(name, model)
    body = {"temperature": 3, "reasoning": {"effort": "none"}}
    decision = plan(facts, body).decision("temperature")
    assert decision is not None
    assert decision.action in ("degraded", "ignored")
    assert all(value <= 2 for value in decision.sends.values())


@each_model
def test_every_parameter_rule_is_about_a_parameter_that_clients_can_send(name: str, model: str) -> None:
    known = {
        "max_output_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop",
        "logit_bias", "top_logprobs", "parallel_tool_calls", "user", "safety_identifier", "service_tier",
        "prompt_cache_key", "prompt_cache_retention", "text.verbosity", "reasoning.summary",
        "reasoning.generate_summary",
    }  # fmt: skip
    assert set(facts_of(name, model).parameters) <= known
