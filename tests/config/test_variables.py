"""An address with gaps is filled from the configuration or the environment, and never with what changes the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.config import Reading, read_config
from isthmus.config.profiles import read_profile
from isthmus.config.render import render_toml
from isthmus.errors import ConfigError
from isthmus.values.problems import dotted

Read = Callable[..., Reading]
AZURE = "[providers.azure]\napi_key = 'k-azure-12345'\n"
RESOURCE = "AZURE_RESOURCE_NAME"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def _read(text: str = "", **environ: str) -> Reading:
        file = tmp_path / "isthmus.toml"
        file.write_text(text)
        file.chmod(0o600)
        return read_config(file, environ={"HOME": str(tmp_path), **environ}, cwd=tmp_path.parent)

    return _read


def found(reading: Reading) -> list[tuple[str, str]]:
    return [(dotted(problem.key), problem.severity) for problem in reading.problems]


def test_the_environment_fills_it_and_the_configuration_wins(read: Read) -> None:
    reading = read(AZURE, AZURE_RESOURCE_NAME=" acme ")
    assert found(reading) == []
    assert reading.config.providers["azure"].variables == {RESOURCE: "acme"}
    assert reading.known["azure"].base_url == "https://acme.openai.azure.com/openai/v1"
    reading = read(f"{AZURE}variables = {{ {RESOURCE} = 'other' }}\n", AZURE_RESOURCE_NAME="acme")
    assert reading.known["azure"].base_url == "https://other.openai.azure.com/openai/v1"


def test_where_it_comes_from_is_known_and_printed_as_a_reference(read: Read) -> None:
    reading = read(AZURE, AZURE_RESOURCE_NAME="acme")
    assert reading.origins["providers", "azure", "variables", RESOURCE].detail == f"${RESOURCE}"
    assert f"${{{RESOURCE}}}" in render_toml(reading)


def test_a_missing_one_is_a_problem_that_names_it(read: Read) -> None:
    (problem,) = read(AZURE).problems
    assert (dotted(problem.key), problem.severity) == ("providers.azure.variables", "error")
    assert RESOURCE in problem.text
    assert f"export {RESOURCE}=" in problem.fix


@pytest.mark.parametrize("value", ["evil.example/", "a.b", "a@b", "a:1", "a/b", "a b", "-"])
@pytest.mark.parametrize("place", ["environment", "configuration"])
def test_one_that_could_change_the_host_is_refused(read: Read, value: str, place: str) -> None:
    if place == "environment":
        reading = read(AZURE, AZURE_RESOURCE_NAME=value)
    else:
        reading = read(f"{AZURE}variables = {{ {RESOURCE} = '{value}' }}\n")
    (problem,) = reading.problems
    assert (dotted(problem.key), problem.severity) == (f"providers.azure.variables.{RESOURCE}", "error")
    assert "letters, digits and hyphens" in problem.fix


def test_a_misspelt_one_is_told(read: Read) -> None:
    (problem,) = read(f"{AZURE}variables = {{ AZURE_RESSOURCE_NAME = 'x' }}\n", AZURE_RESOURCE_NAME="acme").problems
    assert RESOURCE in problem.fix


def test_an_address_of_the_users_own_needs_none(read: Read) -> None:
    assert found(read(f"{AZURE}base_url = 'https://acme.openai.azure.com/openai/v1'\n")) == []


def test_the_key_of_the_environment_goes_to_the_filled_host_only(read: Read) -> None:
    environ = {"AZURE_RESOURCE_NAME": "acme", "AZURE_OPENAI_API_KEY": "k-azure-12345"}
    own = read("[providers.azure]\nbase_url = 'https://acme.openai.azure.com/openai/deployments/d'\n", **environ)
    assert own.config.providers["azure"].api_key == "k-azure-12345"
    other = read("[providers.azure]\nbase_url = 'https://evil.openai.azure.com/openai/v1'\n", **environ)
    assert other.config.providers["azure"].api_key == ""
    assert ("providers.azure.base_url", "warning") in found(other)


def test_a_key_without_its_address_serves_nobody(read: Read) -> None:
    assert "azure" not in read("", AZURE_OPENAI_API_KEY="k").config.providers
    assert "azure" in read("", AZURE_OPENAI_API_KEY="k", AZURE_RESOURCE_NAME="acme").config.providers
    assert "bedrock" not in read("", AWS_BEARER_TOKEN_BEDROCK="k").config.providers
    assert "bedrock" in read("", AWS_BEARER_TOKEN_BEDROCK="k", AWS_REGION="us-east-1").config.providers


def test_a_key_that_is_there_for_something_else_serves_nobody(read: Read) -> None:
    reading = read("", GITHUB_TOKEN="ghp_1", HF_TOKEN="hf_1")
    assert list(reading.config.providers) == ["demo"]
    assert "github-models" in read("", GITHUB_MODELS_TOKEN="ghp_1").config.providers
    named = read("[models]\ndefault = 'github-models/openai/gpt-4.1'\n", GITHUB_TOKEN="ghp_1")
    assert named.config.providers["github-models"].api_key == "ghp_1"


def test_another_address_of_the_file_is_filled_too(read: Read) -> None:
    text = "[providers.vertex]\nendpoint = 'region'\n"
    environ = {"GOOGLE_VERTEX_PROJECT": "p-1", "GOOGLE_VERTEX_LOCATION": "europe-west4"}
    reading = read(text, **environ)
    assert found(reading) == []
    assert reading.known["vertex"].base_url.startswith(
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/"
    )
    assert [dotted(p.key) for p in read(text, GOOGLE_VERTEX_PROJECT="p-1").problems] == ["providers.vertex.variables"]


def test_the_key_of_another_address_moves_there_with_the_variables(read: Read) -> None:
    reading = read("", AZURE_OPENAI_AUTH_TOKEN="eyJ.token", AZURE_RESOURCE_NAME="acme")
    assert found(reading) == []
    assert reading.config.providers["azure"].endpoint == "entra"
    assert reading.known["azure"].base_url == "https://acme.openai.azure.com/openai/v1"


def test_nothing_is_signed_for_another_host(read: Read) -> None:
    vertex = "[providers.vertex]\nvariables = { GOOGLE_VERTEX_PROJECT = 'p' }\nbase_url = 'https://evil.example/v1'\n"
    assert ("providers.vertex.base_url", "error") in found(read(vertex))
    assert found(read(f"{vertex}api_key = 'ya29.own'\n")) == []


def test_a_profile_of_a_bridge_has_them_too() -> None:
    at = ("profiles", "azure", "default")
    given = {"api_key": "k", "variables": {RESOURCE: "acme"}}
    assert read_profile(at, "azure", given, environ={}).variables == {RESOURCE: "acme"}
    with pytest.raises(ConfigError, match=RESOURCE):
        read_profile(at, "azure", {"api_key": "k"}, environ={})
