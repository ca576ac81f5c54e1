"""The parts of a turn as content blocks of a Messages request.

In: parts that fit the model. Out: blocks. Text of nothing but white space is left out, for a block of it is refused
(opencode#24087); a picture or document in a format that the endpoint does not read becomes a note, with a decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isthmus.bridge.history.fitting import Fitted, Fitter, decoded_text, media_type
from isthmus.bridge.types.history import Audio, File, Image, Words
from isthmus.protocol.json import JsonObject

_PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF: Final = "application/pdf"
_BARE_PDF: Final = "JVBER"  # how `%PDF` begins in base64


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def write_blocks(parts: Iterable[Fitted], fitter: Fitter) -> list[tuple[JsonObject, bool]]:
    """The blocks of these parts, each with whether the client marked its part for the prompt cache."""
    made = [(_write(part, fitter), bool(getattr(part, "breakpoint", None))) for part in parts]
    return [(block, marked) for block, marked in made if block is not None]


def _write(part: Fitted, fitter: Fitter) -> JsonObject | None:
    match part:
        case Words(text):
            return text_block(text) if text.strip() else None
        case Image():
            return _image(part, fitter)
        case File(video=False):
            return _document(part, fitter)
        case File() | Audio():
            return text_block(fitter.omit(part, "the endpoint takes text, images and documents").text)


def _image(image: Image, fitter: Fitter) -> JsonObject:
    if image.detail in ("low", "high"):
        fitter.ignore(f"{image.path}.detail", "the endpoint chooses the resolution of images by itself")
    if not image.url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    kind, data = media_type(image.url), _base64(image.url)
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if kind not in _PICTURES or not data:
        return text_block(fitter.omit(image, "only JPEG, PNG, GIF and WebP images in base64 can be sent").text)
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _document(file: File, fitter: Fitter) -> JsonObject:
    titled = {"title": file.name} if file.name else {}
    if not file.data:
        return {"type": "document", "source": {"type": "url", "url": file.url}, **titled}
    kind, data = media_type(file.data), _base64(file.data)
    if not kind and file.data.startswith(_BARE_PDF):
        kind, data = _PDF, file.data
    if kind == _PDF and data:
        return {"type": "document", "source": {"type": "base64", "media_type": _PDF, "data": data}, **titled}
    text = decoded_text(file.data, kind)
    if text is not None and text.strip():
        return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **titled}
    return text_block(fitter.omit(file, "only PDF and plain text can be sent as documents").text)


def _base64(url: str) -> str:
    head, _, data = url.partition(",")
    return data if head.endswith(";base64") else ""
