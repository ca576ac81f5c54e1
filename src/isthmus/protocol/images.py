"""Images as they travel: the request fields that are relied on."""

from __future__ import annotations

from typing import Literal, Required, TypedDict


class CreateImage(TypedDict, total=False):
    prompt: Required[str]
    model: str | None
    n: int | None
    size: str | None
    quality: str | None
    background: Literal["transparent", "opaque", "auto"] | None
    output_format: Literal["png", "jpeg", "webp"] | None
    output_compression: int | None
    response_format: Literal["url", "b64_json"] | None
    stream: bool | None
    partial_images: int | None
    user: str | None


class ImageReference(TypedDict):
    image_url: str


class EditImage(CreateImage, total=False):
    images: Required[list[ImageReference]]
    mask: ImageReference | None
    input_fidelity: Literal["low", "high"] | None
