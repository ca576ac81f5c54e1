"""Which model answers: names become targets with the way to them, fallbacks in their order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.house import Upstream
from isthmus.errors import RequestRefused
from isthmus.gateway.directory import Candidate, Directory, Served
from isthmus.providers import load_provider
from isthmus.providers.catalog import KnownModel, known_models
from isthmus.providers.word.told import Told, Word

PLAIN = load_provider("openai-compatible")
DEEPSEEK = load_provider("deepseek")
OPENAI = load_provider("openai")


def served(name: str, **facts: object) -> Served:
    return Served(name, DEEPSEEK if name == "two" else PLAIN, Upstream(), **facts)  # type: ignore[arg-type]


ALL = {name: served(name) for name in ("one", "two", "three")}
DIRECTORY = Directory(
    ALL,
    default="two/deepseek-v4-pro",
    aliases={"fast": "one/small", "*": "three/any"},
    fallbacks={"fast": ["two/deepseek-v4-pro", "one/large"], "two/deepseek-v4-pro": ["three/x"], "*": ["one/last"]},
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (None, ("two", "deepseek-v4-pro", None)),
        ("one/a/b", ("one", "a/b", None)),
        ("fast", ("one", "small", "fast")),
        ("whatever", ("three", "any", "*")),
    ],
)
def test_a_name_leads_to_a_provider_and_its_model(name: str | None, found: tuple[str, str, str | None]) -> None:
    candidate = DIRECTORY.find(name)
    assert (candidate.target.provider, candidate.target.model, candidate.target.alias) == found
    assert candidate.served is ALL[found[0]]
    assert candidate.target.capabilities == ALL[found[0]].capabilities(found[1])


@pytest.mark.parametrize(
    ("name", "code"), [("nobody/x", "unknown_provider"), ("one/", "invalid_model"), (" ", "missing_model")]
)
def test_a_name_that_leads_nowhere_is_refused(name: str, code: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        DIRECTORY.find(name)
    assert (refused.value.code, refused.value.param) == (code, "model")


def test_a_name_is_looked_up_once_until_its_server_says_something_else_or_another_takes_its_place() -> None:
    each = served("one")
    providers = {"one": each}
    directory = Directory(providers, default="one/m")
    before = directory.find("one/m")
    assert directory.find("one/m") is before

    each.hear(Told(words={"m": Word(context=777)}))
    heard = directory.find("one/m")
    assert heard.target.capabilities.limits.context == 777 != before.target.capabilities.limits.context

    providers["one"] = other = served("one")
    assert directory.find("one/m").served is other
    del providers["one"]
    with pytest.raises(RequestRefused):
        directory.find("one/m")


def test_names_that_clients_make_up_do_not_pile_up() -> None:
    directory = Directory({"one": served("one")}, default="one/m")
    for number in range(1000):
        assert directory.find(f"one/{number}").target.model == str(number)
    assert len(directory._found) <= 256


def names(candidates: Sequence[Candidate]) -> list[str]:
    return [f"{each.target.provider}/{each.target.model}" for each in candidates]


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("fast", ["two/deepseek-v4-pro", "one/large"]),
        ("two/deepseek-v4-pro", ["three/x"]),
        ("one/small", ["one/last"]),
        ("one/last", []),
    ],
)
def test_those_who_take_its_place_come_in_their_order_and_never_itself(name: str, after: list[str]) -> None:
    assert names(DIRECTORY.after(DIRECTORY.find(name))) == after


def test_a_fallback_has_the_facts_of_its_own_model() -> None:
    first = DIRECTORY.find("fast")
    other, *_ = DIRECTORY.after(first)
    assert other.served is ALL["two"]
    assert other.target.capabilities == DEEPSEEK.capabilities("deepseek-v4-pro") != first.target.capabilities


def test_without_fallbacks_there_are_none() -> None:
    directory = Directory(ALL, default="one/m")
    assert directory.after(directory.find(None)) == []


# ── one provider ───────────────────────────────────────────────────────────────────────────────────────


def test_a_provider_that_is_spoken_to_in_responses_can_what_its_endpoint_can() -> None:
    chat = Served("openai", load_provider("openai", dialect="chat"), Upstream())
    native = Served("openai", OPENAI, Upstream())
    assert OPENAI.responses is not None
    assert chat.capabilities("gpt-5").dialect == "chat"
    assert native.capabilities("gpt-5").dialect == "responses"


def test_one_that_has_no_such_endpoint_is_spoken_to_as_ever() -> None:
    assert PLAIN.responses is None
    asked = load_provider("openai-compatible", dialect="responses")
    assert Served("one", asked, Upstream()).capabilities("m") == PLAIN.capabilities("m")


async def test_models_are_those_that_the_provider_tells_or_else_those_of_its_file() -> None:
    told = known_models([DEEPSEEK])[:1]

    async def list_models() -> Sequence[KnownModel]:
        return told

    async def list_nothing() -> Sequence[KnownModel]:
        return ()

    assert await served("two", list_models=list_models).models() == told
    for silent in (served("two"), served("two", list_models=list_nothing)):
        assert list(await silent.models()) == list(known_models([DEEPSEEK])) != []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("claude-two/deepseek-v4-pro", "two/deepseek-v4-pro"),
        ("claude-fast", "fast"),
        ("claude-opus-5", "claude-opus-5"),
        ("claude-nobody/x", "claude-nobody/x"),
        ("two/deepseek-v4-pro", "two/deepseek-v4-pro"),
        ("claude-", "claude-"),
        ("", ""),
    ],
)
def test_a_prefix_is_cut_only_before_a_name_of_ours(name: str, found: str) -> None:
    assert DIRECTORY.unprefixed(name, "claude-") == found


def test_an_alias_that_begins_so_is_left_alone() -> None:
    both = Directory(ALL, aliases={"claude-fast": "one/a", "fast": "one/b"})
    assert both.unprefixed("claude-fast", "claude-") == "claude-fast"
