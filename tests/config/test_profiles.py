"""A profile is spelled as in the configuration, and read as the configuration is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus import Bridge
from isthmus.config.keys import tell_key
from isthmus.config.profiles import read_profile, require_key
from isthmus.config.schema import ProviderConfig, Timeouts
from isthmus.errors import ConfigError
from isthmus.testing import ScriptedUpstream, chat

AT = ("profiles", "openai", "prod")


def read(given: Any, environ: dict[str, str] | None = None, provider: str = "openai") -> ProviderConfig:
    return read_profile(AT, provider, given, environ=environ or {})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"timeouts": {"idle": "30s"}}, Timeouts(idle=30.0), id="words"),
        pytest.param({"timeouts": {"idle": 30}}, Timeouts(idle=30.0), id="a number"),
        pytest.param({"timeouts": Timeouts(idle=30.0)}, Timeouts(idle=30.0), id="our own type"),
    ],
)
def test_durations_are_read_as_in_the_file(given: dict[str, Any], expected: Timeouts) -> None:
    assert read({"api_key": "k", **given}).timeouts == expected


@pytest.mark.parametrize("given", [{"api_key": "sk-1\n"}, ProviderConfig(api_key="sk-1\n")], ids=["table", "struct"])
def test_a_key_with_a_line_break_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"`profiles\.openai\.prod\.api_key` has a line break"):
        Bridge({"openai": {"prod": given}})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"api_kye": "k"}, r"api_kye` is not a known key. Fix: did you mean `profiles\.openai", id="typo"),
        pytest.param({"api_key": None}, r"api_key` must be a string, not None", id="a variable that is not set"),
        pytest.param({"base_url": "localhost"}, r"base_url` must be a URL", id="address"),
        pytest.param({"retries": 99}, r"retries` must be an integer from 0 to 10", id="range"),
        pytest.param({"models": {"x": {"limit": 1}}}, r"prod\.models\.x\.limit` is not a known key", id="facts"),
        pytest.param({"api_key": "${NOT_SET}"}, r"refers to `\$\{NOT_SET\}`", id="reference"),
        pytest.param({"api_key_file": "/nowhere/key"}, r"cannot be read", id="file"),
        pytest.param("sk-1", r"`profiles\.openai\.prod` must be a table", id="a bare key"),
    ],
)
def test_what_is_wrong_is_told_when_the_bridge_is_made(given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Bridge({"openai": {"prod": given}})


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match="has 3 problems"):
        read({"api_kye": "k", "retries": -1, "base_url": "x"})


def test_references_and_files_work_as_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sk-file\n")
    assert read({"api_key": "${MINE}"}, {"MINE": "sk-mine"}).api_key == "sk-mine"
    settings = read({"api_key_file": str(tmp_path / "secret")})
    assert settings.api_key == "sk-file"
    assert tell_key("openai", settings.api_key) == "the key in the file of `profiles.openai.prod.api_key_file`"
    assert read(settings) == settings, "reading twice changes nothing"


@pytest.mark.parametrize(
    ("provider", "given", "expected"),
    [
        pytest.param("openai", {}, "sk-env", id="the vendor's own address"),
        pytest.param("openai", {"base_url": "https://api.openai.com/v2"}, "sk-env", id="another path there"),
        pytest.param("openai", {"base_url": "https://evil.example/v1"}, "", id="another host"),
        pytest.param("vllm", {"base_url": "http://10.0.0.1:8000/v1"}, "sk-vllm", id="a server of one's own"),
    ],
)
def test_a_key_of_the_environment_goes_where_it_goes_in_the_gateway(
    provider: str, given: dict[str, Any], expected: str
) -> None:
    environ = {"OPENAI_API_KEY": "sk-env", "VLLM_API_KEY": "sk-vllm"}
    assert read(given, environ, provider).api_key == expected


def test_a_missing_key_is_missed_when_somebody_needs_it() -> None:
    settings = read({})
    with pytest.raises(ConfigError, match="provider `openai` needs a key; set `OPENAI_API_KEY`"):
        require_key("openai", settings)
    require_key("openai", read({"base_url": "http://127.0.0.1:1/v1"}))
    require_key("vllm", read({}, provider="vllm"))


async def test_the_key_of_a_local_server_reaches_it_from_the_environment() -> None:
    with ScriptedUpstream.running([chat("ok")]) as upstream:
        profiles = {"vllm": {"default": {"base_url": upstream.base_url}}}
        async with Bridge(profiles, environ={"VLLM_API_KEY": "sk-vllm"}) as bridge:
            await bridge.chat("vllm/m", "hi")
        assert upstream.requests[0].headers["authorization"] == "Bearer sk-vllm"
