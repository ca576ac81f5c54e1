"""The listing of known models."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.providers import load_provider
from isthmus.providers.catalog import (
    describe_model,
    known_models,
    known_names,
    lists,
    offer_named,
    offered_embeddings,
    offered_models,
)
from isthmus.providers.word.told import Told


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


# ── what servers list ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("listed", "model", "found"),
    [
        ("claude-x", "claude-x", True),
        ("Claude-X", "claude-x", True),
        ("claude-x-20260101", "claude-x", True),
        ("claude-x-2026-01-01", "claude-x", True),
        ("qwen3:latest", "qwen3", True),
        ("claude-x-mini", "claude-x", False),
        ("claude-x-2026", "claude-x", False),
        ("other", "claude-x", False),
    ],
)
def test_a_list_has_a_model_under_its_name_or_pinned_to_a_day(listed: str, model: str, found: bool) -> None:
    assert lists(Told(models=(listed,)), model) is found


def test_a_vendors_list_keeps_the_order_of_the_file_and_adds_a_few() -> None:
    provider = load_provider("deepseek")
    named = [known.model for known in known_models([provider])]
    others = tuple(f"new-{n}" for n in range(50))
    heard = provider.hear(Told(at=9.0, models=(*others, "whisper-1", *named[:2])))
    offered = offered_models(heard, listed=5)
    assert [each.model.model for each in offered] == [*named[:2], "new-0", "new-1", "new-2"]
    assert {(each.source, each.heard_at) for each in offered} == {("server", 9.0)}
    assert offered_models(heard, listed=0)[0].model.model == named[0]


def test_a_server_of_the_users_own_is_believed_whatever_it_lists() -> None:
    heard = load_provider("ollama").hear(Told(at=9.0, own=True, models=("whisper-1", "b")))
    assert [each.model.model for each in offered_models(heard)] == ["whisper-1", "b"]


def test_who_was_not_heard_is_told_by_its_file_or_the_snapshot() -> None:
    assert {each.source for each in offered_models(load_provider("deepseek"))} <= {"file", "snapshot"}
    assert {each.source for each in offered_models(load_provider("nebius"))} == {"snapshot"}


def test_one_model_is_offered_unless_its_server_lists_others_only() -> None:
    provider = load_provider("openai")
    unheard = offer_named(provider, "gpt-next")
    assert unheard is not None
    assert unheard.source == "name"
    heard = provider.hear(Told(at=1.0, models=("gpt-5",)))
    assert offer_named(heard, "gpt-next") is None
    assert offer_named(heard, "text-embedding-3-small") is not None


def test_models_that_make_vectors_stand_apart() -> None:
    found = offered_embeddings(load_provider("openai"))
    assert [each.model.model for each in found][:1] == ["text-embedding-3-small"]
    assert all(each.embeds for each in found)
    assert "text-embedding-3-small" not in [known.model for known in known_models([load_provider("openai")])]


def test_known_names_are_those_of_files_snapshot_and_server_and_nobody_elses() -> None:
    provider = load_provider("deepseek", models={"My-Own": {}, "glob-*": {}})
    names = known_names(provider)
    assert {provider.default_model.lower(), "my-own"} <= names
    assert "glob-*" not in names
    assert "whatever a client says" not in names
    told = known_names(provider.hear(Told(at=1.0, models=("Told-By-It", "small:latest"))))
    assert {"told-by-it", "small:latest", "small"} <= told
    assert "" not in known_names(load_provider("openai-compatible"))
