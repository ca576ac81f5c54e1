"""`scripts/make_snapshot.py`: what becomes of an export, and that the same one gives the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT
from scripted import load_script

SCRIPT = ROOT / "scripts" / "make_snapshot.py"
script = load_script("make_snapshot")

COMPATIBLE = "@ai-sdk/openai-compatible"
MODEL: dict[str, Any] = {"name": "M", "release_date": "2026-01-01", "reasoning": False, "tool_call": True}


def provider(models: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    base = {"name": "Acme", "env": ["ACME_API_KEY"], "npm": COMPATIBLE, "api": "https://acme.example/v1", "doc": "d"}
    return {**base, **given, "models": models if models is not None else {"m": MODEL}}


def make(providers: dict[str, Any], **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Head, index by id, models by provider and id."""
    lines = script.make_snapshot({"date": "2026-07-02", "providers": providers}, **options).splitlines()
    index = {row[0]: row for row in json.loads(lines[1])}
    models = {id: {row["id"]: row for row in json.loads(line)} for id, line in zip(index, lines[2:], strict=True)}
    return json.loads(lines[0]), index, models


def one(model: dict[str, Any], **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = make({"acme": provider({"m": {**MODEL, **model}}, **given)})[2]["acme"]["m"]
    return found


def test_the_same_export_gives_the_same_bytes_whatever_its_order() -> None:
    models = {name: {**MODEL, "release_date": day} for name, day in (("b", "2026"), ("a", "2026"), ("c", "2027"))}
    turned = dict(reversed(models.items()))
    first = script.make_snapshot({"date": "2026-07-02", "providers": {"x": provider(models), "a": provider()}})
    again = script.make_snapshot({"date": "2026-07-02", "providers": {"a": provider(), "x": provider(turned)}})
    assert first == again
    assert list(make({"x": provider(models)})[2]["x"]) == ["c", "a", "b"]  # newest first, then by name


def test_the_raw_shape_of_models_dev_is_taken_with_its_day() -> None:
    raw = {"acme": provider({"m": {**MODEL, "modalities": {"input": ["text", "pdf"], "output": ["text"]}}})}
    lines = script.make_snapshot(raw, date="2026-11-16").splitlines()
    assert json.loads(lines[0])["date"] == "2026-11-16"
    assert json.loads(lines[2])[0]["reads"] == ["file"]
    with pytest.raises(ValueError, match="--date"):
        script.make_snapshot(raw)


@pytest.mark.parametrize(
    ("given", "protocol", "address"),
    [
        ({}, "chat", "https://acme.example/v1"),
        ({"npm": "@ai-sdk/anthropic"}, "messages", "https://acme.example/v1"),
        ({"npm": "@ai-sdk/openai"}, "responses", "https://acme.example/v1"),
        ({"npm": "@ai-sdk/openai", "api": None}, "", ""),
        ({"npm": "acme-sdk"}, "", "https://acme.example/v1"),
        ({"api": "https://acme.example/v1/chat/completions"}, "chat", "https://acme.example/v1"),
        ({"api": "https://acme.example/v1/"}, "chat", "https://acme.example/v1"),
    ],
)
def test_the_package_says_the_protocol(given: dict[str, Any], protocol: str, address: str) -> None:
    row = make({"acme": provider(**given)})[1]["acme"]
    assert (row[5], row[4]) == (protocol, address)
    assert bool(row[6]) is not bool(protocol)


def test_a_package_of_its_own_needs_an_address_that_is_known() -> None:
    row = make({"cerebras": provider(npm="@ai-sdk/cerebras", api=None)})[1]["cerebras"]
    assert row[4:6] == ["https://api.cerebras.ai/v1", "chat"]


def test_most_models_decide_and_the_others_are_marked() -> None:
    other = {**MODEL, "provider": {"npm": "@ai-sdk/anthropic"}}
    _, index, models = make({"acme": provider({"a": MODEL, "b": MODEL, "c": other})})
    assert index["acme"][5] == "chat"
    assert {id: row.get("speaks") for id, row in models["acme"].items()} == {"a": None, "b": None, "c": "messages"}
    shaped = {**MODEL, "provider": {"shape": "responses"}}
    assert make({"acme": provider({"a": shaped})})[1]["acme"][5] == "responses"


def test_what_fills_an_address_is_no_key() -> None:
    given = provider(env=["ACME_HOST", "ACME_TOKEN", "ACME_REGION"], api="https://${ACME_HOST}/v1")
    row = make({"acme": given})[1]["acme"]
    assert (row[3], row[4]) == (["ACME_TOKEN"], "https://${ACME_HOST}/v1")


def test_who_writes_no_text_is_left_out_and_counted() -> None:
    models = {
        "m": MODEL,
        "painter": {**MODEL, "output_kinds": ["image"]},
        "text-embedding-3": MODEL,
        "old": {**MODEL, "status": "deprecated"},
        "tiny": {**MODEL, "limit": {"context": 512, "output": 512}},
    }
    head, index, found = make({"acme": provider(models), "none": provider({"x-embed": MODEL})})
    assert list(found["acme"]) == ["m"]
    assert list(index) == ["acme"]
    assert sum(head["left_out"].values()) == 6


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ({"limit": {"context": 9000, "output": 4000}}, {"context": 9000, "output": 4000}),
        ({"limit": {"context": 9000, "output": 10_000}}, {"context": 9000}),
        ({"limit": {"context": 0, "output": 0}}, {}),
        ({"input": ["text", "pdf", "image"]}, {"reads": ["image", "file"]}),
        ({"cost": {"input": 1.0, "output": 2.50, "cache_read": 0.1}}, {"cost": [1, 0.1, 2.5]}),
        ({"cost": {"input": 1, "output": 2, "cache_read": 3}}, {"cost": [1, None, 2]}),
        ({"cost": {"input": 1, "output": 0}}, {}),
        ({"cost": {"input": 0, "output": 0}}, {"cost": [0, None, 0]}),
        ({"reasoning": True, "reasoning_options": [{"type": "toggle"}]}, {"thinks": True}),
        (
            {"reasoning": True, "reasoning_options": [{"type": "effort", "values": ["high", "low", "null"]}]},
            {"thinks": True, "efforts": ["low", "high"]},
        ),
        ({"reasoning": True, "reasoning_options": [{"type": "effort", "values": ["none"]}]}, {"thinks": True}),
        ({"reasoning": True, "interleaved": {"field": "reasoning"}}, {"thinks": True, "back": "reasoning"}),
        ({"reasoning": True, "interleaved": True}, {"thinks": True}),
        ({"tool_call": False}, {"tools": False}),
        ({"structured_output": False}, {"schemas": False}),
        ({"temperature": False}, {"temperature": False}),
    ],
)
def test_a_model_becomes_what_is_known_of_it(model: dict[str, Any], row: dict[str, Any]) -> None:
    assert one(model) == {"id": "m", "title": "M", **row}


# Prices


def prices(found: Any, **model: Any) -> list[Any]:
    return [{"id": "acme", "models": [{"id": "M", "match": {"equals": "m"}, "prices": found, **model}]}]


def priced(found: list[Any], day: str = "2026-09-28", id: str = "acme") -> tuple[Any, bool, dict[str, Any]]:
    models = {"m": {**MODEL, "cost": {"input": 1, "output": 2}}}
    head, _, rows = make({id: provider(models)}, prices=found, prices_date=day)
    return rows[id]["m"]["cost"], rows[id]["m"].get("repriced", False), head


def test_a_newer_list_of_prices_replaces_those_of_the_export() -> None:
    cost, repriced, head = priced(prices({"input_mtok": 3, "cache_read_mtok": 0.5, "output_mtok": 4}))
    assert (cost, repriced) == ([3, 0.5, 4], True)
    assert (head["repriced"], head["prices_date"]) == (1, "2026-09-28")
    assert priced(prices({"input_mtok": 1, "output_mtok": 2}))[:2] == ([1, None, 2], False)
    assert priced(prices({"input_mtok": 3, "output_mtok": 4}), day="2026-07-01")[:2] == ([1, None, 2], False)


def test_only_a_model_that_is_named_whole_gets_another_price() -> None:
    assert priced(prices({"input_mtok": 3, "output_mtok": 4}, id="n", match={"starts_with": "m"}))[0] == [1, None, 2]
    either = {"or": [{"equals": "x"}, {"equals": "m"}]}
    assert priced(prices({"input_mtok": 3, "output_mtok": 4}, id="n", match=either))[0] == [3, None, 4]


def test_of_several_prices_the_one_that_holds_on_the_day_and_by_the_hour_the_dearest() -> None:
    dated = [
        {"prices": {"input_mtok": 9, "output_mtok": 9}},
        {"constraint": {"start_date": "2026-08-01"}, "prices": {"input_mtok": 3, "output_mtok": 4}},
        {"constraint": {"start_date": "2027-01-01"}, "prices": {"input_mtok": 8, "output_mtok": 8}},
    ]
    assert priced(prices(dated))[0] == [3, None, 4]
    hourly = {"constraint": {"start_time": "01:00", "end_time": "04:00"}, "prices": {"input_mtok": 6, "output_mtok": 8}}
    assert priced(prices([*dated, hourly]))[0] == [6, None, 8]
    tiered = {"input_mtok": {"base": 3, "tiers": [{"start": 200_000, "price": 6}]}, "output_mtok": 4}
    assert priced(prices(tiered))[0] == [3, None, 4]


# As a command


def test_the_command_writes_the_file_and_says_what_it_left_out(tmp_path: Path) -> None:
    export, out = tmp_path / "api.json", tmp_path / "providers.jsonl"
    export.write_text(json.dumps({"acme": provider({"m": MODEL, "x-embed": MODEL})}))
    command = [sys.executable, str(SCRIPT), str(export), "--out", str(out)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--date" in refused.stderr
    done = subprocess.run([*command, "--date", "2026-11-16"], capture_output=True, text=True, check=True)
    assert "1 providers, 1 models" in done.stderr
    assert "models that write no text" in done.stderr
    assert out.read_bytes() == script.make_snapshot(json.loads(export.read_text()), date="2026-11-16")


def test_models_that_are_spoken_to_otherwise_are_said_in_the_index() -> None:
    models = {
        "a": MODEL,
        "b": {**MODEL, "provider": {"npm": "@ai-sdk/anthropic", "api": "https://acme.example/claude/v1"}},
        "c": {**MODEL, "provider": {"npm": "@ai-sdk/openai", "api": "https://acme.example/v1"}},
        "d": {**MODEL, "provider": {"npm": "@ai-sdk/google"}},
        "e": MODEL,
    }
    _, index, rows = make({"acme": provider(models), "plain": provider()})
    assert index["acme"][10] == {"messages": "https://acme.example/claude/v1", "responses": ""}
    assert len(index["plain"]) == 10
    assert [rows["acme"][id].get("speaks") for id in models] == [None, "messages", "responses", "", None]
    elsewhere = {**models, "c": {**MODEL, "provider": {"npm": "@ai-sdk/openai", "api": "https://other.example/v1"}}}
    assert list(make({"acme": provider(elsewhere)})[1]["acme"][10]) == ["messages"]


def test_an_address_of_our_own_is_known_for_one_protocol_only() -> None:
    models = {"a": MODEL, "b": {**MODEL, "provider": {"npm": "@ai-sdk/anthropic"}}, "c": MODEL}
    given = provider(models, npm="@ai-sdk/cerebras", api=None)
    assert len(make({"cerebras": given})[1]["cerebras"]) == 10
