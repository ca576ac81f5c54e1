"""The shape of a request for images is that of the door."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from isthmus.bridge.images.read import read_edit, read_generation
from isthmus.errors import RequestRefused
from isthmus.protocol.images import CreateImage, EditImage

URL = "data:image/png;base64,iVBORw0KGgo="
GOOD: tuple[Any, ...] = (
    {"prompt": "a"},
    {"prompt": "a", "background": "opaque", "model": "gpt-image-2", "quality": "auto", "size": "auto"},
    {"prompt": "a", "n": 2, "stream": True, "partial_images": 1, "response_format": "b64_json"},
)


@pytest.mark.parametrize("body", GOOD)
def test_what_the_door_takes_fits_the_shape(body: dict[str, Any]) -> None:
    assert read_generation(json.dumps(body).encode()).prompt == "a"
    assert msgspec.convert(body, CreateImage) == body
    changed = {**body, "images": [{"image_url": URL}]}
    assert len(read_edit(json.dumps(changed).encode()).images) == 1
    assert msgspec.convert(changed, EditImage) == changed


@pytest.mark.parametrize("body", [{}, {"prompt": 3}, {"prompt": "a", "background": "blue"}])
def test_what_the_door_refuses_does_not(body: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused):
        read_generation(json.dumps(body).encode())
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, CreateImage)
