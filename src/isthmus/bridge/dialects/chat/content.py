"""The parts of a turn → `content` of a chat message: text where text will do, parts where the model can see.

In: parts that the model can take (see `history.fitting`). Out: a string, or a list of chat parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.bridge.history.fitting import Fitted
from isthmus.bridge.types.history import Audio, File, Image, Words, join_texts
from isthmus.protocol.json import JsonObject


def write_content(parts: Sequence[Fitted]) -> str | list[JsonObject]:
    """A string if all of it is text, else a list of parts in their order."""
    if len(parts) == 1 and type(parts[0]) is Words:
        return parts[0].text
    texts = [part.text for part in parts if isinstance(part, Words)]
    return join_texts(texts) if len(texts) == len(parts) else write_parts(parts)


def write_parts(parts: Sequence[Fitted]) -> list[JsonObject]:
    return [_write(part) for part in parts]


def text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _write(part: Fitted) -> JsonObject:
    match part:
        case Words():
            return text_part(part.text)
        case Image():
            shape: JsonObject = {"url": part.url}
            if part.detail:
                shape["detail"] = part.detail
            return {"type": "image_url", "image_url": shape}
        case File() if part.video:
            shape = {"url": part.data or part.url}
            if part.detail in ("low", "high"):
                shape["detail"] = part.detail
            return {"type": "video_url", "video_url": shape}
        case File():
            shape = {"filename": part.name, "file_data": part.data} if part.name else {"file_data": part.data}
            return {"type": "file", "file": shape}
        case Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
