"""Every shape in which a server describes its models, and everything that is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.providers import load_provider, provider_names
from isthmus.providers.word.read import Heard, read_answer
from isthmus.providers.word.told import NOTHING, Told, Word, decode_told, encode_told

SHAPES: dict[str, tuple[Any, tuple[str, ...], dict[str, Word]]] = {
    "OpenAI": ({"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b"}]}, ("a", "b"), {}),
    "vLLM": (
        {"data": [{"id": "q", "max_model_len": 32768, "root": "q", "permission": []}]},
        ("q",),
        {"q": Word(context=32768)},
    ),
    "llama.cpp": (
        {
            "models": [{"name": "m", "capabilities": ["completion"]}],
            "data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072, "n_ctx": 8192}}],
        },
        ("m",),
        {"m": Word(context=8192, senses={"image": False, "audio": False})},
    ),
    "llama.cpp of October 2026, as it spoke": (
        {
            "models": [{"name": "smollm2", "model": "smollm2", "type": "model", "capabilities": ["completion"]}],
            "object": "list",
            "data": [
                {
                    "id": "smollm2",
                    "aliases": ["smollm2"],
                    "tags": [],
                    "object": "model",
                    "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
                    "created": 1794855781,
                    "owned_by": "llamacpp",
                    "meta": {"vocab_type": 2, "n_ctx": 8192, "n_ctx_train": 8192, "size": 96576768, "ftype": "Q4_1"},
                }
            ],
        },
        ("smollm2",),
        {"smollm2": Word(context=8192, senses={"image": False, "audio": False, "file": False, "video": False})},
    ),
    "llama.cpp that sees, or hears": (
        {"models": [{"name": "m", "capabilities": ["completion", "multimodal"]}], "data": [{"id": "m"}]},
        ("m",),
        {},
    ),
    "llama.cpp, old: what it was trained with is not what it serves": (
        {"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]},
        ("m",),
        {},
    ),
    "LM Studio": (
        {
            "data": [
                {"id": "v", "type": "vlm", "state": "loaded", "max_context_length": 8, "loaded_context_length": 4},
                {"id": "t", "type": "llm", "state": "not-loaded", "max_context_length": 8},
                {"id": "e", "type": "embeddings", "state": "loaded", "max_context_length": 8},
            ]
        },
        ("v", "t"),
        {"v": Word(context=4, senses={"image": True}), "t": Word(senses={"image": False})},
    ),
    "Ollama's tags": ({"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 1}]}, ("qwen3:8b",), {}),
    "OpenRouter": (
        {
            "data": [
                {
                    "id": "z/glm",
                    "context_length": 200_000,
                    "architecture": {"input_modalities": ["text", "image"], "modality": "text+image->text"},
                    "pricing": {"prompt": "0.0000006", "completion": "0.0000022", "input_cache_read": "0.00000011"},
                    "top_provider": {"context_length": 200_000, "max_completion_tokens": 65_536},
                    "supported_parameters": ["max_tokens", "temperature", "top_p", "tools", "response_format"],
                }
            ]
        },
        ("z/glm",),
        {
            "z/glm": Word(
                context=200_000,
                output=65_536,
                senses={"image": True, "audio": False, "file": False, "video": False},
                tools=True,
                choice=False,
                formats={"json_object": True, "json_schema": False},
                untaken=frozenset(
                    ["presence_penalty", "frequency_penalty", "logit_bias", "top_logprobs", "seed", "stop"]
                ),
                price=0.6,
                cached_price=0.11,
                output_price=2.2,
            )
        },
    ),
    "OpenRouter's routers have no price": (
        {"data": [{"id": "auto", "pricing": {"prompt": "-1", "completion": "-1"}}]},
        ("auto",),
        {},
    ),
    "Together": (
        [
            {"id": "m", "type": "chat", "context_length": 4096, "pricing": {"input": 0.2, "output": 0.6, "hourly": 0}},
            {"id": "i", "type": "image"},
        ],
        ("m",),
        {"m": Word(context=4096, price=0.2, output_price=0.6)},
    ),
    "Groq": (
        {"data": [{"id": "l", "active": True, "context_window": 131072, "max_completion_tokens": 32768}]},
        ("l",),
        {"l": Word(context=131072, output=32768)},
    ),
    "Mistral": (
        {
            "data": [
                {
                    "id": "s-2603",
                    "aliases": ["s-latest"],
                    "max_context_length": 131072,
                    "capabilities": {"completion_chat": True, "function_calling": False, "vision": True},
                },
                {"id": "embed", "capabilities": {"completion_chat": False}},
            ]
        },
        ("s-2603",),
        {
            name: Word(context=131072, senses={"image": True}, tools=False)
            for name in ("s-2603", "s-latest")
        },
    ),
    "Fireworks": (
        {"data": [{"id": "f", "context_length": 9, "supports_image_input": False, "supports_tools": True}]},
        ("f",),
        {"f": Word(context=9, senses={"image": False}, tools=True)},
    ),
    "Gemini's own": (
        {"models": [{"name": "models/g", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}]},
        ("g",),
        {"g": Word(context=1048576, output=65536)},
    ),
    "Anthropic": (
        {"data": [{"type": "model", "id": "c", "max_input_tokens": 200000, "max_tokens": 64000}]},
        ("c",),
        {"c": Word(context=200000, output=64000)},
    ),
    "/props": (
        {
            "default_generation_settings": {"n_ctx": 8192},
            "modalities": {"vision": False, "audio": True},
            "chat_template": "{{ raise_exception('System message must be at the beginning.') }}",
        },
        (),
        {"": Word(context=8192, senses={"image": False, "audio": True}, system="leading")},
    ),
    "/props of October 2026, as it spoke": (
        {
            "default_generation_settings": {"n_ctx": 8192},
            "total_slots": 1,
            "model_alias": "smollm2",
            "modalities": {"vision": False, "video": False, "audio": False},
            "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
            "chat_template_caps": {"supports_system_role": True, "supports_tools": True, "supports_tool_calls": True},
        },
        (),
        {"": Word(context=8192, senses={"image": False, "audio": False, "video": False})},
    ),
    "/props of a template without tools": (
        {"default_generation_settings": {}, "chat_template_caps": {"supports_tools": False}},
        (),
        {"": Word(tools=False)},
    ),
    "/props of a router": ({"role": "router", "default_generation_settings": {"n_ctx": 1}}, (), {}),
    "SGLang's info": (
        {"model_path": "m", "is_generation": True, "has_image_understanding": False, "has_audio_understanding": False},
        (),
        {"": Word(senses={"image": False, "audio": False})},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_says_what_it_says(shape: str) -> None:
    body, models, words = SHAPES[shape]
    heard = read_answer(body)
    assert heard is not None
    assert (heard.models, dict(heard.words or {})) == (models, words)


SHOWN = {
    "capabilities": ["completion", "tools", "thinking"],
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    "parameters": 'stop "<|im_end|>"\nnum_ctx 16384\ntemperature 0.6',
}


def test_ollama_tells_of_one_model_at_a_time() -> None:
    heard = read_answer(SHOWN, "qwen3:8b")
    assert heard == Heard((), {"qwen3:8b": Word(context=16384, senses={"image": False}, tools=True)})
    made = read_answer({**SHOWN, "parameters": "", "capabilities": ["completion", "vision"]}, "m")
    assert made == Heard((), {"m": Word(context=40960, senses={"image": True}, tools=False)})


def test_later_answers_are_laid_over_earlier_ones() -> None:
    listed = read_answer(SHAPES["llama.cpp"][0])
    props = read_answer({"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": True}})
    assert listed is not None
    assert props is not None
    told = Told(models=listed.models, words=listed.and_also(props).words or {})
    assert told.word("m") == Word(context=8192, senses={"image": False, "audio": False})
    assert told.word("another name for it").context == 4096


def test_a_name_that_the_server_calls_latest_is_found() -> None:
    assert Told(words={"llama:latest": Word(context=5)}).word("llama").context == 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(
    [
        *("id", "name", "meta", "n_ctx", "max_model_len", "context_length", "architecture", "input_modalities"),
        *("capabilities", "pricing", "prompt", "completion", "input", "supported_parameters", "type", "state"),
        *("aliases", "data", "models", "default_generation_settings", "modalities", "vision", "chat_template"),
        *("model_info", "parameters", "has_image_understanding", "top_provider", "max_completion_tokens"),
        *("supports_tools", "chat_template_caps", "role", "general.architecture"),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(
    ["image", "text", "1e400", "-1", "0.5", "tools", "vlm", "x" * 300, "nan", "models/", "num_ctx 99999999999999"]
)  # fmt: skip
LIKELY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=40,
)


@given(body=JSON | LIKELY, model=st.sampled_from(["", "m"]))
def test_any_json_is_read_and_makes_sound_facts(body: Any, model: str) -> None:
    heard = read_answer(body, model)
    if heard is None:
        return
    told = Told(at=1.0, models=heard.models, words=heard.words or {})
    assert decode_told(encode_told(told)) == told, "what is kept is what was heard, and all of it is of its type"
    for provider in PROVIDERS:
        for name in ["m", *told.words][:4]:
            provider.hear(told).capabilities(name)


PROVIDERS = [load_provider(name) for name in provider_names() if name in ("openrouter", "llama-cpp", "openai")]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_providers_facts_stay_sound_under_every_word(shape: str) -> None:
    body, models, _ = SHAPES[shape]
    heard = read_answer(body)
    assert heard is not None
    word = next(iter((heard.words or {}).values()), NOTHING)
    for name in provider_names():
        provider = load_provider(name).hear(Told(models=models, words={"": word}))
        known = provider.capabilities("some-model")
        if word.context is not None:
            assert known.limits.context == word.context
        assert all(known.messages.input.isdisjoint({sense}) for sense, has in word.senses.items() if not has)
        assert bool(known.tools.native or known.tools.degraded) or word.tools is False or not _has_tools(name)


def _has_tools(name: str) -> bool:
    known = load_provider(name).capabilities("some-model")
    return bool(known.tools.native or known.tools.degraded)


def test_much_is_cut() -> None:
    many = {"data": [{"id": f"m{number}", "context_length": 1} for number in range(5000)]}
    heard = read_answer(many)
    assert heard is not None
    assert len(heard.models) == len(heard.words or {}) == 2000


@pytest.mark.parametrize("name", ["x" * 257, "a\nb", "", "\x1b[31m"])
def test_a_name_that_could_not_be_shown_is_none(name: str) -> None:
    assert read_answer({"data": [{"id": name, "context_length": 5}]}) == Heard((), {})


@pytest.mark.parametrize("data", [b"", b"[]", b'{"words": {"m": {"context": -1}}}', b'{"at": "x"}'])
def test_what_is_kept_is_not_believed_blindly(data: bytes) -> None:
    assert decode_told(data) is None


def test_the_word_is_kept_as_json() -> None:
    told = Told(at=2.5, own=True, models=("m",), words={"m": Word(context=5, untaken=frozenset({"seed"}))})
    assert msgspec.json.decode(encode_told(told))["words"]["m"] == {"context": 5, "untaken": ["seed"]}
    assert decode_told(encode_told(told)) == told


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ({"shutdown_date": "2027-03-01"}, "2027-03-01"),
        ({"deprecation": "2027-03-01T12:00:00Z"}, "2027-03-01"),
        ({"expiration_date": "2027-03-01"}, "2027-03-01"),
        ({"shutdown_date": None, "deprecation": None}, None),
        ({"shutdown_date": 1_800_000_000}, None),
        ({"deprecation": "soon"}, None),
    ],
)
def test_the_day_on_which_a_model_is_switched_off(said: dict[str, Any], day: str | None) -> None:
    heard = read_answer({"data": [{"id": "m", **said}]})
    assert heard is not None
    assert (heard.words or {}).get("m", NOTHING).shutdown == day
