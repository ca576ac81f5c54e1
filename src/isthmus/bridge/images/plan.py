"""Every field of a request for images meets the abilities of who draws, here, once.

In: a checked request, and the target that draws. Out: an `ImagePlan`, with one decision for each field. Worth knowing:
`auto` is what everybody does unasked, so it is never sent; a size that cannot be had becomes the one whose proportions
are nearest, and a quality the one that the provider's file says it means. What the client gets (`response_format`) is
our own affair: an image that comes as an address is fetched, and one that comes as bytes is given as a `data:` URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.capabilities import ImageSupport
from isthmus.bridge.diagnostics import (
    CompatibilityDecision,
    CompatibilityDiagnostic,
    CompatibilityPlan,
    apply_strict,
    refuse_rejected,
)
from isthmus.bridge.images.read import ImageRequest, Operation, Picture
from isthmus.bridge.resolve import nearest_name
from isthmus.bridge.types.plan import Target
from isthmus.protocol.json import JsonObject

_SIZE: Final = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")
_OWN: Final = ("model", "stream", "partial_images", "response_format")
_FIELDS: Final = (
    *("prompt", "model", "n", "size", "quality", "background", "output_format", "output_compression", "moderation"),
    *("response_format", "style", "user", "stream", "partial_images", "input_fidelity", "image", "mask"),
)


class ImagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decided about one request."""

    target: Target
    operation: Operation
    body: JsonObject
    """What is sent, without the images."""
    compatibility: CompatibilityPlan
    images: tuple[Picture, ...] = ()
    mask: Picture | None = None
    count: int = 1
    answers: Literal["url", "b64_json"] = "b64_json"
    """How the client gets them."""
    stream: bool = False
    """Whether partial images are asked for, and come."""

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        return self.compatibility.diagnostics

    @property
    def facts(self) -> ImageSupport:
        return self.target.capabilities.images


def plan_images(
    request: ImageRequest,
    target: Target,
    *,
    sizes: Sequence[str] = (),
    strict: bool = False,
    noted: Sequence[CompatibilityDecision] = (),
) -> ImagePlan:
    """Raises `RequestRefused` for what cannot be had. `sizes`: those that the operator allows; none: any."""
    facts, options = target.capabilities.images, request.options
    decided = (*noted, *_decide(request, target, [*sizes] or facts.sizes))
    decisions = apply_strict(decided, strict)
    refuse_rejected(decisions)
    sends = {name: value for decision in decisions for name, value in decision.sends.items()}
    body = {"model": target.model, "prompt": request.prompt, **sends}
    if facts.asked_format and facts.returns == "url":
        body["response_format"] = "b64_json" if options.get("response_format") != "url" else "url"
    return ImagePlan(
        target=target,
        operation=request.operation,
        body=body,
        compatibility=CompatibilityPlan(decisions),
        images=request.images,
        mask=request.mask if facts.mask else None,
        count=options.get("n", 1) if "n" in facts.fields else 1,
        answers=options.get("response_format", "b64_json"),
        stream="stream" in sends,
    )


def _decide(request: ImageRequest, target: Target, sizes: Sequence[str]) -> Iterator[CompatibilityDecision]:
    facts, options = target.capabilities.images, request.options
    yield from _decide_images(request, facts)
    named = options.get("model")
    if named is not None and named not in (target.model, f"{target.provider}/{target.model}"):
        words = f"images are drawn by `{target.provider}/{target.model}` here"
        yield CompatibilityDecision("model", "degraded", words, target.model)
    for name, value in options.items():
        if name in _OWN:
            continue
        if name == "size":
            yield _size(value, facts, sizes)
        elif name == "quality":
            yield _quality(value, facts)
        elif value == "auto" and name in ("background", "moderation"):
            yield CompatibilityDecision(name, "supported", "it is what is done unasked", value)
        elif name in facts.fields:
            yield _sent(name, value, facts)
        elif name == "n" and value == 1:
            yield CompatibilityDecision(name, "supported", "it is what is done unasked", value)
        elif name == "background" and value == "opaque":
            yield CompatibilityDecision(name, "supported", "it is all that is drawn there", value)
        elif name == "n":
            yield CompatibilityDecision(name, "rejected", "one image is drawn at a time there; ask several times")
        else:
            yield CompatibilityDecision(name, "ignored", _why(name))
    yield from _decide_telling(options, facts)


def _decide_images(request: ImageRequest, facts: ImageSupport) -> Iterator[CompatibilityDecision]:
    if request.operation == "edit" and not facts.edits:
        yield CompatibilityDecision("image", "rejected", "who draws here changes no images, and only draws new ones")
    elif len(request.images) > facts.max_inputs:
        words = f"{len(request.images)} images are given to one that takes {facts.max_inputs}; send fewer"
        yield CompatibilityDecision("image", "rejected", words)
    if request.mask is not None and not facts.mask:
        yield CompatibilityDecision("mask", "rejected", "who draws here knows no mask; say in words what shall change")


def _decide_telling(options: JsonObject, facts: ImageSupport) -> Iterator[CompatibilityDecision]:
    """How the client is told of them."""
    stream, partial = options.get("stream"), options.get("partial_images")
    if stream and not facts.stream:
        words = "who draws here tells nothing before the image is whole; leave `stream` out"
        yield CompatibilityDecision("stream", "rejected", words)
    elif stream:
        sends = {"stream": True, **({} if partial is None else {"partial_images": partial})}
        yield CompatibilityDecision("stream", "supported", "", True, sends)
    elif partial:
        yield CompatibilityDecision("partial_images", "ignored", "they are told in a stream only; send `stream: true`")
    if options.get("response_format") == "url" and facts.returns == "b64_json":
        words = "the image comes as bytes; its address is a `data:` URL"
        yield CompatibilityDecision("response_format", "degraded", words, "url")


def _sent(name: str, value: Any, facts: ImageSupport) -> CompatibilityDecision:
    to = facts.fields[name] or name
    return CompatibilityDecision(name, "supported", f"sent as `{to}`" if to != name else "", value, {to: value})


def _size(value: str, facts: ImageSupport, sizes: Sequence[str]) -> CompatibilityDecision:
    if value == "auto":
        return CompatibilityDecision("size", "supported", "it is what is done unasked", value)
    if "size" not in facts.fields:
        return CompatibilityDecision("size", "ignored", _why("size"))
    if not sizes or value in sizes:
        return _sent("size", value, facts)
    nearest = nearest_size(value, sizes)
    to = facts.fields["size"] or "size"
    words = f"`{value}` cannot be had; `{nearest}` has the nearest proportions"
    return CompatibilityDecision("size", "degraded", words, nearest, {to: nearest})


def nearest_size(asked: str, sizes: Sequence[str]) -> str:
    """The one whose proportions, then whose area, are nearest; the first one for what is no size."""
    wanted = _SIZE.fullmatch(asked)
    if wanted is None:
        return sizes[0]
    wide, high = int(wanted[1]), int(wanted[2])

    def distance(size: str) -> tuple[float, float]:
        found = _SIZE.fullmatch(size)
        if found is None:
            return (float("inf"), 0.0)
        width, height = int(found[1]), int(found[2])
        ratio = (wide * height) / (high * width)
        return (max(ratio, 1 / ratio), abs(wide * high - width * height))

    return min(sizes, key=distance)


def _quality(value: str, facts: ImageSupport) -> CompatibilityDecision:
    if value == "auto":
        return CompatibilityDecision("quality", "supported", "it is what is done unasked", value)
    if "quality" not in facts.fields:
        return CompatibilityDecision("quality", "ignored", _why("quality"))
    if not facts.quality or value in facts.quality.values():
        return _sent("quality", value, facts)
    meant = facts.quality.get(value)
    if meant is None:
        known = ", ".join(f"`{name}`" for name in facts.quality)
        return CompatibilityDecision("quality", "ignored", f"the provider knows no `{value}`; it knows {known}")
    return CompatibilityDecision("quality", "degraded", f"`{meant}` is the nearest", meant, {"quality": meant})


def _why(name: str) -> str:
    if name in _FIELDS:
        return "the provider has no counterpart for it"
    near = nearest_name(name, _FIELDS, likeness=0.8)
    return f"not a parameter of images{f'; did you mean `{near}`?' if near else ''}"
