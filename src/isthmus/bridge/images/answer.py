"""What who draws answers → images as the client wants them, checked.

In: the bytes of a whole answer, or of one event of a stream. Out: `Drawn`, `Partial`, or `NotImages`. Worth knowing:
the base64 of an image travels through as it came; that it is an image is seen by its first bytes.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.images.plan import ImagePlan
from isthmus.bridge.images.read import sniff
from isthmus.protocol.json import JsonObject

_TOLD: Final = ("background", "output_format", "quality", "size")
_HEAD: Final = 64
"""Characters of base64 that show what an image is."""
MAX_PROMPT: Final = 32_000
"""Characters of a revised prompt that are passed on."""


class NotImages(Exception):
    """What is wrong with an answer, in words that follow its provider's name."""


class Image(msgspec.Struct, frozen=True):
    """One of them: its bytes in base64, or where they are."""

    base64: str = ""
    url: str = ""
    kind: str = ""
    """Its media type, where the bytes are here."""
    revised_prompt: str = ""


class Drawn(msgspec.Struct, frozen=True):
    images: tuple[Image, ...]
    told: Mapping[str, Any] = {}
    """Size, quality and the like, as they are said to be."""
    usage: JsonObject | None = None
    limits: Mapping[str, str] = {}
    """What the provider said of its rate limits."""


class Partial(msgspec.Struct, frozen=True):
    """An image that is still being drawn."""

    index: int
    image: Image
    told: Mapping[str, Any] = {}


class _Image(msgspec.Struct):
    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class _Answer(msgspec.Struct):
    data: list[_Image] | None = None
    images: list[_Image] | None = None
    background: str | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = None
    usage: JsonObject | None = None


class _Event(_Answer):
    type: str = ""
    b64_json: str | None = None
    partial_image_index: int = 0
    error: JsonObject | None = None


_answers: Final = msgspec.json.Decoder(_Answer)
_events: Final = msgspec.json.Decoder(_Event)


def read_images(data: bytes, plan: ImagePlan, limits: Mapping[str, str] | None = None) -> Drawn:
    try:
        answer = _answers.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotImages(f"answered something that is no list of images: {error}") from error
    found = answer.data if answer.data is not None else answer.images
    if not found or len(found) > plan.count:
        raise NotImages(f"answered {len(found or ())} images where {plan.count} were asked for")
    return Drawn(tuple(map(_image, found)), _told(answer), answer.usage, limits or {})


def read_image_event(data: bytes | str) -> Partial | Drawn | None:
    """One event of a stream; `None`: it says nothing that matters."""
    try:
        event = _events.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotImages(f"sent an event that cannot be read: {error}") from error
    if event.error is not None or event.type == "error":
        words = str((event.error or {}).get("message") or "it did not say why")[:500]
        raise NotImages(f"failed while it drew: {words}")
    last = event.type.rpartition(".")[2]
    if last == "partial_image":
        return Partial(event.partial_image_index, _image(_Image(event.b64_json)), _told(event))
    if last == "completed":
        return Drawn((_image(_Image(event.b64_json)),), _told(event), event.usage)
    return None


def checked(base64: str) -> str:
    """The media type of an image in base64. Raises `NotImages`."""
    try:
        kind = sniff(b64decode(base64[:_HEAD], validate=True))
    except (binascii.Error, ValueError):
        kind = ""
    if not kind:
        raise NotImages("answered an image that is none")
    return kind


def render_images(drawn: Drawn, plan: ImagePlan, created: int) -> JsonObject:
    """OpenAI's shape, with what was decided beside it."""
    target = plan.target
    told: JsonObject = {
        "provider": target.provider,
        "model": target.model,
        "diagnostics": [diagnostic.to_json() for diagnostic in plan.diagnostics],
    }
    data = [_render(image, plan) for image in drawn.images]
    usage = {} if drawn.usage is None else {"usage": drawn.usage}
    return {"created": created, "data": data, **drawn.told, **usage, "isthmus": told}


def render_event(found: Partial | Drawn, plan: ImagePlan, created: int) -> JsonObject:
    """An event of a stream, as OpenAI spells it."""
    kind = "image_generation" if plan.operation == "generate" else "image_edit"
    image = found.image if isinstance(found, Partial) else found.images[0]
    asked: JsonObject = {name: plan.body[name] for name in _TOLD if name in plan.body}
    defaults = {"background": "auto", "output_format": "png", "quality": "auto", "size": "auto"}
    said: JsonObject = {"created_at": created, "b64_json": image.base64, **defaults, **asked, **found.told}
    if isinstance(found, Partial):
        return {"type": f"{kind}.partial_image", "partial_image_index": found.index, **said}
    return {"type": f"{kind}.completed", **said, "usage": found.usage or _NO_USAGE}


_NO_USAGE: Final = {
    "input_tokens": 0,
    "output_tokens": 0,
    "total_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
}


def _image(found: _Image) -> Image:
    revised = (found.revised_prompt or "")[:MAX_PROMPT]
    text = found.b64_json or ""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    if text:
        return Image(base64=text, kind=checked(text), revised_prompt=revised)
    if found.url and found.url.startswith("data:"):
        text = found.url.partition(",")[2]
        return Image(base64=text, kind=checked(text), revised_prompt=revised)
    if not found.url:
        raise NotImages("answered an image without bytes and without an address")
    return Image(url=found.url, revised_prompt=revised)


def _render(image: Image, plan: ImagePlan) -> JsonObject:
    shown: JsonObject = {"b64_json": image.base64}
    if plan.answers == "url":
        shown = {"url": image.url or f"data:{image.kind};base64,{image.base64}"}
    return {**shown, "revised_prompt": image.revised_prompt} if image.revised_prompt else shown


def _told(answer: _Answer) -> dict[str, Any]:
    return {name: value for name in _TOLD if (value := getattr(answer, name)) is not None}
