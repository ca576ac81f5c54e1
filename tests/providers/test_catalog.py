"""The listing of known models."""

from __future__ import annotations

from pathlib import Path

from isthmus.providers import load_provider
from isthmus.providers.catalog import describe_model, known_models


def test_every_named_model_is_listed_once_with_its_facts() -> None:
    models = known_models()
    names = [known.name for known in models]
    assert len(names) == len(set(names))
    flash = next(known for known in models if known.name == "deepseek/deepseek-flash")
    assert flash.title == "DeepSeek V4.1 Flash"
    assert (flash.context, flash.output, flash.input) == (1_000_000, 393_216, ("image",))
    assert flash.efforts == ("none", "low", "high", "max")
    assert flash.cost.output == 1.20


def test_globs_are_not_models() -> None:
    assert not [known.name for known in known_models() if "*" in known.model or "[" in known.model]


def test_a_default_model_comes_first_and_is_not_repeated() -> None:
    names = [known.model for known in known_models([load_provider("zhipu")])]
    assert names[0] == "glm-5.2"
    assert len(names) == len(set(names))


def test_a_model_that_nobody_listed_can_be_described() -> None:
    known = describe_model(load_provider("kimi"), "kimi-next")
    assert (known.title, known.context, known.efforts) == ("kimi-next", None, ("none", "high"))


def test_a_model_that_cannot_stop_thinking_has_no_none() -> None:
    assert describe_model(load_provider("kimi"), "kimi-k3").efforts == ("low", "high", "max")
    assert describe_model(load_provider("minimax"), "MiniMax-M2.5").efforts == ("high",)
    always = describe_model(load_provider("mistral"), "magistral-medium-latest")
    assert (always.efforts, always.thinks) == ((), True)


def test_a_users_models_are_listed_too(tmp_path: Path) -> None:
    (tmp_path / "acme.toml").write_text('[models."anvil"]\ntitle = "Anvil"\n', encoding="utf-8")
    assert "acme/anvil" in [known.name for known in known_models(user_dirs=[tmp_path])]
