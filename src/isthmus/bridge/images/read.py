"""A request for images: JSON or a form in, an `ImageRequest` out, or a 400 that names the field.

Worth knowing: an image that is to be changed comes as bytes, in a form or in a `data:` URL. Any other address is
refused: nothing is fetched here that a client names.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.images.form import Part, is_form, read_form
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.bridge.parse import decode_json
from isthmus.errors import REQUEST_TOO_LARGE, RequestRefused
from isthmus.protocol.json import JsonObject

Operation = Literal["generate", "edit"]
MAX_COUNT: Final = 10
"""Images that one request may ask for, and partial ones of each: as many as OpenAI allows."""
MAX_PARTIAL: Final = 3
_WHOLE: Final = {"n": (1, MAX_COUNT), "partial_images": (0, MAX_PARTIAL), "output_compression": (0, 100)}
_WORDS: Final = {
    "background": ("transparent", "opaque", "auto"),
    "output_format": ("png", "jpeg", "webp"),
    "response_format": ("url", "b64_json"),
    "input_fidelity": ("low", "high"),
    "moderation": ("low", "auto"),
}
_TEXTS: Final = ("model", "size", "quality", "style", "user")
_PICTURES: Final = ("image", "images", "mask")
KINDS: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Picture(msgspec.Struct, frozen=True):
    data: bytes
    kind: str = "image/png"

    @property
    def filename(self) -> str:
        return f"image.{self.kind.partition('/')[2]}"


class ImageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A checked request."""

    operation: Operation
    prompt: str
    options: JsonObject
    """What else it says, without the images."""
    images: tuple[Picture, ...] = ()
    mask: Picture | None = None


def read_generation(raw: bytes | bytearray, limits: RequestLimits = DEFAULT_LIMITS) -> ImageRequest:
    return check_image_request("generate", _read_json(raw, limits))


def read_edit(raw: bytes | bytearray, limits: RequestLimits = DEFAULT_LIMITS, content_type: str = "") -> ImageRequest:
    """As Codex sends it, in JSON, or as SDKs do, as a form."""
    if not is_form(content_type):
        return check_image_request("edit", _read_json(raw, limits))
    options: JsonObject = {}
    images: list[Picture] = []
    mask = None
    for part in read_form(raw, content_type):
        if part.name == "image":
            images.append(_uploaded(part, f"image[{len(images)}]"))
        elif part.name == "mask":
            mask = _uploaded(part, "mask")
        else:
            options[part.name] = _text(part)
    if len(options) > limits.max_fields:
        raise _too_many(limits)
    return check_image_request("edit", options, images, mask)


def check_image_request(
    operation: Operation, body: JsonObject, images: Sequence[Picture] = (), mask: Picture | None = None
) -> ImageRequest:
    prompt = body.get("prompt")
    if prompt is None and isinstance(body.get("messages") or body.get("input"), list | str):
        raise _missing("prompt", "it has `messages` or `input`: send it to `/v1/responses` or `/v1/chat/completions`")
    if prompt is None or prompt == "":
        raise _missing("prompt", "say what the image shall show")
    if not isinstance(prompt, str):
        raise RequestRefused("`prompt` must be a text", code="invalid_type", param="prompt")
    images = [*images, *_given_images(body)]
    mask = mask or (_given_image(body["mask"], "mask") if body.get("mask") is not None else None)
    if operation == "edit" and not images:
        raise _missing("image", "send the image to change, or use `/v1/images/generations`")
    if operation == "generate" and (images or mask):
        words = "`image` is for `/v1/images/edits`; send it there"
        raise RequestRefused(words, code="invalid_value", param="image")
    kept = {name: value for name, value in body.items() if name != "prompt" and name not in _PICTURES}
    options = {name: value for name, value in kept.items() if value is not None}
    _check_options(options)
    return ImageRequest(operation=operation, prompt=prompt, options=options, images=tuple(images), mask=mask)


def sniff(data: bytes) -> str:
    """The media type of an image by its first bytes; empty: it is none that we know."""
    found = next((kind for start, kind in KINDS.items() if data.startswith(start)), "")
    return found or ("image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else "")


def read_picture(url: str, path: str) -> Picture:
    """The image in a `data:` URL."""
    head, comma, text = url.partition(",")
    if not head.startswith("data:") or not comma or not head.endswith(";base64"):
        where = "an address" if url.startswith(("http:", "https:")) else "something else"
        words = f"`{path}` is {where}, and nothing is fetched here; send the image as a `data:` URL with base64"
        raise RequestRefused(words, code="invalid_value", param=path)
    try:
        data = b64decode(text, validate=True)
    except binascii.Error as error:
        raise RequestRefused(f"`{path}` is no base64: {error}", code="invalid_value", param=path) from error
    return _picture(data, path)


def _read_json(raw: bytes | bytearray, limits: RequestLimits) -> JsonObject:
    body = decode_json(raw, limits)
    if not isinstance(body, dict):
        raise RequestRefused('the request body must be a JSON object; send `{"prompt": …}`', code="invalid_type")
    if len(body) > limits.max_fields:
        raise _too_many(limits)
    return body


def _given_images(body: JsonObject) -> list[Picture]:
    """`images: [{"image_url": …}]`, as Codex writes it, or `image`: one, or a list."""
    found: list[Picture] = []
    for name in ("images", "image"):
        given = body.get(name)
        each = given if isinstance(given, list) else [] if given is None else [given]
        found += [_given_image(one, f"{name}[{index}]") for index, one in enumerate(each)]
    return found


def _given_image(given: Any, path: str) -> Picture:
    url = given.get("image_url", given.get("url")) if isinstance(given, dict) else given
    if isinstance(given, dict) and given.get("file_id"):
        words = f"`{path}.file_id` names a file, and none are kept here; send the image as a `data:` URL"
        raise RequestRefused(words, code="invalid_value", param=f"{path}.file_id")
    if not isinstance(url, str):
        words = f'`{path}` must be a `data:` URL, or `{{"image_url": "data:…"}}`'
        raise RequestRefused(words, code="invalid_type", param=path)
    return read_picture(url, path)


def _uploaded(part: Part, path: str) -> Picture:
    return _picture(part.data, path)


def _picture(data: bytes, path: str) -> Picture:
    kind = sniff(data)
    if not kind:
        words = f"`{path}` is no image that is known here; send PNG, JPEG, WebP or GIF"
        raise RequestRefused(words, code="invalid_value", param=path)
    return Picture(data, kind)


def _text(part: Part) -> Any:
    """A field of a form is a text; numbers and yes or no are meant where they stand in JSON as such."""
    try:
        text = part.data.decode()
    except UnicodeDecodeError as error:
        words = f"`{part.name[:64]}` is no text"
        raise RequestRefused(words, code="invalid_type", param=part.name[:64]) from error
    if part.name in _WHOLE and text.strip("-").isdigit() and len(text) < 10:
        return int(text)
    if part.name == "stream" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text


def _check_options(options: JsonObject) -> None:
    for name in _TEXTS:
        if not isinstance(options.get(name, ""), str):
            raise RequestRefused(f"`{name}` must be a string", code="invalid_type", param=name)
    for name, known in _WORDS.items():
        if options.get(name, known[0]) not in known:
            told = ", ".join(f"`{word}`" for word in known)
            raise RequestRefused(f"`{name}` must be one of {told}", code="invalid_value", param=name)
    for name, (low, high) in _WHOLE.items():
        value = options.get(name, low)
        if type(value) is not int or not low <= value <= high:
            words = f"`{name}` must be a whole number from {low} to {high}"
            raise RequestRefused(words, code="invalid_value", param=name)
    if not isinstance(options.get("stream", False), bool):
        raise RequestRefused("`stream` must be true or false", code="invalid_type", param="stream")


def _missing(name: str, why: str) -> RequestRefused:
    return RequestRefused(f"`{name}` is missing; {why}", code="missing_required_parameter", param=name)


def _too_many(limits: RequestLimits) -> RequestRefused:
    words = f"the request body has more than {limits.max_fields} fields, the limit `limits.max_fields`"
    return RequestRefused(f"{words} of this gateway", code=REQUEST_TOO_LARGE)
