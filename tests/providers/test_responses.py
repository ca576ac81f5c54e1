"""A native Responses endpoint is its own dialect: each of its facts may differ from the chat side's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.responses import serves

CHAT = """
[endpoint]
base_url = "http://127.0.0.1:1/v1"
auth = "none"
[parameters]
max_output_tokens = { to = "max_tokens" }
[tools]
strict = true
[tool_choice]
supported = ["auto", "none", "required", "function"]
while_thinking = ["auto", "none", "required"]
[response_formats]
supported = ["text", "json_object", "json_schema"]
with_tools = false
[reasoning]
effort = "native"
scale = ["low", "high"]
default_on = true
[messages]
input = ["image", "audio"]
[responses]
parameters = ["reasoning"]
"""


def both(folder: Path, responses: str = "") -> tuple[ProviderCapabilities, ProviderCapabilities]:
    (folder / "own.toml").write_text(CHAT + responses)
    provider = load_provider("own", [folder])
    return capabilities_for(provider, "m", "chat"), capabilities_for(provider, "m", "responses")


DIFFER: dict[str, tuple[str, str, Any, Any]] = {
    "formats": ("formats = ['text']", "response_formats.supported", {"text"}, {"text", "json_object", "json_schema"}),
    "formats beside tools": ("with_tools = true", "response_formats.with_tools", True, False),
    "choices": (
        "tool_choice = ['auto', 'required']",
        "tool_choice.supported",
        {"auto", "required"},
        {"auto", "none", "required", "function"},
    ),
    "choices while thinking": (
        "tool_choice = ['auto', 'none']\nwhile_thinking = ['auto']",
        "tool_choice.while_thinking",
        {"auto"},
        {"auto", "none", "required"},
    ),
    "efforts": ("efforts = ['none', 'medium']", "reasoning.scale", ["none", "medium"], ["low", "high"]),
    "strictness": ("strict = false", "tools.strict", False, True),
    "modalities": ("input = ['image']", "messages.input", {"image"}, {"image", "audio"}),
    "no modality": ("input = []", "messages.input", set(), {"image", "audio"}),
}


@pytest.mark.parametrize(("said", "path", "native", "chat"), DIFFER.values(), ids=list(DIFFER))
def test_a_fact_of_the_endpoint_is_not_the_chat_sides(
    tmp_path: Path, said: str, path: str, native: Any, chat: Any
) -> None:
    chat_facts, native_facts = both(tmp_path, said)

    def at(facts: Any) -> Any:
        for part in path.split("."):
            facts = getattr(facts, part)
        return facts

    assert at(native_facts) == native
    assert at(chat_facts) == chat


def test_what_it_does_not_say_is_the_chat_sides(tmp_path: Path) -> None:
    _, native = both(tmp_path)
    assert native.messages.input == {"image", "audio"}
    assert native.reasoning.scale == ["low", "high"]


def test_no_choice_is_taken_while_thinking_that_is_not_taken_at_all(tmp_path: Path) -> None:
    _, native = both(tmp_path, "tool_choice = ['auto', 'none']")
    assert native.tool_choice.while_thinking == {"auto", "none"}


def test_a_model_that_the_endpoint_does_not_have_is_asked_in_chat(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"{CHAT}models = ['gpt-*']\npreferred = true\n")
    provider = load_provider("own", [tmp_path])
    assert serves(provider.responses, "GPT-9")
    assert capabilities_for(provider, "gpt-9").dialect == "responses"
    assert capabilities_for(provider, "llama").dialect == "chat"


def test_bedrock_speaks_responses_with_openais_models_only() -> None:
    bedrock = load_provider("bedrock")
    assert capabilities_for(bedrock, "openai.gpt-oss-120b").dialect == "responses"
    assert capabilities_for(bedrock, "deepseek.v3.2").dialect == "chat"


def test_ours_may_stand_on_another_of_ours() -> None:
    azure, openai = load_provider("azure"), load_provider("openai")
    assert [file for file in azure.files if file.endswith(".toml")] == ["openai.toml", "azure.toml"]
    assert (azure.name, azure.title, azure.default_model) == ("azure", "Azure OpenAI", "")
    assert azure.endpoint.auth == "api-key"
    assert azure.capabilities("gpt-5.5").limits == openai.capabilities("gpt-5.5").limits
    assert load_provider("ollama-cloud").endpoint.alternatives == {}


@pytest.mark.parametrize(
    ("name", "model", "holds"),
    [
        ("openai", "gpt-5.6", True),
        ("azure", "gpt-5.1", True),
        ("llama-cpp", "m", True),
        ("deepseek", "deepseek-v4-pro", False),
        ("groq", "openai/gpt-oss-120b", False),
        ("vllm", "m", False),
    ],
)
def test_schemas_of_tools_bind_there_where_somebody_says_so(name: str, model: str, holds: bool) -> None:
    """A section that says nothing of it claims what the chat side does, and no more."""
    assert capabilities_for(load_provider(name), model, "responses").tools.strict is holds


@pytest.mark.parametrize("strict", [True, False])
def test_a_section_may_say_otherwise(tmp_path: Path, strict: bool) -> None:
    (tmp_path / "deepseek.toml").write_text(f"[responses]\nstrict = {str(strict).lower()}\n")
    provider = load_provider("deepseek", [tmp_path])
    assert capabilities_for(provider, "deepseek-v4-pro", "responses").tools.strict is strict
    assert not capabilities_for(provider, "deepseek-v4-pro", "chat").tools.strict
