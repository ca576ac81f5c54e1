"""Who says a fact, in the dialect in which a model is spoken to."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from isthmus.bridge.capabilities import Dialect
from isthmus.providers import load_provider, provider_names
from isthmus.providers.dialects import capabilities_for, dialect_of
from isthmus.providers.origins import origins_of
from isthmus.providers.snapshot import snapshot_head
from isthmus.providers.word.told import Told, Word


def test_in_the_dialect_of_the_file_they_are_those_of_the_file() -> None:
    provider = load_provider("llama-cpp")
    assert origins_of(provider, "m") == provider.origins("m")


def test_the_section_of_an_endpoint_says_what_holds_there() -> None:
    found = origins_of(load_provider("llama-cpp", dialect="responses"), "m")
    assert found["tool_choice.supported"] == "llama-cpp.toml [responses]"
    assert found["reply.tells_length"] == "llama-cpp.toml [responses]"
    assert found["parameters.temperature.high"] == "llama-cpp.toml [parameters.temperature]"
    assert found["tools.strict"] == "llama-cpp.toml [tools]"
    assert found["response_formats.supported"] == "default"  # of the section: nothing but text
    assert found["messages.developer"] == found["reasoning.to"] == "Responses itself"
    assert found["limits.context"] == "default"
    assert not any(path.startswith("parameters.top_logprobs") for path in found), "it is not sent there"


def test_the_server_and_the_user_keep_their_names_there(tmp_path: Path) -> None:
    word = Word(senses={"image": False}, context=8192, choice=False)
    entry = {"m": {"response_formats": {"supported": ["text"]}, "reasoning": {"scale": ["low"], "effort": "native"}}}
    known = load_provider("openrouter", models=entry, place="mine", dialect="responses")
    found = origins_of(known.hear(Told(at=100.0, words={"m": word})), "m", now=100.0 + 12 * 60)
    assert found["messages.input"] == found["limits.context"] == "server, 12 min ago"
    assert found["tool_choice.supported"] == "server, 12 min ago"
    assert found["response_formats.supported"] == 'mine [models."m".response_formats]'
    assert found["reasoning.scale"] == 'mine [models."m".reasoning]'


def test_a_model_of_the_snapshot_in_its_own_protocol() -> None:
    label = snapshot_head().label
    found = origins_of(load_provider("opencode"), "gpt-5.5")
    assert found["tool_choice.supported"] == f"{label} [responses]"
    assert found["limits.context"] == f'{label} [models."gpt-5.5".limits]'


def test_a_section_of_the_users_own_is_named(tmp_path: Path) -> None:
    (tmp_path / "openrouter.toml").write_text("[responses]\nformats = ['text']\n")
    found = origins_of(load_provider("openrouter", [tmp_path], dialect="responses"), "m")
    assert found["response_formats.supported"] == f"{tmp_path / 'openrouter.toml'} [responses]"
    assert found["tool_choice.supported"] == "openrouter.toml [responses]"


@pytest.mark.parametrize("name", provider_names())
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_every_fact_has_an_origin_and_every_origin_a_fact(name: str, dialect: Dialect) -> None:
    provider = load_provider(name, dialect=dialect)
    if dialect_of(provider, provider.default_model) != dialect:
        return
    found = origins_of(provider)
    facts = msgspec.to_builtins(capabilities_for(provider, provider.default_model))
    told = {path.split(".")[0] for path in found}
    assert told >= set(facts) - {"provider", "model", *([] if facts["parameters"] else ["parameters"])}
    assert {path.split(".")[1] for path in found if path.startswith("parameters.")} <= {
        name.split(".")[0] for name in facts["parameters"]
    }
    assert all(found.values())
