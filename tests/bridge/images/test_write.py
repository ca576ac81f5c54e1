"""What who draws is sent, as its file says it wants it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.images.form import Part, read_form
from isthmus.bridge.images.plan import ImagePlan, plan_images
from isthmus.bridge.images.read import Picture, check_image_request
from isthmus.bridge.images.write import data_url, write_images
from isthmus.bridge.types.plan import Target
from isthmus.providers import load_provider

PNG, JPEG = Picture(b"\x89PNG\r\n\x1a\n1"), Picture(b"\xff\xd8\xff2", "image/jpeg")


def plan(edits: Any = "multipart", images: tuple[Picture, ...] = (PNG,), mask: Picture | None = None) -> ImagePlan:
    facts = load_provider("openai").capabilities()
    drawing = msgspec.structs.replace(facts.images, edits=edits)
    made = Target("openai", "gpt-image-2", msgspec.structs.replace(facts, images=drawing))
    body = {"prompt": "ä fox", "n": 2, "stream": True}
    return plan_images(check_image_request("edit" if images else "generate", body, images, mask), made)


def test_a_generation_is_json() -> None:
    kind, data = write_images(plan(images=()))
    assert kind == "application/json"
    assert msgspec.json.decode(data) == {"model": "gpt-image-2", "prompt": "ä fox", "n": 2, "stream": True}


def test_an_edit_is_a_form() -> None:
    kind, data = write_images(plan(mask=JPEG))
    assert read_form(data, kind) == [
        Part("model", b"gpt-image-2"),
        Part("prompt", "ä fox".encode()),
        Part("n", b"2"),
        Part("stream", b"true"),
        Part("image", PNG.data, "image/png", "image.png"),
        Part("mask", JPEG.data, "image/jpeg", "image.jpeg"),
    ]
    assert b'name="image[]"' in write_images(plan(images=(PNG, JPEG)))[1]


@pytest.mark.parametrize("images", [(PNG,), (PNG, JPEG)])
def test_or_json_with_addresses_that_hold_the_image(images: tuple[Picture, ...]) -> None:
    body = msgspec.json.decode(write_images(plan("json", images, mask=PNG))[1])
    assert body["images"] == [{"image_url": data_url(each)} for each in images]
    assert body["mask"] == {"image_url": data_url(PNG)}
    inline = msgspec.json.decode(write_images(plan("inline", images))[1])["image"]
    assert inline == (data_url(PNG) if len(images) == 1 else [data_url(each) for each in images])
