"""Embeddings as they travel: the request fields that are relied on."""

from __future__ import annotations

from typing import Literal, Required, TypedDict


class CreateEmbedding(TypedDict, total=False):
    model: str | None
    input: Required[str | list[str | int | list[int]]]
    encoding_format: Literal["float", "base64"] | None
    dimensions: int | None
    user: str | None
