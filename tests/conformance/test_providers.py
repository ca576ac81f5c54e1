"""The same questions to every provider file: the file itself, limits, thinking, and reasoning that goes back.

Each is asked of the default model, of every model the file names, and of one that it does not name. The answers
come from the planners wherever a planner decides, so that a file and the code that reads it are tested together.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from isthmus.addresses import fill_gaps, gaps_of, host_of
from isthmus.bridge.capabilities import EFFORTS, ProviderCapabilities
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Target
from isthmus.protocol.json import contains
from isthmus.providers import Provider, check_provider_file
from isthmus.providers import load as load_module
from isthmus.providers.dialects import capabilities_in
from isthmus.providers.schema import COMPUTED
from provider_facts import (
    MODELS,
    NAMES,
    each_file,
    each_model,
    effort_decision,
    facts_of,
    nothing_to_ask,
    plan,
    provider_of,
    sent,
)

SIGNED = {"sigv4": {"service", "region"}, "google": {"scope"}}
OWN_HOSTS = (".azure.com", ".api.aws", ".amazonaws.com", "aiplatform.googleapis.com")

# The file itself


@each_file
def test_the_file_has_no_problems(name: str) -> None:
    path = Path(load_module.__file__).parent / "data" / f"{name}.toml"
    assert check_provider_file(path) == []


@each_file
def test_the_file_says_what_it_was_checked_against_and_when(name: str) -> None:
    provider = provider_of(name)
    assert provider.title
    assert provider.sources
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", provider.checked)
    if name != "demo":
        assert all("://" in source or source.startswith("models.dev") for source in provider.sources)
    header = (Path(load_module.__file__).parent / "data" / f"{name}.toml").read_text(encoding="utf-8")
    assert header.startswith("# ")
    assert provider.checked in header.partition("\nname =")[0]


@each_file
def test_the_endpoint_can_be_called(name: str) -> None:
    endpoint = provider_of(name).endpoint
    assert endpoint.base_url.startswith(("https://", "http://localhost")) or name in ("demo", "codex")
    assert not endpoint.base_url.endswith("/")
    assert endpoint.path == ("messages" if facts_of(name, "").dialect == "messages" else "chat/completions")
    assert (endpoint.auth in ("none", *COMPUTED)) != bool(endpoint.key_env)
    for alternative in endpoint.alternatives.values():
        assert alternative.base_url.startswith("https://")
        assert alternative.title
    for each in (endpoint, *map(endpoint.alternative, endpoint.alternatives)):
        assert set(each.sign) == SIGNED.get(each.auth, set())


@each_file
def test_what_fills_an_address_cannot_lead_to_another_house(name: str) -> None:
    endpoint = provider_of(name).endpoint
    for each in (endpoint, *map(endpoint.alternative, endpoint.alternatives)):
        host = host_of(fill_gaps(each.base_url, dict.fromkeys(gaps_of(each.base_url), "mine")))
        assert host is not None
        if gaps_of(each.base_url):
            assert host.endswith(OWN_HOSTS), "the house itself is no gap"
        for variable, bad in itertools.product(gaps_of(each.base_url), ("evil.example/", "a@b", "a/b", "a?b", "#")):
            assert fill_gaps(each.base_url, {variable: bad}) == each.base_url


@each_file
def test_every_glob_matches_its_own_example_and_changes_something(name: str) -> None:
    provider = provider_of(name)
    for entry in provider.models:
        assert entry.matches(entry.example), entry.pattern
        assert entry.exact or entry.example != entry.pattern, f"`{entry.pattern}` needs an example"
        assert entry.title, entry.pattern
        assert entry.layer.facts, f"`{entry.pattern}` says nothing"
        own = {origin for origin in provider.origins(entry.example).values() if f'"{entry.pattern}"' in origin}
        assert own, f"`{entry.pattern}` is overridden altogether for its own example"


@each_file
def test_names_and_aliases_mean_one_provider_only(name: str) -> None:
    aliases = provider_of(name).aliases
    others = {alias for other in NAMES if other != name for alias in (other, *provider_of(other).aliases)}
    assert not others.intersection(aliases)
    for alias in aliases:
        assert provider_of(alias).name == name
    if not aliases:
        nothing_to_ask("it has one name")


@each_file
def test_a_messages_endpoint_has_an_address_everywhere_and_a_request_that_it_can_take(name: str) -> None:
    provider = provider_of(name)
    facts = provider.messages_endpoint
    if facts is None:
        nothing_to_ask("it has none")
        return
    endpoint = provider.endpoint
    for place in (endpoint, *endpoint.alternatives.values()):
        base = place.messages_url or ("" if endpoint.messages_url else place.base_url)
        assert re.search(r"/v\d+$", base), "a Messages address ends with its version"
    assert {"text"} <= facts.formats <= {"text", "json_schema"}
    assert "auto" in facts.tool_choice
    assert facts.parameters <= MESSAGES_FIELDS
    for model in MODELS[name]:
        ask_in_messages(provider, model)


MESSAGES_FIELDS = {
    *("temperature", "top_p", "stop_sequences", "metadata", "thinking", "output_config"),
    "disable_parallel_tool_use",
}


def ask_in_messages(provider: Provider, model: str) -> None:
    """Whatever a client asks for, only fields of the protocol leave, and a limit with them."""
    facts = capabilities_in(provider, model, "messages")
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    for effort in EFFORTS:
        asked = {"model": model, "input": "hi", "tools": [tool], "temperature": 0.5, "stop": ["x"], "user": "u"}
        request = parse_request({**asked, "reasoning": {"effort": effort}, "parallel_tool_calls": False})
        body = plan_request(request, Target(provider.name, model, facts)).body
        assert body["max_tokens"] <= (facts.limits.output or 32_000)
        allowed = {"model", "messages", "max_tokens", "tools", "tool_choice", *facts_fields(provider)}
        assert set(body) <= allowed, model
        assert set(body.get("thinking", {"type": ""})) == {"type"}
        assert set(body.get("output_config", {})) <= {"effort"}


def facts_fields(provider: Provider) -> frozenset[str]:
    return provider.messages_endpoint.parameters if provider.messages_endpoint else frozenset()


@each_file
def test_a_native_responses_endpoint_is_partial_and_consistent(name: str) -> None:
    facts = provider_of(name).responses
    if facts is None:
        nothing_to_ask("it has none")
        return
    assert "function" in facts.tools
    assert {"text"} <= facts.formats <= {"text", "json_object", "json_schema"}
    assert facts.efforts == sorted(facts.efforts, key=EFFORTS.index)
    assert facts.stateless == ("previous_response_id" not in facts.parameters)


# Limits


@each_model
def test_the_token_limit_has_a_name_and_only_one(name: str, model: str) -> None:
    facts = facts_of(name, model)
    planned = plan(facts, {"max_output_tokens": 5})
    if facts.dialect == "codex":
        decision = planned.decision("max_output_tokens")
        assert decision is not None
        assert decision.action == "ignored", "there is no limit to send, and that is said"
        return
    found = sent(planned)
    names = [field for field in ("max_tokens", "max_completion_tokens") if field in found]
    assert len(names) == 1
    assert found[names[0]] == 5


@each_model
def test_a_limit_above_the_models_maximum_is_clamped_and_said(name: str, model: str) -> None:
    facts = facts_of(name, model)
    if facts.limits.output is None:
        nothing_to_ask("nobody knows its limit")
        return
    decision = plan(facts, {"max_output_tokens": facts.limits.output + 1}).decision("max_output_tokens")
    assert decision is not None
    assert decision.action == "degraded"
    assert facts.limits.output in decision.sends.values()


@each_model
def test_limits_are_sane_and_a_default_leaves_room_for_the_question(name: str, model: str) -> None:
    limits = facts_of(name, model).limits
    for limit in (limits.context, limits.output):
        assert limit is None or 1_000 <= limit <= 4_000_000
    if limits.context and limits.output:
        assert limits.output <= limits.context
    if limits.send_default:
        assert limits.output is not None, "there is no maximum to send"
        assert limits.context is None or limits.output * 2 <= limits.context
        assert limits.output in sent(plan(facts_of(name, model), {})).values()


@each_model
def test_prices_are_ordered(name: str, model: str) -> None:
    cost = facts_of(name, model).cost
    known = [price for price in (cost.cached, cost.input, cost.output) if price is not None]
    assert known == sorted(known)
    assert (cost.input is None) == (cost.output is None)


# Thinking


@each_model
def test_every_effort_lands_on_what_the_model_takes(name: str, model: str) -> None:
    facts = facts_of(name, model)
    for effort in EFFORTS:
        ask_for_effort(facts, effort)


def ask_for_effort(facts: ProviderCapabilities, effort: str) -> None:
    support = facts.reasoning
    found = plan(facts, {"reasoning": {"effort": effort}})
    decision = effort_decision(found)
    if support.effort == "none":
        assert not decision.sends
        assert decision.action == "ignored" or (effort == "none" and not support.default_on)
    elif support.effort == "boolean":
        assert contains(decision.sends, support.on if found.thinking else support.off)
        assert found.thinking == (effort != "none" or not support.off)
    else:
        can_stop = "none" in support.scale or bool(support.off) or not support.default_on
        assert decision.effective_value in (*support.scale, *(["none"] if can_stop else []))
        if effort in support.scale:
            assert decision.effective_value == effort
    if decision.effective_value != effort and decision.sends and support.effort == "native":
        assert decision.action == "degraded", "a changed effort must be said"


@each_model
def test_no_effort_but_none_or_minimal_switches_thinking_off(name: str, model: str) -> None:
    facts = facts_of(name, model)
    support = facts.reasoning
    if support.effort == "none":
        nothing_to_ask("it takes no effort")
        return
    for effort in ("low", "medium", "high", "xhigh", "max"):
        found = plan(facts, {"reasoning": {"effort": effort}})
        assert found.thinking, effort
        assert not (support.off and contains(sent(found), support.off)), effort


@each_model
def test_stronger_efforts_never_become_weaker(name: str, model: str) -> None:
    facts = facts_of(name, model)
    if facts.reasoning.effort != "native":
        nothing_to_ask("its efforts have no grades")
        return
    used = [effort_decision(plan(facts, {"reasoning": {"effort": effort}})).effective_value for effort in EFFORTS[1:]]
    ranks = [EFFORTS.index(effort) for effort in used]
    assert ranks == sorted(ranks)


@each_model
def test_none_stops_the_thinking_or_says_that_it_cannot(name: str, model: str) -> None:
    facts = facts_of(name, model)
    support = facts.reasoning
    found = plan(facts, {"reasoning": {"effort": "none"}})
    if support.off or "none" in support.scale:
        assert not found.thinking
    else:
        assert found.thinking == support.default_on
        assert not found.thinking or effort_decision(found).action in ("degraded", "ignored")


@each_model
def test_the_switches_contradict_each_other(name: str, model: str) -> None:
    support = facts_of(name, model).reasoning
    if support.on and support.off:
        assert not contains(support.on, support.off)
        assert set(support.on) == set(support.off), "both must speak of the same fields"
    if support.unset == "off":
        assert support.off or "none" in support.scale
    if support.unset == "on":
        assert support.on
    if support.effort == "boolean":
        assert support.on, "a boolean mode without words of its own would speak somebody else's"
        assert not support.scale
    if support.effort == "native":
        assert support.scale
    if support.effort == "none":
        assert [support.scale, support.on, support.off, support.map] == [[], {}, {}, {}]


@each_model
def test_every_mapped_effort_is_one_that_is_accepted(name: str, model: str) -> None:
    support = facts_of(name, model).reasoning
    for effort, used in support.map.items():
        assert effort not in support.scale, f"`{effort}` is on the scale and needs no mapping"
        assert used in support.scale or (used == "none" and support.off and effort == "minimal")


# Reasoning in replies and histories


@each_model
def test_reasoning_goes_back_under_a_field_that_it_came_in(name: str, model: str) -> None:
    facts = facts_of(name, model)
    messages, reply = facts.messages, facts.reply
    if messages.replay == "never":
        assert not any((messages.replay_details, messages.replay_chunks, messages.replay_placeholder))
        nothing_to_ask("its reasoning does not go back")
        return
    assert facts.reasoning.effort != "none" or facts.reasoning.default_on or name == "fireworks"
    if messages.replay_chunks:
        assert not messages.replay_details
    else:
        assert messages.replay_field in reply.reasoning_fields


@each_model
def test_replayed_reasoning_keeps_the_thinking_on_where_the_file_says_so(name: str, model: str) -> None:
    facts = facts_of(name, model)
    support = facts.reasoning
    if not support.with_history:
        nothing_to_ask("the file does not say so")
        return
    assert facts.messages.replay != "never"
    assert contains(sent(plan(facts, {}, replays_reasoning=True)), support.with_history)
    silent = plan(facts, {"reasoning": {"effort": "none"}}, replays_reasoning=True)
    if support.off:
        assert contains(sent(silent), support.off), "a client that says none means it"


@each_model
def test_vendor_extras_have_a_field_before_they_have_a_fallback(name: str, model: str) -> None:
    messages = facts_of(name, model).messages
    assert messages.replay_extras or messages.replay_extras_fallback is None
    if not messages.replay_extras:
        nothing_to_ask("nothing of the vendor's goes back")
