"""What comes back is an image, or a failure; how it was packed is not the client's trouble."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from isthmus.bridge.images.answer import (
    Drawn,
    Image,
    NotImages,
    Partial,
    read_image_event,
    read_images,
    render_event,
    render_images,
)
from isthmus.bridge.images.plan import ImagePlan, plan_images
from isthmus.bridge.images.read import check_image_request
from isthmus.bridge.types.plan import Target
from isthmus.providers import load_provider

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 100).decode()


def plan(**options: Any) -> ImagePlan:
    made = Target("openai", "gpt-image-2", load_provider("openai").capabilities())
    return plan_images(check_image_request("generate", {"prompt": "a fox", **options}), made)


def read(answer: Any, **options: Any) -> Drawn:
    return read_images(msgspec.json.encode(answer), plan(**options), {"x-ratelimit-remaining-requests": "1"})


def test_openais_answer_is_passed_on() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    drawn = read({"created": 7, "data": [{"b64_json": PNG, "revised_prompt": "A fox."}], "size": "1x1", "usage": usage})
    made = render_images(drawn, plan(), 9)
    assert made.pop("isthmus") == {"provider": "openai", "model": "gpt-image-2", "diagnostics": []}
    data = [{"b64_json": PNG, "revised_prompt": "A fox."}]
    assert made == {"created": 9, "data": data, "size": "1x1", "usage": usage}
    assert drawn.limits == {"x-ratelimit-remaining-requests": "1"}


@pytest.mark.parametrize(
    "image", [{"b64_json": PNG}, {"b64_json": f"data:image/png;base64,{PNG}"}, {"url": f"data:image/png;base64,{PNG}"}]
)
def test_bytes_are_bytes_however_they_are_wrapped(image: Any) -> None:
    assert read({"images": [image]}).images == (Image(base64=PNG, kind="image/png"),)


def test_an_address_stays_one_until_somebody_fetches_it() -> None:
    drawn = read({"data": [{"url": "https://cdn.example/a.png"}]})
    assert drawn.images == (Image(url="https://cdn.example/a.png"),)
    told = render_images(drawn, plan(response_format="url"), 1)["data"]
    assert told == [{"url": "https://cdn.example/a.png"}]
    bytes_too = render_images(read({"data": [{"b64_json": PNG}]}), plan(response_format="url"), 1)["data"]
    assert bytes_too == [{"url": f"data:image/png;base64,{PNG}"}]


@pytest.mark.parametrize(
    "answer",
    [
        *(b"no json", b"[]", b'{"data": []}', b"{}", b'{"data": [{}]}', b'{"data": [{"b64_json": ""}]}'),
        *(b'{"data": [{"b64_json": "aGFsbG8="}]}', b'{"data": [{"b64_json": "%%%"}]}', b'{"data": "x"}'),
        msgspec.json.encode({"data": [{"b64_json": PNG}] * 2}),
    ],
)
def test_what_is_no_image_is_a_failure(answer: bytes) -> None:
    with pytest.raises(NotImages):
        read_images(answer, plan())


def test_events_of_a_stream() -> None:
    early = read_image_event(
        msgspec.json.encode({"type": "image_generation.partial_image", "b64_json": PNG, "partial_image_index": 1})
    )
    assert early == Partial(1, Image(base64=PNG, kind="image/png"))
    last = {"type": "image_edit.completed", "b64_json": PNG, "quality": "low", "usage": {"total_tokens": 1}}
    whole = read_image_event(msgspec.json.encode(last))
    assert whole == Drawn((Image(base64=PNG, kind="image/png"),), {"quality": "low"}, {"total_tokens": 1})
    assert read_image_event(b'{"type": "keepalive"}') is None
    for broken in (b'{"type": "error", "error": {"message": "no"}}', b"{", b'{"type": "image_edit.completed"}'):
        with pytest.raises(NotImages):
            read_image_event(broken)


def test_events_are_told_as_openai_spells_them() -> None:
    asked = plan(stream=True, partial_images=1, quality="high")
    image = Image(base64=PNG, kind="image/png")
    early = render_event(Partial(0, image), asked, 5)
    assert (early["type"], early["partial_image_index"]) == ("image_generation.partial_image", 0)
    last = render_event(Drawn((image,), {"size": "1x1"}, None), asked, 6)
    assert last["type"] == "image_generation.completed"
    assert (last["quality"], last["size"], last["created_at"], last["b64_json"]) == ("high", "1x1", 6, PNG)
    assert last["usage"]["total_tokens"] == 0
