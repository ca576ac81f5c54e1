"""Effort, thinking, formats, identity: each option of a Messages request and what it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.doors.messages.read_options import OptionReader
from isthmus.errors import RequestRefused

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
FORM = {"type": "json_schema", "schema": SCHEMA}


def read(
    version: str = "2023-06-01", session: str = "", between: Any = None, **fields: Any
) -> tuple[Json, OptionReader]:
    reader = OptionReader(fields, version)
    asked: Any = fields
    return reader.read(asked, session, between), reader


def decided(reader: OptionReader) -> dict[str, str]:
    return {decision.path: decision.action for decision in reader.decisions}


@pytest.mark.parametrize(
    ("fields", "reasoning", "said"),
    [
        ({}, None, {}),
        ({"thinking": {"type": "disabled"}}, {"effort": "none"}, {}),
        (
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
            {"effort": "none"},
            {"output_config.effort": "ignored"},
        ),
        ({"thinking": {"type": "adaptive"}}, {"effort": "medium", "summary": "auto"}, {"thinking": "degraded"}),
        (
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}},
            {"effort": "high"},
            {"thinking": "supported"},
        ),
        (
            {"thinking": {"type": "adaptive", "display": "updates"}, "output_config": {"effort": "max"}},
            {"effort": "max", "summary": "auto"},
            {"thinking": "supported"},
        ),
        ({"output_config": {"effort": "low"}}, {"effort": "low"}, {}),
        ({"output_config": {"task_budget": {"total": 1}}}, None, {"output_config.task_budget": "ignored"}),
    ],
)
def test_thinking_and_effort(fields: Json, reasoning: Json | None, said: dict[str, str]) -> None:
    options, reader = read(**fields)
    assert options.get("reasoning") == reasoning
    assert decided(reader) == said


@pytest.mark.parametrize(
    ("budget", "effort"),
    [(1, "low"), (1024, "low"), (4095, "low"), (4096, "medium"), (16_384, "high"), (31_999, "high"), (32_768, "xhigh")],
)
def test_a_budget_is_told_as_the_effort_that_comes_closest(budget: int, effort: str) -> None:
    options, reader = read(thinking={"type": "enabled", "budget_tokens": budget})
    assert options["reasoning"] == {"effort": effort, "summary": "auto"}
    assert decided(reader)["thinking.budget_tokens"] == "degraded"
    assert reader.paths["reasoning.effort"] == "thinking.budget_tokens"


def test_an_effort_by_name_wins_over_a_budget() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    options, reader = read(thinking=thinking, output_config={"effort": "xhigh"})
    assert options["reasoning"]["effort"] == "xhigh"
    assert decided(reader)["thinking.budget_tokens"] == "ignored"


def test_the_effort_of_the_conversation_comes_later_and_counts() -> None:
    between = ("low", "messages[1].output_config.effort")
    options, reader = read(between=between, output_config={"effort": "high"}, thinking={"type": "adaptive"})
    assert options["reasoning"]["effort"] == "low"
    assert reader.paths["reasoning.effort"] == between[1]


@pytest.mark.parametrize(
    ("fields", "where"),
    [({"output_config": {"format": FORM}}, "output_config.format"), ({"output_format": FORM}, "output_format")],
)
def test_a_format_has_two_names(fields: Json, where: str) -> None:
    options, reader = read(**fields)
    assert options["text"]["format"] == {"type": "json_schema", "name": "output", "schema": SCHEMA, "strict": True}
    assert reader.paths["text.format"] == where


def test_the_newer_name_of_a_format_wins() -> None:
    _, reader = read(output_config={"format": FORM}, output_format=FORM)
    assert decided(reader) == {"output_format": "ignored"}


@pytest.mark.parametrize("form", [{"type": "json_schema"}, {"type": "xml", "schema": SCHEMA}])
def test_a_format_without_a_schema_is_refused(form: Json) -> None:
    with pytest.raises(RequestRefused, match="json_schema") as refused:
        read(output_format=form)
    assert refused.value.param == "output_format"


def test_who_asks_is_told_as_a_digest() -> None:
    facts = {"device_id": "d" * 64, "account_uuid": "", "session_id": "s-1"}
    options, _ = read(metadata={"user_id": json.dumps(facts)})
    assert options["safety_identifier"].startswith("user_")
    assert "ddd" not in repr(options)
    assert options["prompt_cache_key"] == "s-1"
    other, _ = read(metadata={"user_id": json.dumps({**facts, "session_id": "s-2"})})
    assert other["safety_identifier"] == options["safety_identifier"]
    plain, _ = read(metadata={"user_id": "ada"}, session="header")
    assert plain["safety_identifier"] not in ("ada", options["safety_identifier"])
    assert plain["prompt_cache_key"] == "header"


@pytest.mark.parametrize("user", ["{", "{}", "[1]", '{"device_id": 3}'])
def test_an_odd_user_id_breaks_nothing(user: str) -> None:
    assert read(metadata={"user_id": user})[0]["safety_identifier"]


@pytest.mark.parametrize(("asked", "told"), [("auto", "auto"), ("standard_only", "default")])
def test_service_tiers(asked: str, told: str) -> None:
    assert read(service_tier=asked)[0]["service_tier"] == told


def test_stop_sequences() -> None:
    assert read(stop_sequences=["a"])[0]["stop"] == ["a"]
    assert "stop" not in read(stop_sequences=[])[0]


@pytest.mark.parametrize(
    "name",
    ["safeguards", "diagnostics", "speed", "inference_geo", "fallbacks", "thread", "compaction", "user_profile_id"],
)
def test_what_only_the_vendor_knows_is_ignored_aloud(name: str) -> None:
    options, reader = read(**{name: [{"secret": "x"}]})
    assert decided(reader) == {name: "ignored"}
    assert "secret" not in repr(options)


@pytest.mark.parametrize("name", ["mcp_servers", "container"])
def test_what_only_the_vendor_can_run_is_rejected(name: str) -> None:
    assert decided(read(**{name: [{"x": 1}]})[1]) == {name: "rejected"}
    assert decided(read(**{name: None})[1]) == {}


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([{"type": "clear_thinking_20251015", "keep": "all"}], {"context_management.edits[0]": "supported"}),
        (
            [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns"}}],
            {"context_management.edits[0]": "ignored"},
        ),
        ([{"type": "clear_tool_uses_20250919"}], {"context_management.edits[0]": "ignored"}),
        ([{"type": "compact_20260112"}], {"context_management.edits[0]": "ignored"}),
        ([], {"context_management": "supported"}),
    ],
)
def test_edits_of_the_context(edits: list[Json], said: dict[str, str]) -> None:
    assert decided(read(context_management={"edits": edits})[1]) == said


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_the_newest_version_takes_no_sampling(name: str) -> None:
    with pytest.raises(RequestRefused, match="2026-10-21") as refused:
        read("2026-10-21", **{name: 1})
    assert refused.value.param == name
    read("2023-06-01", **{name: 1})
