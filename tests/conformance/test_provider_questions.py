"""Each question to the provider files is a real one: a file with the fault it asks about fails it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import provider_facts
from conformance import test_message_rules as rules
from conformance import test_provider_bodies as bodies
from conformance import test_providers as files

FAULTS: list[tuple[Callable[..., None], str, str]] = [
    (files.test_the_file_says_what_it_was_checked_against_and_when, "kimi", "sources = []"),
    (files.test_the_endpoint_can_be_called, "kimi", "[endpoint]\nauth = 'none'"),
    (files.test_the_endpoint_can_be_called, "bedrock", "[endpoint]\nauth = 'sigv4'"),
    (
        files.test_what_fills_an_address_cannot_lead_to_another_house,
        "azure",
        "[endpoint]\nbase_url = 'https://${AZURE_RESOURCE_NAME}/v1'",
    ),
    (files.test_every_glob_matches_its_own_example_and_changes_something, "kimi", "[models.'x*']\nexample = 'y'"),
    (
        files.test_every_glob_matches_its_own_example_and_changes_something,
        "kimi",
        "[models.'kimi-k3*']\nexample = 'kimi-k3'",
    ),
    (files.test_names_and_aliases_mean_one_provider_only, "kimi", "aliases = ['glm']"),
    (
        files.test_a_messages_endpoint_has_an_address_everywhere_and_a_request_that_it_can_take,
        "kimi",
        "[endpoint]\nmessages_url = 'https://api.moonshot.ai/anthropic'",
    ),
    (files.test_a_native_responses_endpoint_is_partial_and_consistent, "xai", "[responses]\nstateless = true"),
    (files.test_the_token_limit_has_a_name_and_only_one, "kimi", "[parameters]\nmax_output_tokens = { to = 'limit' }"),
    (files.test_the_token_limit_has_a_name_and_only_one, "kimi", "[parameters]\nmax_output_tokens = false"),
    (
        files.test_a_limit_above_the_models_maximum_is_clamped_and_said,
        "zhipu",
        "[parameters]\nmax_output_tokens = false",
    ),
    (files.test_limits_are_sane_and_a_default_leaves_room_for_the_question, "kimi", "[limits]\nsend_default = true"),
    (files.test_prices_are_ordered, "kimi", "[cost]\ncached = 9"),
    (files.test_every_effort_lands_on_what_the_model_takes, "deepseek", "[reasoning]\nmap = { medium = 'xhigh' }"),
    (
        files.test_no_effort_but_none_or_minimal_switches_thinking_off,
        "deepseek",
        "[reasoning]\nmap = { medium = 'none' }",
    ),
    (files.test_stronger_efforts_never_become_weaker, "deepseek", "[reasoning]\nmap = { xhigh = 'low' }"),
    (files.test_none_stops_the_thinking_or_says_that_it_cannot, "deepseek", "[reasoning]\nmap = { none = 'low' }"),
    (files.test_none_stops_the_thinking_or_says_that_it_cannot, "kimi", "[reasoning]\noff = {}\ndefault_on = false"),
    (bodies.test_a_forced_choice_has_a_way_out_also_while_thinking, "kimi", "[tool_choice]\nsupported = ['none']"),
    (
        bodies.test_a_format_is_sent_weakened_or_told_but_never_dropped,
        "kimi",
        "response_formats.supported = ['xml']",
    ),
    (
        files.test_the_switches_contradict_each_other,
        "deepseek",
        "reasoning.off = { thinking.type = 'enabled' }",
    ),
    (files.test_the_switches_contradict_each_other, "mistral", "[reasoning]\neffort = 'boolean'"),
    (files.test_every_mapped_effort_is_one_that_is_accepted, "deepseek", "[reasoning]\nmap = { low = 'high' }"),
    (files.test_reasoning_goes_back_under_a_field_that_it_came_in, "kimi", "[messages]\nreplay_field = 'thoughts'"),
    (rules.test_what_the_vendor_is_known_to_refuse_is_never_sent, "mistral", "[messages]\nafter_tool = 'any'"),
    (rules.test_what_the_vendor_is_known_to_refuse_is_never_sent, "mistral", "[messages]\nsystem = 'anywhere'"),
    (
        rules.test_what_the_vendor_is_known_to_refuse_is_never_sent,
        "vllm",
        "[models.'*gemma*']\nexample = 'google/gemma-3-12b-it'\nmessages = { turns = 'merged' }",
    ),
    (
        files.test_replayed_reasoning_keeps_the_thinking_on_where_the_file_says_so,
        "deepseek",
        "[messages]\nreplay = 'never'",
    ),
    (files.test_vendor_extras_have_a_field_before_they_have_a_fallback, "gemini", "[messages]\nreplay_extras = ''"),
    (bodies.test_tool_choices_are_words_that_exist, "kimi", "[tool_choice]\nsupported = ['any']"),
    (bodies.test_tools_are_native_or_stand_for_something_native, "kimi", "[tools.degraded]\nmcp = 'connector'"),
    (bodies.test_codex_tools_all_survive, "kimi", "[tools.degraded]\ncustom = false"),
    (
        bodies.test_a_native_search_is_declared_with_every_placeholder_filled,
        "xiaomi",
        "[tools.declarations.web_search]\nq = 'near {country}'",
    ),
    (bodies.test_only_a_provider_that_knows_developers_gets_one, "kimi", "[messages]\ndeveloper = 'developer'"),
    (bodies.test_local_templates_get_one_leading_system_message, "vllm", "[messages]\nsystem = 'anywhere'"),
    (bodies.test_call_ids_are_rewritten_only_where_they_must_be, "mistral", "[messages]\ncall_ids = 'keep'"),
    (bodies.test_usage_in_a_stream_is_asked_for_only_where_that_is_allowed, "mistral", "streaming_usage = true"),
    (bodies.test_usage_in_a_stream_is_asked_for_only_where_that_is_allowed, "kimi", "allow = ['stream']"),
    (bodies.test_cached_and_reasoning_tokens_are_looked_for_somewhere, "kimi", "[reply]\nreasoning_tokens = []"),
    (bodies.test_finish_reasons_map_to_known_ones_only, "kimi", "[reply]\nfinish_reasons = { done = 'finished' }"),
    (bodies.test_leaked_markup_is_parsed_only_for_the_family_that_leaks_it, "kimi", "[reply]\nleaked_tools = 'qwen'"),
    (bodies.test_the_allow_list_lets_everything_out_that_the_rules_can_send, "kimi", "[parameters]\nuser = {}"),
    (bodies.test_the_allow_list_names_nothing_that_no_model_can_send, "kimi", "[parameters]\nstop = false"),
    (bodies.test_sampling_ranges_are_sane, "zhipu", "[parameters]\ntemperature = { high = 5 }"),
    (
        bodies.test_a_temperature_out_of_range_is_clamped_or_ignored_but_never_sent,
        "groq",
        "[parameters.temperature]\nhigh = 3",
    ),
    (bodies.test_every_parameter_rule_is_about_a_parameter_that_clients_can_send, "kimi", "[parameters]\ntop_k = {}"),
]


@pytest.mark.parametrize(("question", "name", "fault"), FAULTS, ids=[f"{q.__name__[5:]}-{f}" for q, _, f in FAULTS])
def test_a_file_with_the_fault_fails_the_question(
    question: Callable[..., None], name: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.toml").write_text(fault, encoding="utf-8")
    monkeypatch.setattr(provider_facts, "USER_DIRS", [tmp_path])
    with pytest.raises(AssertionError):
        question(name)


def test_every_question_is_proved_to_be_able_to_fail() -> None:
    proved = {question.__name__ for question, _, _ in FAULTS}
    asked = {
        name
        for name, question in [*vars(files).items(), *vars(bodies).items()]
        if name.startswith("test_") and list(getattr(question, "__annotations__", {})) == ["name", "return"]
    }
    assert asked - proved == {"test_the_file_has_no_problems"}  # `tests/providers/test_check.py` proves that one
