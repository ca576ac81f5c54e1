"""The answers of a server's own endpoints → what it says of its models. Each answer is known by its shape.

In: decoded JSON of whatever kind. Out: `Heard`. Worth knowing: a field that is not there says nothing, a field of the
wrong type neither; what a server was trained for (`n_ctx_train`) or could load (`max_context_length` of a model that is
not loaded) is not what it serves. The shapes were gathered on 2026-11-16:

    OpenAI, DeepSeek, Kimi …  GET models           data[].id
    llama.cpp                 GET models, /props   data[].meta.n_ctx, models[].capabilities; n_ctx, modalities, template
    vLLM, SGLang              GET models           data[].max_model_len; SGLang /get_model_info: has_image_understanding
    LM Studio                 GET /api/v0/models   data[].type, state, loaded_context_length
    Ollama                    GET /api/tags        models[].name; POST /api/show: capabilities, parameters, model_info
    OpenRouter                GET models           context_length, architecture, supported_parameters, pricing per token
    Together                  GET models           a bare list; context_length, pricing per million
    Groq                      GET models           context_window, max_completion_tokens
    Mistral                   GET models           capabilities.{vision, function_calling}, max_context_length, aliases
    Fireworks, DeepInfra      GET models           supports_image_input, supports_tools; metadata.context_length
    Gemini, Anthropic         GET models           inputTokenLimit, outputTokenLimit; max_input_tokens, max_tokens
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from isthmus.bridge.capabilities import Modality
from isthmus.providers.word.template import read_template
from isthmus.providers.word.told import LARGEST_SIZE, LONGEST_NAME, MAX_MODELS, NOTHING, Word

_CONTEXT: Final = (
    *("meta.n_ctx", "max_model_len", "loaded_context_length", "context_length", "context_window"),
    *("max_context_length", "context_size", "max_input_tokens", "inputTokenLimit", "metadata.context_length"),
)
_OUTPUT: Final = (
    *("top_provider.max_completion_tokens", "max_completion_tokens", "max_output_tokens", "outputTokenLimit"),
    "metadata.max_tokens",
)
_SENSES: Final[tuple[Modality, ...]] = get_args(Modality)
_BY_FLAG: Final[Mapping[str, Modality]] = {"vision": "image", "audio": "audio", "video": "video"}
_SGLANG: Final[Mapping[str, Modality]] = {"has_image_understanding": "image", "has_audio_understanding": "audio"}
_PARAMETERS: Final = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logit_bias": "logit_bias",
    "top_logprobs": "top_logprobs",
    "seed": "seed",
    "stop": "stop",
}
"""Ours → OpenRouter's. Only names that it is known to list: what it never names may well be taken."""
_OTHER_WORK: Final = ("embed", "rerank", "moderation", "image", "audio", "transcri", "speech", "video", "ocr")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NUM_CTX: Final = re.compile(r"^\s*num_ctx\s+(\d{1,12})\s*$", re.MULTILINE)
_TOKENS_PRICED: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Heard:
    models: tuple[str, ...] = ()
    words: Mapping[str, Word] | None = None

    def and_also(self, more: Heard) -> Heard:
        words = dict(self.words or {})
        for model, word in (more.words or {}).items():
            words[model] = word.over(words.get(model, NOTHING))
        return Heard(tuple(dict.fromkeys((*self.models, *more.models)))[:MAX_MODELS], words)


def read_answer(body: Any, model: str = "") -> Heard | None:
    """What an answer says; `None`: it is none that we know. `model`: the one that was asked about, if it was one."""
    if isinstance(body, list):
        return _read_list(body)
    if not isinstance(body, Mapping):
        return None
    if isinstance(body.get("default_generation_settings"), Mapping):
        return _about(_props(body)) if body.get("role") != "router" else Heard()
    if "has_image_understanding" in body or "is_generation" in body:
        return _about(Word(senses=_flags(body, _SGLANG)))
    if model and (isinstance(body.get("model_info"), Mapping) or isinstance(body.get("capabilities"), list)):
        return _about(_show(body), model)
    data, models = body.get("data"), body.get("models")
    if isinstance(data, list):
        heard = _read_list(data)
        return heard.and_also(_llama_senses(models)) if isinstance(models, list) else heard
    return _read_list(models) if isinstance(models, list) else None


def _about(word: Word, model: str = "") -> Heard:
    return Heard((), {model: word} if word != NOTHING else {})


def _read_list(entries: Iterable[Any]) -> Heard:
    names: list[str] = []
    words: dict[str, Word] = {}
    for entry in list(entries)[:MAX_MODELS]:
        name = _name(entry)
        if not name or not _answers(entry):
            continue
        names.append(name)
        word = _entry(entry)
        if word != NOTHING:
            for known in (name, *_texts(entry.get("aliases"))[:20]):
                words.setdefault(known, word)
    return Heard(tuple(dict.fromkeys(names)), words)


def _name(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return ""
    found = next((entry[key] for key in ("id", "key", "model", "name") if isinstance(entry.get(key), str)), "")
    name = str(found).removeprefix("models/")  # Gemini's ids name their folder, too
    return name if 0 < len(name) <= LONGEST_NAME and name.isprintable() else ""


def _answers(entry: Mapping[str, Any]) -> bool:
    """Whether it is a model that one can talk to."""
    kind, able = entry.get("type"), entry.get("capabilities")
    if isinstance(kind, str) and any(kind.lower().startswith(other) for other in _OTHER_WORK):
        return False
    return not (isinstance(able, Mapping) and able.get("completion_chat") is False)


def _entry(entry: Mapping[str, Any]) -> Word:
    loaded = entry.get("state", "loaded") == "loaded"
    output = _first(entry, _OUTPUT)
    if output is None and "max_input_tokens" in entry:
        output = _size(entry.get("max_tokens"))
    cached, price, output_price = _prices(entry.get("pricing"))
    named = entry.get("supported_parameters")
    taken = frozenset(_texts(named)) if isinstance(named, list) and named else None
    able = entry.get("capabilities")
    flags = able if isinstance(able, Mapping) else {}
    return Word(
        context=_first(entry, _CONTEXT) if loaded else None,
        output=output,
        senses=_senses(entry, flags),
        tools=_tools(entry, flags, taken),
        choice=None if taken is None or "tools" not in taken else "tool_choice" in taken,
        formats={}
        if taken is None
        else {"json_object": "response_format" in taken, "json_schema": "structured_outputs" in taken},
        untaken=frozenset()
        if taken is None
        else frozenset(ours for ours, theirs in _PARAMETERS.items() if theirs not in taken),
        price=price,
        cached_price=cached,
        output_price=output_price,
        shutdown=_day(entry),
    )


def _day(entry: Mapping[str, Any]) -> str | None:
    """OpenAI's name for it, Mistral's, OpenRouter's."""
    said = (entry.get(name) for name in ("shutdown_date", "deprecation", "expiration_date"))
    found = (_DAY.match(day) for day in said if isinstance(day, str))
    return next((day[0] for day in found if day is not None), None)


def _tools(entry: Mapping[str, Any], flags: Mapping[str, Any], taken: frozenset[str] | None) -> bool | None:
    """LM Studio's `tool_use` is not among them: a model without it is given tools all the same."""
    if taken is not None:
        return "tools" in taken
    for said in (flags.get("function_calling"), entry.get("supports_tools")):
        if isinstance(said, bool):
            return said
    return None


def _senses(entry: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[Modality, bool]:
    shape = entry.get("architecture")
    named = shape.get("input_modalities") if isinstance(shape, Mapping) else entry.get("input_modalities")
    if isinstance(named, list) and named:
        return {sense: sense in named for sense in _SENSES}
    found = {**_flags(flags, _BY_FLAG), **_flags(entry, {"supports_image_input": "image"})}
    if not found and entry.get("type") in ("vlm", "llm"):
        found["image"] = entry["type"] == "vlm"
    return found


def _llama_senses(entries: Iterable[Any]) -> Heard:
    """llama.cpp's second list, which tells whether there is a projector; which sense it has is said by `/props`."""
    words: dict[str, Word] = {}
    for entry in list(entries)[:MAX_MODELS]:
        name, able = _name(entry), entry.get("capabilities") if isinstance(entry, Mapping) else None
        if name and isinstance(able, list) and "completion" in able and "multimodal" not in able:
            words[name] = Word(senses={"image": False, "audio": False})
    return Heard((), words)


def _props(body: Mapping[str, Any]) -> Word:
    """llama.cpp's `/props`: one model with its window, for one of several slots."""
    seen = body.get("modalities")
    template = body.get("chat_template")
    rules = read_template(template) if isinstance(template, str) else NOTHING
    said = Word(
        context=_size(_at(body, "default_generation_settings.n_ctx")) or _size(body.get("n_ctx")),
        senses=_flags(seen, _BY_FLAG) if isinstance(seen, Mapping) else {},
        # Tools that the template has no place for are left out in silence, even `required` ones (seen with xllamacpp
        # 2026.10: as many prompt tokens with them as without).
        tools=False if _at(body, "chat_template_caps.supports_tools") is False else None,
    )
    return said.over(rules)


def _show(body: Mapping[str, Any]) -> Word:
    """Ollama's `/api/show`. The window is the one that the model is loaded with, where its file says so; else no model
    is given more than it was made for."""
    able = body.get("capabilities")
    senses: dict[Modality, bool] = {}
    tools = None
    if isinstance(able, list) and "completion" in able:
        senses, tools = {"image": "vision" in able}, "tools" in able
    given = body.get("parameters")
    chosen = _NUM_CTX.search(given[:16_384]) if isinstance(given, str) else None
    info = body.get("model_info")
    made = info.get(f"{info.get('general.architecture')}.context_length") if isinstance(info, Mapping) else None
    return Word(context=_size(int(chosen[1])) if chosen else _size(made), senses=senses, tools=tools)


def _prices(said: Any) -> tuple[float | None, float | None, float | None]:
    """Cached, input, output, per million tokens: OpenRouter writes dollars per token, in text; Together per million."""
    if not isinstance(said, Mapping):
        return None, None, None
    if "prompt" in said:
        cached, price, output = (said.get(name) for name in ("input_cache_read", "prompt", "completion"))
        return _price(cached, _TOKENS_PRICED), _price(price, _TOKENS_PRICED), _price(output, _TOKENS_PRICED)
    return _price(said.get("cached_input")), _price(said.get("input")), _price(said.get("output"))


def _price(value: Any, times: int = 1) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        price = float(value[:40] if isinstance(value, str) else value) * times
    except (ValueError, OverflowError):
        return None
    # OpenRouter's routers have no price of their own and say -1.
    return round(price, 6) if 0 <= price <= 1_000_000 else None


def _flags(said: Mapping[str, Any], names: Mapping[str, Modality]) -> dict[Modality, bool]:
    return {sense: said[name] for name, sense in names.items() if isinstance(said.get(name), bool)}


def _first(entry: Mapping[str, Any], paths: Iterable[str]) -> int | None:
    return next(_sizes(entry, paths), None)


def _sizes(entry: Mapping[str, Any], paths: Iterable[str]) -> Iterator[int]:
    for path in paths:
        size = _size(_at(entry, path))
        if size is not None:
            yield size


def _at(entry: Mapping[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    value = entry.get(head)
    return value if not rest else value.get(rest) if isinstance(value, Mapping) else None


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_SIZE else None


def _texts(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else []
    return [each for each in texts if isinstance(each, str) and 0 < len(each) <= LONGEST_NAME]
