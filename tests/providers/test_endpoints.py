"""What the server and the user say holds at a provider's other endpoints, too; a section of the user's own has the last
word on its endpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.capabilities import Dialect, ProviderCapabilities
from isthmus.providers import Provider, load_provider
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.word.told import Told, Word

FILE = """
extends = "openai-compatible"
[parameters]
top_logprobs = {}
[messages]
input = ["image"]
[responses]
tool_choice = ["auto", "none", "required"]
formats = ["text", "json_object", "json_schema"]
parameters = ["max_output_tokens", "temperature", "top_p", "top_logprobs", "reasoning", "parallel_tool_calls"]
efforts = ["low", "high"]
input = ["image"]
[messages_endpoint]
tool_choice = ["auto", "none", "required"]
formats = ["text", "json_schema"]
parameters = ["temperature", "top_p", "stop_sequences", "output_config", "thinking", "disable_parallel_tool_use"]
efforts = ["low", "high"]
"""
DIALECTS: tuple[Dialect, ...] = ("chat", "responses", "messages")
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A folder whose files count as ours."""
    (tmp_path / "acme.toml").write_text(FILE)
    return tmp_path


def provider(folder: Path, *, word: Word | None = None, user: dict[str, Any] | None = None) -> Provider:
    """`acme.toml` as if it were one of ours, with a server's word and the user's entry for the model `m` over it."""
    known = load_provider("acme", [folder], models={"m": user} if user else None)
    parts = tuple(replace(part, own=part.stem == "acme" and part.label == "configuration") for part in known.parts)
    known = replace(known, parts=parts)
    return known.hear(Told(at=1.0, words={"m": word})) if word is not None else known


def facts(known: Provider, dialect: Dialect) -> ProviderCapabilities:
    return capabilities_for(known, "m", dialect)


@each_dialect
def test_a_sense_that_the_server_lacks_is_lacked_everywhere(ours: Path, dialect: Dialect) -> None:
    assert facts(provider(ours), dialect).messages.input == {"image"}
    assert facts(provider(ours, word=Word(senses={"image": False})), dialect).messages.input == set()


@each_dialect
def test_tools_that_the_server_has_no_place_for_are_offered_nowhere(ours: Path, dialect: Dialect) -> None:
    found = facts(provider(ours, word=Word(tools=False)), dialect).tools
    assert (found.native, found.degraded) == (frozenset(), {})


@each_dialect
def test_formats_and_choices_that_it_does_not_take_are_sent_nowhere(ours: Path, dialect: Dialect) -> None:
    found = facts(provider(ours, word=Word(formats={"json_schema": False}, choice=False)), dialect)
    assert "json_schema" not in found.response_formats.supported
    assert found.tool_choice.supported == {"auto", "none"}


@each_dialect
def test_parameters_that_it_does_not_take_are_sent_nowhere(ours: Path, dialect: Dialect) -> None:
    word = Word(untaken=frozenset({"temperature", "stop"}))
    found = facts(provider(ours, word=word), dialect).parameters
    assert "top_p" in found
    assert not found.keys() & {"temperature", "stop"}


def test_what_its_chat_side_can_promises_nothing_of_the_other_endpoints(ours: Path) -> None:
    word = Word(formats={"json_object": True, "json_schema": True}, senses={"audio": True}, choice=True, tools=True)
    before, after = provider(ours), provider(ours, word=word)
    for dialect in DIALECTS[1:]:
        assert facts(after, dialect).response_formats == facts(before, dialect).response_formats
        assert facts(after, dialect).tool_choice == facts(before, dialect).tool_choice
        assert facts(after, dialect).messages.input == {"image"}


USER: dict[str, Any] = {
    "response_formats": {"supported": ["text"]},
    "tool_choice": {"supported": ["auto"]},
    "messages": {"input": ["image", "file"]},
    "reasoning": {"effort": "native", "scale": ["high", "max"]},
    "parameters": {"temperature": False, "parallel_tool_calls": False},
    "tools": {"strict": True},
}


@each_dialect
def test_what_the_user_writes_outranks_the_file_and_the_server(ours: Path, dialect: Dialect) -> None:
    word = Word(senses={"image": False}, formats={"json_schema": True}, choice=True)
    found = facts(provider(ours, word=word, user=USER), dialect)
    assert found.response_formats.supported == {"text"}
    assert found.tool_choice.supported == {"auto"}
    assert found.messages.input == {"image", "file"}
    assert found.reasoning.scale == ["high", "max"]
    assert not found.parameters.keys() & {"temperature", "parallel_tool_calls"}
    assert found.tools.strict is (dialect != "messages")  # Messages know no such word


@pytest.mark.parametrize("dialect", DIALECTS[1:])
def test_a_model_that_the_user_says_cannot_think_is_asked_for_no_effort(ours: Path, dialect: Dialect) -> None:
    found = facts(provider(ours, user={"reasoning": {"effort": "none"}}), dialect)
    assert (found.reasoning.effort, found.reasoning.scale) == ("none", [])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_file_says_of_one_model_holds_at_every_endpoint(tmp_path: Path, dialect: Dialect) -> None:
    entry = "[models.'m*']\nexample = 'm'\ntitle = 'M'\nparameters = { temperature = false }\n"
    (tmp_path / "acme.toml").write_text(FILE + entry)
    assert "temperature" not in facts(provider(tmp_path), dialect).parameters
    assert "temperature" in capabilities_for(provider(tmp_path), "other", dialect).parameters
    again = provider(tmp_path, user={"parameters": {"temperature": {"high": 1}}})
    assert "temperature" in facts(again, dialect).parameters


def test_what_the_snapshot_says_of_one_model_holds_in_its_protocol() -> None:
    zen = load_provider("opencode")
    assert "temperature" not in capabilities_for(zen, "gpt-5.5").parameters
    assert "temperature" in capabilities_for(zen, "claude-sonnet-4-5").parameters


def test_a_parameter_that_the_user_takes_back_from_the_server_is_sent(ours: Path) -> None:
    word = Word(untaken=frozenset({"temperature", "top_p"}))
    for dialect in DIALECTS:
        found = facts(provider(ours, word=word, user={"parameters": {"temperature": {"high": 1}}}), dialect)
        assert "temperature" in found.parameters
        assert "top_p" not in found.parameters


def test_the_users_own_section_has_the_last_word_on_its_endpoint(tmp_path: Path) -> None:
    (tmp_path / "acme.toml").write_text(FILE)  # the user's file altogether
    known = load_provider("acme", [tmp_path], models={"m": USER}).hear(Told(words={"m": Word(choice=False)}))
    found = facts(known, "responses")
    assert found.response_formats.supported == {"text", "json_object", "json_schema"}
    assert found.tool_choice.supported == {"auto", "none", "required"}
    assert found.reasoning.scale == ["low", "high"]
    assert facts(known, "chat").tool_choice.supported == {"auto"}


def test_openrouters_word_counts_in_responses_to_the_body() -> None:
    model = "some/model"
    word = Word(formats={"json_object": True, "json_schema": False}, untaken=frozenset({"temperature"}), choice=False)
    known = load_provider("openrouter", dialect="responses").hear(Told(words={model: word}))
    found = capabilities_for(known, model)
    assert found.dialect == "responses"
    assert found.response_formats.supported == {"text", "json_object"}
    assert "temperature" not in found.parameters
    assert found.allow is not None
    assert "temperature" not in found.allow
