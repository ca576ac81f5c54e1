"""Which provider and model a name means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.resolve import ModelRef, nearest_name, resolve_fallbacks, resolve_model, split_reference
from isthmus.errors import RequestRefused

PROVIDERS = ("deepseek", "zhipu", "openrouter")
ALIASES = {"gpt-5.5": "deepseek/deepseek-v4-pro", "fast": "openrouter/meta-llama/llama-3"}
DEFAULT = "zhipu/glm-5"


@pytest.mark.parametrize(
    ("name", "aliases", "default", "expected"),
    [
        pytest.param("deepseek/v4", {}, DEFAULT, ModelRef("deepseek", "v4"), id="both sides named"),
        pytest.param(
            "openrouter/meta-llama/llama-3",
            {},
            DEFAULT,
            ModelRef("openrouter", "meta-llama/llama-3"),
            id="only the first slash splits",
        ),
        pytest.param("  deepseek/v4\n", {}, DEFAULT, ModelRef("deepseek", "v4"), id="trimmed"),
        pytest.param("gpt-5.5", ALIASES, DEFAULT, ModelRef("deepseek", "deepseek-v4-pro", "gpt-5.5"), id="alias"),
        pytest.param(
            "fast", ALIASES, DEFAULT, ModelRef("openrouter", "meta-llama/llama-3", "fast"), id="alias to slashes"
        ),
        pytest.param("x", {"*": "zhipu/glm-5"}, None, ModelRef("zhipu", "glm-5", "*"), id="star catches the rest"),
        pytest.param(
            "fast",
            {"*": "zhipu/glm-5", "fast": "deepseek/flash"},
            None,
            ModelRef("deepseek", "flash", "fast"),
            id="exact alias before star",
        ),
        pytest.param("glm-4", ALIASES, DEFAULT, ModelRef("zhipu", "glm-4"), id="bare name at the default provider"),
        pytest.param("glm-4", {}, "fast", ModelRef("openrouter", "glm-4"), id="default provider through an alias"),
        pytest.param("v4", {}, None, ModelRef("deepseek", "v4"), id="no default: the first provider"),
        pytest.param(None, ALIASES, DEFAULT, ModelRef("zhipu", "glm-5"), id="nothing: the default"),
        pytest.param(
            None, ALIASES, "gpt-5.5", ModelRef("deepseek", "deepseek-v4-pro", "gpt-5.5"), id="the default is an alias"
        ),
    ],
)
def test_a_name_resolves(name: str | None, aliases: dict[str, str], default: str | None, expected: ModelRef) -> None:
    if default == "fast":
        aliases = ALIASES
    assert resolve_model(name, aliases, default, PROVIDERS) == expected


@pytest.mark.parametrize(
    ("name", "aliases", "default", "providers", "code", "says"),
    [
        pytest.param(None, {}, None, PROVIDERS, "missing_model", "`models.default`", id="no model, no default"),
        pytest.param(None, {"*": "zhipu/x"}, " ", PROVIDERS, "missing_model", "`model`", id="star is not a default"),
        pytest.param("", {}, DEFAULT, PROVIDERS, "missing_model", "is empty", id="no name"),
        pytest.param("  ", {}, DEFAULT, PROVIDERS, "missing_model", "is empty", id="a blank name"),
        pytest.param("deepseek/", {}, DEFAULT, PROVIDERS, "invalid_model", "provider/model", id="empty model"),
        pytest.param("/v4", {}, DEFAULT, PROVIDERS, "invalid_model", "provider/model", id="empty provider"),
        pytest.param("/", {}, DEFAULT, PROVIDERS, "invalid_model", "provider/model", id="both empty"),
        pytest.param(
            "deepsek/v4", {}, DEFAULT, PROVIDERS, "unknown_provider", "did you mean `deepseek/v4`", id="near miss"
        ),
        pytest.param(
            "Zhipu/glm", {}, DEFAULT, PROVIDERS, "unknown_provider", "did you mean `zhipu/glm`", id="wrong case"
        ),
        pytest.param(
            "qqqq/v4", {}, DEFAULT, PROVIDERS, "unknown_provider", "`deepseek`, `zhipu`, `openrouter`", id="all listed"
        ),
        pytest.param(
            "fast", {"fast": "gone/x"}, DEFAULT, PROVIDERS, "unknown_provider", "the alias `fast`", id="bad alias"
        ),
        pytest.param(None, {}, "bare", PROVIDERS, "invalid_model", "`bare`", id="default is neither"),
        pytest.param("v4", {}, None, (), "unknown_provider", "no provider", id="no providers at all"),
    ],
)
def test_a_name_that_cannot_be_served_is_refused(
    name: str | None, aliases: dict[str, str], default: str | None, providers: tuple[str, ...], code: str, says: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        resolve_model(name, aliases, default, providers)
    assert (caught.value.code, caught.value.param) == (code, "model")
    assert says in caught.value.message


_WORD = st.text("abcdefgh-.0123456789", min_size=1, max_size=8)
_MODEL = st.lists(_WORD, min_size=1, max_size=3).map("/".join)
_PROVIDERS = st.lists(_WORD, min_size=1, max_size=4, unique=True)
_SPACE = st.text(" \t\n", max_size=2)


@settings(max_examples=300, deadline=None)
@given(_PROVIDERS, _MODEL, _SPACE, _SPACE, st.dictionaries(_WORD, st.just("x/y")))
def test_a_qualified_name_means_itself_whatever_the_aliases(
    providers: list[str], model: str, before: str, after: str, aliases: dict[str, str]
) -> None:
    ref = resolve_model(f"{before}{providers[-1]}/{model}{after}", aliases, None, providers)
    assert ref == ModelRef(providers[-1], model)
    assert resolve_model(ref.name, aliases, None, providers) == ref
    assert split_reference(ref.name) == (ref.provider, ref.model)


@settings(max_examples=300, deadline=None)
@given(_PROVIDERS, st.data())
def test_bare_names_follow_alias_then_star_then_default_provider(providers: list[str], data: st.DataObject) -> None:
    target = st.tuples(st.sampled_from(providers), _MODEL).map("/".join)
    aliases = data.draw(st.dictionaries(_WORD | st.just("*"), target, max_size=4))
    default = data.draw(st.none() | target)
    asked = data.draw(_WORD | st.sampled_from(sorted(aliases) or ["x"]))
    ref = resolve_model(asked, aliases, default, providers)
    if asked in aliases:
        assert (ref.name, ref.alias) == (aliases[asked], asked)
    elif "*" in aliases:
        assert (ref.name, ref.alias) == (aliases["*"], "*")
    else:
        expected = default.split("/", 1)[0] if default else providers[0]
        assert ref == ModelRef(expected, asked)


@settings(max_examples=500, deadline=None)
@given(st.none() | st.text(max_size=20), st.dictionaries(st.text(max_size=5), st.text(max_size=10)), st.none() | _MODEL)
def test_any_text_gives_a_known_provider_and_a_model_or_a_refusal_of_model(
    name: str | None, aliases: dict[str, str], default: str | None
) -> None:
    refused_param: str | None = None
    try:
        ref = resolve_model(name, aliases, default, PROVIDERS)
    except RequestRefused as refused:
        refused_param = refused.param
    assert refused_param == "model" or (ref.provider in PROVIDERS and ref.model)


@pytest.mark.parametrize(
    ("ref", "fallbacks", "expected"),
    [
        pytest.param(ModelRef("zhipu", "g", "fast"), {"fast": ["d/a"], "zhipu/g": ["d/b"]}, ["a"], id="alias"),
        pytest.param(ModelRef("zhipu", "g", "fast"), {"zhipu/g": ["d/b"], "*": ["d/c"]}, ["b"], id="name"),
        pytest.param(ModelRef("zhipu", "g"), {"*": ["d/c"]}, ["c"], id="star"),
        pytest.param(ModelRef("zhipu", "g"), {"other": ["d/c"]}, [], id="none"),
        pytest.param(ModelRef("d", "a"), {"*": ["d/a", "d/b", "d/b"]}, ["b"], id="no repeats"),
    ],
)
def test_fallbacks_are_found_in_order(ref: ModelRef, fallbacks: dict[str, list[str]], expected: list[str]) -> None:
    found = resolve_fallbacks(ref, fallbacks, ("d", "zhipu"))
    assert [target.model for target in found] == expected
    assert all(target.alias == ref.alias for target in found)


def test_a_far_name_suggests_nothing() -> None:
    assert nearest_name("zzz", PROVIDERS) is None
    assert nearest_name("open-router", PROVIDERS) == "openrouter"


def test_a_huge_name_is_not_echoed_whole() -> None:
    with pytest.raises(RequestRefused) as caught:
        resolve_model("x" * 1_000_000 + "/y", {}, None, PROVIDERS)
    assert len(caught.value.message) < 400


def test_a_provider_that_is_known_and_not_served_says_what_it_lacks() -> None:
    def lacks(name: str) -> str:
        return "set `NEBIUS_API_KEY`" if name == "nebius" else ""

    with pytest.raises(RequestRefused, match="`nebius`, which is not configured: set `NEBIUS_API_KEY`") as refused:
        resolve_model("nebius/m", {}, DEFAULT, PROVIDERS, lacks)
    assert (refused.value.code, refused.value.param) == ("unknown_provider", "model")
    with pytest.raises(RequestRefused, match="known providers: `deepseek`"):
        resolve_model("nobody/m", {}, DEFAULT, PROVIDERS, lacks)


def test_a_model_name_of_any_length_is_not_repeated_in_every_chunk() -> None:
    assert resolve_model("deepseek/" + "x" * 900, {}, None, PROVIDERS).provider == "deepseek"
    with pytest.raises(RequestRefused, match="longer than 1,000 characters") as refused:
        resolve_model("deepseek/" + "x" * 1_000, {}, None, PROVIDERS)
    assert (refused.value.param, len(refused.value.message) < 200) == ("model", True)
