"""DeepSeek, Zhipu, MiniMax and Xiaomi: what leaves for each, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.parse import parse_request
from isthmus.bridge.tools.hosted import fill_declaration
from isthmus.bridge.tools.survey import plan_tools, survey_tools
from isthmus.protocol.json import deep_merge
from isthmus.providers import load_provider

ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}
KEEP = {"thinking": {"type": "enabled", "clear_thinking": False}}
KEEP_OFF = {"thinking": {"type": "disabled", "clear_thinking": False}}
SPLIT = {"reasoning_split": True}


def sent(name: str, body: dict[str, Any], model: str = "", *, history: bool = False) -> dict[str, Any]:
    facts = load_provider(name).capabilities(model)
    request = parse_request({"model": "any", "input": "hello", "max_output_tokens": 7, **body})
    found = plan_bridge_compatibility(request, facts, replays_reasoning=history)
    return deep_merge(*(decision.sends for decision in found.decisions))


def thinking(name: str, effort: str | None, model: str = "", *, history: bool = False) -> dict[str, Any]:
    body = {"reasoning": {"effort": effort}} if effort else {}
    everything = sent(name, body, model, history=history)
    return {field: value for field, value in everything.items() if not field.startswith("max_")}


@pytest.mark.parametrize(
    ("effort", "expected"),
    [
        (None, OFF),
        ("none", OFF),
        ("minimal", {**ON, "reasoning_effort": "low"}),
        ("low", {**ON, "reasoning_effort": "low"}),
        ("medium", {**ON, "reasoning_effort": "high"}),
        ("high", {**ON, "reasoning_effort": "high"}),
        ("xhigh", {**ON, "reasoning_effort": "high"}),
        ("max", {**ON, "reasoning_effort": "max"}),
    ],
)
def test_deepseek_thinks_as_its_own_table_says(effort: str | None, expected: dict[str, Any]) -> None:
    assert thinking("deepseek", effort) == expected


def test_deepseek_keeps_thinking_when_its_reasoning_goes_back() -> None:
    assert thinking("deepseek", None, history=True) == ON


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("glm-5", None, {}),
        ("glm-5", "none", KEEP_OFF),
        ("glm-5", "low", KEEP),
        ("glm-5", "high", KEEP),
        ("glm-5.2", "minimal", KEEP_OFF),
        ("glm-5.2", "low", {**KEEP, "reasoning_effort": "high"}),
        ("glm-5.2", "medium", {**KEEP, "reasoning_effort": "high"}),
        ("glm-5.2", "xhigh", {**KEEP, "reasoning_effort": "max"}),
        ("glm-5.3", "none", {**KEEP, "reasoning_effort": "low"}),
        ("glm-5.3", "low", {**KEEP, "reasoning_effort": "low"}),
        ("glm-5.3", "medium", {**KEEP, "reasoning_effort": "high"}),
    ],
)
def test_zhipu_thinks_by_generation(model: str, effort: str | None, expected: dict[str, Any]) -> None:
    assert thinking("zhipu", effort, model) == expected


def test_zhipu_preserves_thinking_when_its_reasoning_goes_back() -> None:
    assert thinking("zhipu", None, history=True) == KEEP


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("MiniMax-M3", None, SPLIT),
        ("MiniMax-M3", "none", {**SPLIT, **OFF}),
        ("MiniMax-M3", "medium", {**SPLIT, "thinking": {"type": "adaptive"}}),
        ("MiniMax-M2.7", "none", {**SPLIT, "thinking": {"type": "adaptive"}}),
    ],
)
def test_minimax_always_splits_its_reasoning(model: str, effort: str | None, expected: dict[str, Any]) -> None:
    assert thinking("minimax", effort, model) == expected


@pytest.mark.parametrize(
    ("effort", "history", "expected"),
    [(None, False, OFF), ("none", False, OFF), ("low", False, ON), ("max", False, ON), (None, True, ON)],
)
def test_xiaomi_thinks_when_asked_or_when_reasoning_goes_back(
    effort: str | None, history: bool, expected: dict[str, Any]
) -> None:
    assert thinking("xiaomi", effort, history=history) == expected


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("deepseek", "max_tokens"),
        ("zhipu", "max_tokens"),
        ("minimax", "max_completion_tokens"),
        ("xiaomi", "max_completion_tokens"),
    ],
)
def test_the_limit_travels_under_the_vendors_name(name: str, field: str) -> None:
    assert sent(name, {})[field] == 7


@pytest.mark.parametrize("name", ["deepseek", "zhipu", "minimax", "xiaomi"])
def test_the_end_user_travels_as_user_id(name: str) -> None:
    assert sent(name, {"user": "u-1"})["user_id"] == "u-1"


@pytest.mark.parametrize(("name", "wins"), [("deepseek", True), ("zhipu", True), ("minimax", False), ("xiaomi", False)])
def test_a_safety_identifier_wins_where_it_is_known(name: str, wins: bool) -> None:
    found = sent(name, {"user": "u-1", "safety_identifier": "s-1"})
    assert found["user_id"] == ("s-1" if wins else "u-1")
    assert "safety_identifier" not in found


@pytest.mark.parametrize(
    ("name", "base_url", "model"),
    [
        ("deepseek", "https://api.deepseek.com", "deepseek-v4-pro"),
        ("zhipu", "https://open.bigmodel.cn/api/coding/paas/v4", "glm-5.2"),
        ("minimax", "https://api.minimaxi.com/v1", "MiniMax-M3"),
        ("xiaomi", "https://api.xiaomimimo.com/v1", "mimo-v2.5-pro"),
    ],
)
def test_addresses_and_default_models(name: str, base_url: str, model: str) -> None:
    provider = load_provider(name)
    assert provider.endpoint.base_url == base_url
    assert provider.default_model == model


SEARCH = {
    "type": "web_search",
    "search_context_size": "high",
    "filters": {"allowed_domains": ["example.org"]},
    "user_location": {"type": "approximate", "country": "FR"},
}
PLACE = {"type": "approximate", "country": "FR"}


@pytest.mark.parametrize(
    ("name", "tool", "expected"),
    [
        (
            "zhipu",
            SEARCH,
            {
                "type": "web_search",
                "web_search": {
                    "enable": True,
                    "search_engine": "search_std",
                    "content_size": "high",
                    "search_domain_filter": "example.org",
                    "user_location": PLACE,
                    "search_result": True,
                },
            },
        ),
        (
            "zhipu",
            {"type": "web_search"},
            {
                "type": "web_search",
                "web_search": {
                    "enable": True,
                    "search_engine": "search_std",
                    "content_size": "medium",
                    "search_result": True,
                },
            },
        ),
        ("xiaomi", SEARCH, {"type": "web_search", "max_keyword": 3, "limit": 5, "user_location": PLACE}),
        ("xiaomi", {"type": "web_search"}, {"type": "web_search", "max_keyword": 3, "limit": 3}),
    ],
)
def test_a_native_search_is_declared_the_vendors_way(name: str, tool: dict[str, Any], expected: dict[str, Any]) -> None:
    support = load_provider(name).capabilities().tools
    assert fill_declaration("web_search", tool, support.declarations["web_search"])[0] == expected


@pytest.mark.parametrize("name", ["zhipu", "xiaomi"])
@pytest.mark.parametrize(
    "kind", ["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"]
)
def test_every_spelling_of_the_search_becomes_the_native_one(name: str, kind: str) -> None:
    planned = plan_tools(survey_tools([{"type": kind}], (), "auto", load_provider(name).capabilities()))
    assert [plan.fields["type"] for plan in planned.declarations] == ["web_search"]


def test_zhipus_file_search_is_its_retrieval() -> None:
    tool = {"type": "file_search", "vector_store_ids": ["kb-1"]}
    (plan,) = plan_tools(survey_tools([tool], (), "auto", load_provider("zhipu").capabilities())).declarations
    assert plan.fields == {"type": "retrieval", "retrieval": {"knowledge_id": "kb-1"}}


@pytest.mark.parametrize(("name", "input_"), [("deepseek", set()), ("zhipu", set()), ("minimax", {"image", "video"})])
def test_what_the_default_model_reads_besides_text(name: str, input_: set[str]) -> None:
    assert load_provider(name).capabilities().messages.input == input_
