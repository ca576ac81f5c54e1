"""Images of the demo model: the same words always give the same picture, and other words another one.

In: a request for images as OpenAI spells it. Out: the answer, or the events of a stream. A picture is a small PNG of
bands in colours that the words' digest chooses, mirrored like a flag; one that is changed keeps its size and half of
its digest, so that both what was there and what was asked for show. Partial ones are the same in fewer rows.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from isthmus.demo.question import Refused
from isthmus.demo.tokens import split_tokens

MODEL: Final = "demo-image"
SIZES: Final = ("1024x1024", "1536x1024", "1024x1536", "256x256")
_CELLS: Final = 8
_MOST: Final = 10
_PER_IMAGE: Final = 64
"""Tokens that a picture is said to cost."""


def draw(body: Mapping[str, Any], given: Sequence[bytes] = ()) -> dict[str, Any]:
    """Raises `Refused`. `given`: images that are to be changed."""
    prompt, size, count = _read(body)
    data = [
        {"b64_json": b64encode(make_picture(prompt, size, given, turn)).decode(), "revised_prompt": prompt}
        for turn in range(count)
    ]
    told = {"size": size, "quality": "low", "background": "opaque", "output_format": "png"}
    return {"created": 0, "data": data, **told, "usage": _usage(prompt, count, given)}


def draw_events(body: Mapping[str, Any], given: Sequence[bytes] = ()) -> Iterator[dict[str, Any]]:
    """The same in a stream: partial ones first."""
    prompt, size, _ = _read(body)
    kind = "image_edit" if given else "image_generation"
    told = {"created_at": 0, "size": size, "quality": "low", "background": "opaque", "output_format": "png"}
    partial = body.get("partial_images") or 0
    for index in range(min(int(partial), 3)):
        early = b64encode(make_picture(prompt, size, given, cells=index + 1)).decode()
        yield {"type": f"{kind}.partial_image", "b64_json": early, "partial_image_index": index, **told}
    whole = b64encode(make_picture(prompt, size, given)).decode()
    yield {"type": f"{kind}.completed", "b64_json": whole, **told, "usage": _usage(prompt, 1, given)}


def make_picture(
    prompt: str, size: str = "1024x1024", given: Sequence[bytes] = (), turn: int = 0, cells: int = _CELLS
) -> bytes:
    wide, high = map(int, size.split("x"))
    seed = blake2b(f"{turn} {prompt}".encode(), digest_size=48)
    for each in given:
        seed.update(each)
    digest = seed.digest()
    colours = [digest[3 * place : 3 * place + 3] for place in range(16)]
    rows: list[bytes] = []
    for row in range(cells):
        line = b""
        for column in range(_CELLS):
            mirrored = min(column, _CELLS - 1 - column)
            left, right = (wide * column) // _CELLS, (wide * (column + 1)) // _CELLS
            line += colours[(mirrored * 5 + row * 3) % 16] * (right - left)
        height = (high * (row + 1)) // cells - (high * row) // cells
        rows += [b"\x00" + line] * height
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _read(body: Mapping[str, Any]) -> tuple[str, str, int]:
    prompt, size, count = body.get("prompt"), body.get("size") or SIZES[0], body.get("n") or 1
    if body.get("model") != MODEL:
        raise Refused(404, f"there is no demo model `{body.get('model')}`; ask for `{MODEL}`", "model_not_found")
    if not isinstance(prompt, str) or not prompt:
        raise Refused(400, "`prompt` must be a text", "invalid_request_error")
    if size == "auto":
        size = SIZES[0]
    if size not in SIZES:
        raise Refused(400, f"`size` must be one of {', '.join(SIZES)}", "invalid_request_error")
    if "unspeakable" in prompt.lower():  # so that a refusal can be seen
        raise Refused(400, "the demo model does not draw that", "moderation_blocked")
    try:
        many = int(count)
    except (TypeError, ValueError):
        many = 0
    if not 1 <= many <= _MOST:
        raise Refused(400, f"`n` must be from 1 to {_MOST}", "invalid_request_error")
    return prompt, size, many


def _usage(prompt: str, count: int, given: Sequence[bytes]) -> dict[str, Any]:
    text, images = len(split_tokens(prompt)), _PER_IMAGE * len(given)
    spent = text + images
    return {
        "input_tokens": spent,
        "output_tokens": _PER_IMAGE * count,
        "total_tokens": spent + _PER_IMAGE * count,
        "input_tokens_details": {"text_tokens": text, "image_tokens": images},
    }
