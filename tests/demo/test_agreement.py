"""What is written about the demo model elsewhere is what it does."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from demo_requests import WEATHER, ask, choice, request
from isthmus.demo import directives
from isthmus.demo.directives import Directives, read_directives
from isthmus.demo.model import MODELS, answer

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "demo.md"


def facts() -> dict[str, Any]:
    return tomllib.loads((files("isthmus.providers") / "data" / "demo.toml").read_text())


def documented(text: str) -> list[str]:
    return re.findall(r"^\s*\| `(\[\[demo: .+?\]\])`", text, re.MULTILINE)


def test_the_guide_and_the_module_document_the_same_directives() -> None:
    assert documented(GUIDE.read_text()) == documented(directives.__doc__ or "")
    assert len(documented(GUIDE.read_text())) == 10


@pytest.mark.parametrize("directive", documented(GUIDE.read_text()))
def test_every_documented_directive_orders_something(directive: str) -> None:
    text, found = read_directives(f"before {directive} after")
    assert text == "before  after"
    assert found != Directives()


def test_the_provider_file_names_a_model_that_exists() -> None:
    assert facts()["default_model"] in MODELS


def test_every_effort_of_the_provider_file_thinks_more_than_the_one_before() -> None:
    efforts = facts()["reasoning"]["scale"]
    counts = [len(answer(request("hello", reasoning_effort=effort)).pieces) for effort in efforts]
    assert counts == sorted(set(counts))


def test_reasoning_and_cached_tokens_are_where_the_provider_file_says() -> None:
    reply = facts()["reply"]
    (field,) = reply["reasoning_fields"]
    assert ask("hello", reasoning_effort="low")[field]
    (path,) = reply["cached_tokens"]
    outer, inner = path.split(".")
    assert answer(request("hello")).usage[outer][inner] == 0


def test_the_limit_goes_by_the_name_of_the_provider_file() -> None:
    name = facts()["parameters"]["max_output_tokens"]["to"]
    assert choice("lorem 50", **{name: 5})["finish_reason"] == "length"


@pytest.mark.parametrize("kind", facts()["tool_choice"]["supported"])
def test_every_tool_choice_of_the_provider_file_is_obeyed(kind: str) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    message = ask("hello", WEATHER, tool_choice=named if kind == "function" else kind)
    assert bool(message.get("tool_calls")) == (kind in ("required", "function"))
