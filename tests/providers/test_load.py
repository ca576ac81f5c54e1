"""Loading: names, aliases, layers, user folders, and where each fact came from."""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.providers import load_provider, provider_names
from isthmus.providers.find import find_file
from isthmus.providers.load import _read_builtin
from isthmus.providers.snapshot import snapshot_head

BUILT_IN = [
    "anthropic",
    "azure",
    "bedrock",
    "cerebras",
    "codex",
    "cohere",
    "deepinfra",
    "deepseek",
    "demo",
    "fireworks",
    "gemini",
    "github-models",
    "groq",
    "huggingface",
    "kimi",
    "llama-cpp",
    "lmstudio",
    "minimax",
    "mistral",
    "novita",
    "nvidia",
    "ollama",
    "ollama-cloud",
    "openai",
    "openai-compatible",
    "openrouter",
    "perplexity",
    "qwen",
    "sglang",
    "siliconflow",
    "stepfun",
    "together",
    "vertex",
    "vllm",
    "volcengine",
    "xai",
    "xiaomi",
    "zhipu",
]


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_the_built_in_providers_are_there() -> None:
    assert provider_names() == BUILT_IN


@pytest.mark.parametrize(
    ("alias", "name"),
    [("llama.cpp", "llama-cpp"), ("moonshot", "kimi"), ("Z.AI", "zhipu"), ("dashscope", "qwen"), (" Grok ", "xai")],
)
def test_a_provider_answers_to_its_aliases(alias: str, name: str) -> None:
    assert load_provider(alias).name == name


def test_an_unknown_provider_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean `deepseek`") as caught:
        load_provider("deepsek")
    assert caught.value.code == "unknown_provider"


def test_a_model_entry_overrides_the_file_and_only_what_it_names() -> None:
    provider = load_provider("deepseek")
    pro, flash = provider.capabilities("deepseek-v4-pro"), provider.capabilities("deepseek-flash")
    assert pro.messages.input == frozenset()
    assert flash.messages.input == {"image"}
    assert flash.messages.replay == pro.messages.replay == "tool_turns"
    assert flash.parameters["top_p"].low == 0.95
    assert flash.parameters["top_p"].high == 1


def test_the_default_model_is_used_when_none_is_named() -> None:
    assert load_provider("zhipu").capabilities().model == "glm-5.2"


def test_an_unlisted_model_gets_the_facts_of_its_provider() -> None:
    facts = load_provider("deepseek").capabilities("deepseek-next")
    assert (facts.provider, facts.model) == ("deepseek", "deepseek-next")
    assert facts.reasoning.scale == ["low", "high", "max"]
    assert facts.cost.input is None


def test_model_names_are_matched_without_regard_to_case() -> None:
    provider = load_provider("minimax")
    assert provider.capabilities("minimax-m2.5").limits.context == 204_800


def test_the_most_specific_entry_wins_whatever_its_place(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine",
        """
        [models."big-one"]
        limits = { context = 3 }
        [models."big-*"]
        limits = { context = 2, output = 2 }
        [models."*"]
        limits = { context = 1, output = 1 }
        """,
    )
    provider = load_provider("mine", [tmp_path])
    assert provider.capabilities("big-one").limits.context == 3
    assert provider.capabilities("big-one").limits.output == 2
    assert provider.capabilities("big-two").limits.context == 2
    assert provider.capabilities("small").limits.context == 1


def test_an_exact_name_beats_a_longer_glob(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine",
        '[models."m1"]\nlimits = { context = 1 }\n[models."[m][1]"]\nlimits = { context = 2 }\n',
    )
    assert load_provider("mine", [tmp_path]).capabilities("m1").limits.context == 1


def test_of_two_equally_specific_entries_the_later_wins(tmp_path: Path) -> None:
    write(tmp_path, "mine", '[models."a*"]\nlimits = { context = 1 }\n[models."*a"]\nlimits = { context = 2 }\n')
    assert load_provider("mine", [tmp_path]).capabilities("a").limits.context == 2


def test_a_users_file_overrides_the_built_in_file_and_its_models(tmp_path: Path) -> None:
    write(tmp_path, "deepseek", "[limits]\noutput = 1000\n[parameters]\ntop_p = { low = 0.5 }\n")
    provider = load_provider("deepseek", [tmp_path])
    facts = provider.capabilities("deepseek-flash")
    assert facts.limits.output == 1000
    assert facts.limits.context == 1_000_000
    assert facts.parameters["top_p"].low == 0.5
    assert provider.title == "DeepSeek"
    assert provider.endpoint.base_url == "https://api.deepseek.com"


def test_a_users_model_entry_overrides_the_users_file(tmp_path: Path) -> None:
    write(tmp_path, "deepseek", '[limits]\noutput = 1000\n[models."deepseek-*"]\nlimits = { output = 2000 }\n')
    assert load_provider("deepseek", [tmp_path]).capabilities("deepseek-flash").limits.output == 2000


def test_a_later_folder_overrides_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "system", "kimi", "[limits]\noutput = 1\ncontext = 10\n")
    write(tmp_path / "home", "kimi", "[limits]\noutput = 2\n")
    facts = load_provider("kimi", [tmp_path / "system", tmp_path / "home"]).capabilities("new")
    assert (facts.limits.output, facts.limits.context) == (2, 10)


def test_a_provider_is_added_with_one_file_and_no_code(tmp_path: Path) -> None:
    write(
        tmp_path,
        "acme",
        """
        title = "Acme"
        aliases = ["acme-cloud"]
        default_model = "anvil-1"
        [endpoint]
        base_url = "https://llm.acme.example/v1"
        key_env = ["ACME_API_KEY"]
        [parameters]
        max_output_tokens = { to = "max_tokens" }
        [reasoning]
        effort = "boolean"
        on = { think = true }
        off = { think = false }
        [models."anvil-*"]
        example = "anvil-1"
        limits = { context = 32768 }
        """,
    )
    provider = load_provider("acme-cloud", [tmp_path])
    assert provider.name == "acme"
    assert provider.endpoint.url() == "https://llm.acme.example/v1/chat/completions"
    facts = provider.capabilities()
    assert facts.limits.context == 32768
    assert facts.reasoning.on == {"think": True}
    assert facts.tools.degraded["custom"] == "function"
    assert "acme" in provider_names([tmp_path])


def test_a_users_provider_may_extend_another(tmp_path: Path) -> None:
    write(tmp_path, "relay", 'extends = "deepseek"\n[endpoint]\nbase_url = "https://relay.example/v1"\n')
    provider = load_provider("relay", [tmp_path])
    assert (provider.name, provider.title, provider.aliases) == ("relay", "relay", ())
    assert provider.endpoint.base_url == "https://relay.example/v1"
    assert provider.endpoint.key_env == ["DEEPSEEK_API_KEY"]
    facts = provider.capabilities()
    assert (facts.provider, facts.model) == ("relay", "deepseek-v4-pro")
    assert facts.reply.leaked_tools == "dsml"
    assert provider.files[:2] == (snapshot_head().label, "deepseek.toml")


def test_files_that_extend_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a", 'extends = "b"\n')
    write(tmp_path, "b", 'extends = "a"\n')
    with pytest.raises(ConfigError, match="a → b → a"):
        load_provider("a", [tmp_path])


def test_extending_an_unknown_provider_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a", 'extends = "kimy"\n')
    with pytest.raises(ConfigError, match="did you mean `kimi`"):
        load_provider("a", [tmp_path])


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("[parameters]\ntemperature = false\n", lambda facts: "temperature" not in facts.parameters),
        ("[parameters.top_p]\nhigh = false\n", lambda facts: facts.parameters["top_p"].high is None),
        ("[parameters.top_p]\nwhile_thinking = false\n", lambda facts: not facts.parameters["top_p"].while_thinking),
        ("[parameters.top_p]\nin_tool_streams = false\n", lambda facts: not facts.parameters["top_p"].in_tool_streams),
        ("[tools.degraded]\nshell = false\n", lambda facts: "shell" not in facts.tools.degraded),
        ("[tools.degraded]\nmcp = 'function'\n", lambda facts: len(facts.tools.degraded) == 6),
        ("[reasoning]\noff = {}\n", lambda facts: facts.reasoning.off == {} and facts.reasoning.on != {}),
        ("[reasoning]\ndefault_on = false\n", lambda facts: facts.reasoning.default_on is False),
        ("allow = false\n", lambda facts: facts.allow is None),
        ("[tool_choice]\nwhile_thinking = false\n", lambda facts: facts.tool_choice.while_thinking is None),
        ("[limits]\noutput = false\n", lambda facts: facts.limits.output is None),
        ("reply = false\n", lambda facts: facts.reply.leaked_tools == ""),
        ("[extra_body]\nregion = 'eu'\n", lambda facts: "region" in (facts.allow or ())),
    ],
)
def test_what_is_inherited_can_be_changed_or_taken_back(tmp_path: Path, text: str, check: object) -> None:
    write(tmp_path, "deepseek", text)
    facts = load_provider("deepseek", [tmp_path]).capabilities("deepseek-next")
    assert callable(check)
    assert check(facts)


def test_every_fact_knows_its_file_and_section(tmp_path: Path) -> None:
    path = write(tmp_path, "deepseek", '[models."deepseek-*".limits]\noutput = 5\n')
    origins = load_provider("deepseek", [tmp_path]).origins("deepseek-flash")
    assert origins["reasoning.scale"] == "deepseek.toml [reasoning]"
    assert origins["parameters.top_p.low"] == 'deepseek.toml [models."deepseek-flash".parameters.top_p]'
    assert origins["parameters.stop"] == "deepseek.toml [parameters]"
    assert origins["allow"] == "deepseek.toml"
    assert origins["limits.output"] == f'{path} [models."deepseek-*".limits]'
    assert origins["tools.degraded.shell"] == "default"
    assert origins["messages.developer"] == "default"


def test_a_fact_that_was_taken_back_has_its_default_again(tmp_path: Path) -> None:
    write(tmp_path, "deepseek", "[parameters]\ntemperature = false\n[tool_choice]\nwhile_thinking = false\n")
    origins = load_provider("deepseek", [tmp_path]).origins("deepseek-flash")
    assert not [path for path in origins if path.startswith("parameters.temperature")]
    assert origins["tool_choice.while_thinking"] == "default"


def test_origins_cover_every_fact_once() -> None:
    provider = load_provider("zhipu")
    origins = provider.origins("glm-5.3")
    assert origins["reasoning.off"] == 'zhipu.toml [models."glm-5.3*".reasoning]'
    for domain in ("tools", "tool_choice", "response_formats", "reasoning", "messages", "reply", "limits", "cost"):
        assert any(path.startswith(f"{domain}.") for path in origins), domain


def test_alternative_endpoints_keep_what_they_do_not_change() -> None:
    endpoint = load_provider("zhipu").endpoint
    assert endpoint.alternative("zai-coding").base_url == "https://api.z.ai/api/coding/paas/v4"
    assert endpoint.alternative("zai").key_env == ["ZAI_API_KEY"]
    assert endpoint.alternative("bigmodel").key_env == endpoint.key_env


def test_merged_facts_are_remembered_but_not_without_end() -> None:
    provider = load_provider("kimi")
    assert provider.capabilities("kimi-k3") is provider.capabilities("kimi-k3")
    for number in range(600):
        provider.capabilities(f"made-up-{number}")
    assert len(provider._known) <= 256


def test_loading_one_provider_costs_little_more_than_reading_its_file() -> None:
    """Some 1.5 times as much, 1 ms. Both are measured in turn, so that a busy machine slows both down."""
    load_provider("demo").capabilities()  # imports and directory listing are paid once

    def load(name: str) -> float:
        _read_builtin.cache_clear()
        start = time.thread_time()
        load_provider(name).capabilities()
        return time.thread_time() - start

    def read(name: str) -> float:
        its_files = [
            file for file in load_provider(name).files if file.endswith(".toml")
        ]  # one of ours may stand on another of ours
        start = time.thread_time()
        for file in its_files:
            tomllib.loads((files("isthmus.providers") / "data" / file).read_text())
        return time.thread_time() - start

    for name in provider_names():
        loading, reading = zip(*((load(name), read(name)) for _ in range(9)), strict=True)
        assert min(loading) < 4 * min(reading), name


def test_importing_isthmus_loads_no_provider() -> None:
    code = "import sys, isthmus; print([m for m in sys.modules if m.startswith('isthmus.providers')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_alias_is_found_even_if_another_file_is_broken(tmp_path: Path) -> None:
    write(tmp_path, "broken", "aliases = [")
    write(tmp_path, "good", 'aliases = ["nice"]\n')
    assert find_file("nice", [tmp_path]) == "good"


def test_a_folder_that_does_not_exist_is_an_empty_one(tmp_path: Path) -> None:
    assert load_provider("demo", [tmp_path / "nowhere"]).name == "demo"
