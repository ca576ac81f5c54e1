"""Images of a conversation: what the model is told of one that was made, and which ones a call may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from isthmus.bridge.types.managed import Output

IMAGE_MADE: Final = "The image was made, and the user sees it."


_KINDS: Final = {"iVBOR": "png", "/9j/": "jpeg", "UklGR": "webp", "R0lGOD": "gif"}
"""How the base64 of an image begins."""


def latest_images(items: Sequence[Mapping[str, Any]], most: int) -> list[str]:
    """The latest images of a conversation, in their order, as `data:` URLs; what only has an address is not fetched."""
    found: list[str] = []
    for item in reversed(items) if most else ():
        for url in reversed([*_image_urls(item)]):
            if len(found) >= most:
                return found[::-1]
            if url.startswith("data:image/"):
                found.append(url)
    return found[::-1]


def _image_urls(item: Mapping[str, Any]) -> Iterator[str]:
    if item.get("type") == "image_generation_call" and isinstance(result := item.get("result"), str) and result:
        yield image_url(result)
    for parts in (item.get("content"), item.get("output")):
        for part in parts if isinstance(parts, list) else [parts]:
            url = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(url, str):
                yield url


def image_made(base64: str) -> Output:
    """What the model is told of an image: a model that sees looks at it, to any other the words are enough."""
    return [{"type": "input_text", "text": IMAGE_MADE}, {"type": "input_image", "image_url": image_url(base64)}]


def image_url(base64: str) -> str:
    """The image in an item, as an address."""
    kind = next((kind for start, kind in _KINDS.items() if base64.startswith(start)), "png")
    return f"data:image/{kind};base64,{base64}"
