"""Requests for images: JSON as Codex sends it, forms as SDKs do; what cannot be meant is refused by name."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from isthmus.bridge.images.form import Part, write_form
from isthmus.bridge.images.read import Picture, read_edit, read_generation, read_picture, sniff
from isthmus.bridge.limits import RequestLimits
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

PNG = b"\x89PNG\r\n\x1a\n and so on"
URL = f"data:image/png;base64,{b64encode(PNG).decode()}"


def generation(**body: Any) -> Any:
    return read_generation(msgspec.json.encode({"prompt": "a fox", **body}))


def edit(**body: Any) -> Any:
    return read_edit(msgspec.json.encode({"prompt": "bluer", **body}))


def test_what_codex_sends_is_read() -> None:
    asked = generation(background="opaque", model="gpt-image-2", quality="auto", size="auto", n=None)
    assert (asked.operation, asked.prompt, asked.images) == ("generate", "a fox", ())
    assert asked.options == {"background": "opaque", "model": "gpt-image-2", "quality": "auto", "size": "auto"}
    changed = edit(images=[{"image_url": URL}], model="gpt-image-2")
    assert (changed.operation, changed.images) == ("edit", (Picture(PNG, "image/png"),))
    assert changed.options == {"model": "gpt-image-2"}


@pytest.mark.parametrize("image", [URL, [URL, URL], [{"image_url": URL}], {"url": URL}])
def test_an_image_may_be_spelled_in_several_ways(image: Any) -> None:
    found = edit(image=image, mask=URL)
    assert set(found.images) == {Picture(PNG)}
    assert found.mask == Picture(PNG)


def test_a_form_says_the_same() -> None:
    fields = {"prompt": "bluer", "n": "2", "stream": "true", "model": "x", "partial_images": "1", "quality": "high"}
    parts = [Part(name, value.encode()) for name, value in fields.items()]
    parts += [Part("image[]", PNG, "application/octet-stream", "a")] * 2 + [Part("mask", PNG, "image/png", "m.png")]
    kind, body = write_form(parts)
    found = read_edit(body, content_type=kind)
    assert found.images == (Picture(PNG), Picture(PNG))
    assert found.mask == Picture(PNG)
    assert found.options == {"n": 2, "stream": True, "model": "x", "partial_images": 1, "quality": "high"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": 1}, "prompt"),
        ({"n": 0}, "n"),
        ({"n": 11}, "n"),
        ({"n": True}, "n"),
        ({"n": "2"}, "n"),
        ({"partial_images": 4}, "partial_images"),
        ({"output_compression": 101}, "output_compression"),
        ({"background": "blue"}, "background"),
        ({"output_format": "gif"}, "output_format"),
        ({"response_format": "png"}, "response_format"),
        ({"size": 1024}, "size"),
        ({"model": []}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"image": URL}, "image"),
        ({"mask": URL}, "image"),
    ],
)
def test_a_bad_field_is_named(body: JsonObject, param: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        generation(**body)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (None, "`image` is missing; send the image to change"),
        ("https://example.com/a.png", "is an address, and nothing is fetched here"),
        ("http://169.254.169.254/", "is an address, and nothing is fetched here"),
        ("file:///etc/passwd", "nothing is fetched here"),
        ({"file_id": "file_1"}, "names a file, and none are kept here"),
        (7, "must be a `data:` URL"),
        ("data:image/png;base64,%%%", "is no base64"),
        ("data:image/png;base64,aGFsbG8=", "is no image that is known here"),
        ("data:image/svg+xml,<svg/>", "send the image as a `data:` URL with base64"),
    ],
)
def test_an_image_that_is_none_is_refused(image: Any, words: str) -> None:
    with pytest.raises(RequestRefused, match=words.replace("(", r"\(")):
        edit(image=image)


def test_whoever_mistook_the_door_is_sent_to_the_right_one() -> None:
    with pytest.raises(RequestRefused, match="send it to `/v1/responses`"):
        generation(prompt=None, messages=[{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("raw", [b"[]", b'"a"', b"{", b""])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(RequestRefused):
        read_generation(raw)


def test_fields_are_counted_in_both() -> None:
    few = RequestLimits(max_fields=2)
    with pytest.raises(RequestRefused, match="max_fields"):
        read_generation(msgspec.json.encode({"prompt": "a", "x": 1, "y": 2}), few)
    kind, body = write_form([Part(name, b"1") for name in ("prompt", "x", "y")])
    with pytest.raises(RequestRefused, match="max_fields"):
        read_edit(body, few, kind)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"GIF89a", "image/gif"),
        (b"<svg", ""),
        (b"", ""),
    ],
)
def test_an_image_is_known_by_its_first_bytes(data: bytes, kind: str) -> None:
    assert sniff(data) == kind
    if kind:
        url = f"data:text/plain;base64,{b64encode(data).decode()}"
        assert read_picture(url, "image") == Picture(data, kind)
        assert read_picture(url, "image").filename == f"image.{kind.partition('/')[2]}"
