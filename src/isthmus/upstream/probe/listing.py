"""What `/models` and llama.cpp's `/props` tell: the names, and the server's own word about one of them.

The word is read as a gateway reads it (`providers.word.read`), so that a probe and a gateway never differ about it.
"""

from __future__ import annotations

from typing import Any

from isthmus.providers.word.read import Heard, read_answer
from isthmus.providers.word.told import Told, Word
from isthmus.upstream.probe.answers import Answer


def read_models(listing: Answer) -> tuple[str, ...]:
    """Model ids, in the server's order."""
    return tuple(entry["id"] for entry in _entries(listing) if isinstance(entry.get("id"), str))


def read_word(model: str, *answers: Answer) -> Word:
    """What the answers together say of the model; of two that differ, the later counts."""
    heard = Heard()
    for answer in answers:
        heard = heard.and_also((read_answer(answer.body) if answer.ok else None) or Heard())
    return Told(words=heard.words or {}).word(model)


def _entries(listing: Answer) -> list[dict[str, Any]]:
    body = listing.body if listing.ok else None
    data = body.get("data", body.get("models")) if isinstance(body, dict) else body
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
