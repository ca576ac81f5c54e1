"""A plan → the bytes that who draws is sent: JSON, or a form where images go along."""

from __future__ import annotations

from base64 import b64encode

import msgspec

from isthmus.bridge.images.form import Part, write_form
from isthmus.bridge.images.plan import ImagePlan
from isthmus.bridge.images.read import Picture
from isthmus.protocol.json import JsonObject

JSON = "application/json"


def write_images(plan: ImagePlan) -> tuple[str, bytes]:
    """The content type, and the body."""
    if plan.operation == "generate":
        return JSON, msgspec.json.encode(plan.body)
    match plan.facts.edits:
        case "json":
            images: JsonObject = {"images": [{"image_url": data_url(each)} for each in plan.images]}
            mask: JsonObject = {"mask": {"image_url": data_url(plan.mask)}} if plan.mask is not None else {}
            return JSON, msgspec.json.encode({**plan.body, **images, **mask})
        case "inline":
            urls = [data_url(each) for each in plan.images]
            return JSON, msgspec.json.encode({**plan.body, "image": urls[0] if len(urls) == 1 else urls})
    # One is `image`, several are `image[]`: so it is documented, and so SDKs send it.
    name = "image" if len(plan.images) == 1 else "image[]"
    parts = [Part(field, _text(value)) for field, value in plan.body.items()]
    parts += [Part(name, each.data, each.kind, each.filename) for each in plan.images]
    if plan.mask is not None:
        parts.append(Part("mask", plan.mask.data, plan.mask.kind, plan.mask.filename))
    return write_form(parts)


def data_url(picture: Picture) -> str:
    return f"data:{picture.kind};base64,{b64encode(picture.data).decode()}"


def _text(value: object) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return str(value).encode()
