"""What `/models` and llama.cpp's `/props` tell, in the spellings of different servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from isthmus.upstream.probe.answers import Answer

_CONTEXT: Final = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")
_INPUTS: Final = ("image", "audio", "file", "video")


@dataclass(frozen=True, slots=True)
class Props:
    context: int | None = None
    inputs: tuple[str, ...] = ()


def read_models(listing: Answer) -> tuple[str, ...]:
    """Model ids, in the server's order."""
    return tuple(entry["id"] for entry in _entries(listing) if isinstance(entry.get("id"), str))


def read_context(listing: Answer, model: str) -> int | None:
    """The model's window, by whatever name the server has for it."""
    entry = next((entry for entry in _entries(listing) if entry.get("id") == model), {})
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, dict) else {}):
        for name in _CONTEXT:
            size = _size(place.get(name))
            if size is not None:
                return size
    return None


def read_inputs(listing: Answer, model: str) -> tuple[str, ...]:
    entry = next((entry for entry in _entries(listing) if entry.get("id") == model), {})
    shape = entry.get("architecture")
    named = shape.get("input_modalities") if isinstance(shape, dict) else entry.get("input_modalities")
    return tuple(kind for kind in _INPUTS if isinstance(named, list) and kind in named)


def read_props(props: Answer) -> Props:
    body = props.body if props.ok and isinstance(props.body, dict) else {}
    settings = body.get("default_generation_settings")
    context = _size(settings.get("n_ctx")) if isinstance(settings, dict) else None
    seen = body.get("modalities")
    senses = {"vision": "image", "audio": "audio"}
    inputs = tuple(kind for sense, kind in senses.items() if isinstance(seen, dict) and seen.get(sense) is True)
    return Props(context or _size(body.get("n_ctx")), inputs)


def _entries(listing: Answer) -> list[dict[str, Any]]:
    body = listing.body if listing.ok else None
    data = body.get("data", body.get("models")) if isinstance(body, dict) else body
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else None
