"""Which dialects a provider speaks, which one is chosen, and where it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.capabilities import Dialect
from isthmus.config.schema import ProviderConfig
from isthmus.errors import ConfigError
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for, capabilities_in, choose_dialect, facts_in
from isthmus.wiring import http_endpoint


@pytest.mark.parametrize(
    ("name", "asked", "chosen"),
    [
        ("openai", None, "responses"),
        ("openai", "chat", "chat"),
        ("deepseek", None, "chat"),
        ("deepseek", "responses", "responses"),
        ("deepseek", "messages", "messages"),
        ("anthropic", None, "messages"),
        ("anthropic", "messages", "messages"),
    ],
)
def test_what_is_asked_for_or_what_the_file_prefers(name: str, asked: Dialect | None, chosen: str) -> None:
    provider = load_provider(name)
    assert choose_dialect(name, provider, asked) == chosen
    assert capabilities_for(provider, "", asked).dialect == chosen


@pytest.mark.parametrize(("name", "asked"), [("anthropic", "chat"), ("openai", "messages"), ("groq", "codex")])
def test_what_is_not_spoken_is_refused_with_what_is(name: str, asked: Dialect) -> None:
    with pytest.raises(ConfigError, match=r"it speaks `") as caught:
        choose_dialect("mine", load_provider(name), asked)
    assert caught.value.param == "providers.mine.dialect"


def test_an_endpoint_that_is_preferred_is_chosen_and_serves_its_models_only(tmp_path: Path) -> None:
    lines = "extends = 'openai-compatible'\n[messages_endpoint]\npreferred = true\nmodels = ['claude-*']\n"
    (tmp_path / "mine.toml").write_text(lines)
    provider = load_provider("mine", [tmp_path])
    assert choose_dialect("mine", provider) == "messages"
    assert capabilities_for(provider, "claude-x").dialect == "messages"
    assert capabilities_for(provider, "gpt-x").dialect == "chat"
    assert capabilities_in(provider, "gpt-x", None).dialect == "chat"


@pytest.mark.parametrize(
    ("name", "settings", "url"),
    [
        ("anthropic", {}, "https://api.anthropic.com/v1/messages"),
        ("deepseek", {}, "https://api.deepseek.com/anthropic/v1/messages"),
        ("zhipu", {}, "https://open.bigmodel.cn/api/anthropic/v1/messages"),
        ("zhipu", {"endpoint": "zai"}, "https://api.z.ai/api/anthropic/v1/messages"),
        ("kimi", {"endpoint": "china"}, "https://api.moonshot.cn/anthropic/v1/messages"),
        ("minimax", {"endpoint": "global"}, "https://api.minimax.io/anthropic/v1/messages"),
        (
            "bedrock",
            {"variables": {"AWS_REGION": "us-east-1"}},
            "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages",
        ),
        ("vllm", {}, "http://localhost:8000/v1/messages"),
        ("ollama", {"endpoint": "cloud"}, "https://ollama.com/v1/messages"),
        ("anthropic", {"base_url": "https://proxy.example/claude/"}, "https://proxy.example/claude/v1/messages"),
        ("anthropic", {"base_url": "https://proxy.example/v1"}, "https://proxy.example/v1/messages"),
    ],
)
def test_messages_have_an_address_of_their_own(name: str, settings: dict[str, Any], url: str) -> None:
    """Vendors name it without `/v1`, and so do people (claude-code#20416): both are taken."""
    endpoint = http_endpoint(name, load_provider(name), ProviderConfig(api_key="k", **settings), "", "messages")
    assert endpoint.url == url
    assert endpoint.headers["anthropic-version"] == "2023-06-01"


def test_a_signature_is_one_at_every_path() -> None:
    provider = load_provider("bedrock")
    signed = provider.endpoint.alternative("sigv4")
    assert facts_in(provider, signed, "messages").auth == signed.auth == "sigv4"
    assert facts_in(provider, provider.endpoint, "messages").auth == "x-api-key"


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [("anthropic", "x-api-key", "k"), ("deepseek", "x-api-key", "k"), ("zhipu", "authorization", "Bearer k")],
)
def test_the_key_travels_as_each_endpoint_wants_it(name: str, header: str, value: str) -> None:
    provider, settings = load_provider(name), ProviderConfig(api_key="k")
    headers = http_endpoint(name, provider, settings, "", "messages").headers
    assert {one: headers[one] for one in ("x-api-key", "authorization") if one in headers} == {header: value}
    if name != "anthropic":
        assert http_endpoint(name, provider, settings, "").headers == {"authorization": "Bearer k"}


def test_a_place_without_a_known_messages_address_says_so(tmp_path: Path) -> None:
    lines = (
        "extends = 'deepseek'\n[endpoint.alternatives]\n"
        "other = { base_url = 'https://other.example/v1', title = 'elsewhere' }\n"
    )
    (tmp_path / "mine.toml").write_text(lines)
    settings = ProviderConfig(endpoint="other")
    with pytest.raises(ConfigError, match="no address"):
        http_endpoint("mine", load_provider("mine", [tmp_path]), settings, "", "messages")
