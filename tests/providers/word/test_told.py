"""A word over the facts below it: said facts win, silence changes nothing, the user outranks both."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.providers import load_provider
from isthmus.providers.word.told import Told, Word, age_words


def test_the_server_stands_between_our_file_and_the_users(tmp_path: Path) -> None:
    (tmp_path / "vllm.toml").write_text("[limits]\noutput = 77\n")
    told = Told(at=1000.0, words={"q": Word(context=4096, output=1024, senses={"image": False})})
    entry = {"q": {"messages": {"turns": "free"}}}
    provider = load_provider("vllm", [tmp_path], models=entry, place="mine").hear(told)
    known = provider.capabilities("q")
    assert (known.limits.context, known.limits.output, known.messages.input) == (4096, 77, frozenset())
    origins = provider.origins("q", now=1000.0 + 12 * 60)
    assert origins["limits.context"] == "server, 12 min ago"
    assert origins["messages.input"] == "server, 12 min ago"
    assert origins["limits.output"] == f"{tmp_path / 'vllm.toml'} [limits]"
    assert origins["messages.turns"] == 'mine [models."q".messages]'
    assert origins["messages.system"] == "vllm.toml [messages]"
    assert provider.capabilities("other").limits.context is None


def test_a_user_file_that_extends_ours_outranks_the_server(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "vllm"\n[messages]\ninput = ["image"]\n')
    provider = load_provider("mine", [tmp_path]).hear(Told(words={"": Word(context=5, senses={"image": False})}))
    known = provider.capabilities("q")
    assert (known.limits.context, known.messages.input) == (5, {"image"})


def test_one_sense_says_nothing_of_the_others() -> None:
    below = load_provider("openai").capabilities("gpt-4o").messages.input
    assert "file" in below
    known = load_provider("openai").hear(Told(words={"": Word(senses={"image": False})})).capabilities("gpt-4o")
    assert known.messages.input == below - {"image"}


def test_a_model_without_tools_has_none_in_disguise() -> None:
    known = load_provider("vllm").hear(Told(words={"": Word(tools=False)})).capabilities("q")
    assert (known.tools.native, dict(known.tools.degraded)) == (frozenset(), {})


def test_a_parameter_that_is_not_taken_goes() -> None:
    told = Told(words={"": Word(untaken=frozenset({"seed", "never_heard_of"}), formats={"json_schema": False})})
    known = load_provider("vllm").hear(told).capabilities("q")
    assert "seed" not in known.parameters
    assert known.response_formats.supported == {"text", "json_object"}


def test_no_word_changes_nothing() -> None:
    provider = load_provider("vllm")
    assert provider.hear(Told(at=5.0, models=("q",))).capabilities("q") == provider.capabilities("q")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "just now"), (59, "just now"), (60, "1 min ago"), (7199, "1 h ago"), (86_400 * 3, "3 d ago")],
)
def test_ages_are_told_in_words(seconds: float, words: str) -> None:
    assert age_words(seconds) == words
