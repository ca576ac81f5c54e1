"""Images over HTTP: a plan in, what was drawn out, partial images on the way where they are streamed.

In: a backend and a plan. Out: `Drawn`, or `UpstreamFailed` with the provider's name and without our secrets. An image
that only has an address comes as one; whoever wants its bytes visits it (`visit`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from isthmus.bridge.images.answer import Drawn, Image, NotImages, Partial, read_image_event, read_images
from isthmus.bridge.images.plan import ImagePlan
from isthmus.bridge.images.write import write_images
from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.bridge.sse import SseParser
from isthmus.upstream.endpoint import IMAGE_EDITS, IMAGES
from isthmus.upstream.rate_limits import rate_limits
from isthmus.upstream.wire import Incoming

if TYPE_CHECKING:
    from isthmus.upstream.http import HttpBackend

_SSE: Final = "text/event-stream"
_DONE: Final = b"[DONE]"
TOO_LARGE: Final = "images_too_large"


async def draw(backend: HttpBackend, plan: ImagePlan, tell: Callable[[Partial], None], owner: str = "") -> Drawn:
    size = sum(len(each.data) for each in plan.images)
    kind, data = await backend.aside.do(lambda: write_images(plan), heavy=size > HEAVY_TEXT)
    elsewhere = plan.operation == "edit" and plan.facts.edits != "inline"
    incoming = await backend.wire.send(
        data, headers={"content-type": kind}, dialect=IMAGE_EDITS if elsewhere else IMAGES, owner=owner
    )
    try:
        if not incoming.ok:
            raise await backend.refusal(incoming, backend.wire.scrubber)
        backend.check_kind(incoming.kind)
        if incoming.kind == _SSE:
            return await _streamed(backend, incoming, plan, tell)
        return await _whole(backend, incoming, plan)
    except NotImages as error:
        # It was drawn, and is to be paid: nobody has it drawn again unasked.
        raise backend.wire.failed(str(error), spent=True) from error
    finally:
        incoming.close()


async def _whole(backend: HttpBackend, incoming: Incoming, plan: ImagePlan) -> Drawn:
    answer = await incoming.within(backend.limits.max_images)
    if answer is None:
        raise _too_large(backend)
    told = rate_limits(incoming.headers, backend.wire.scrubber)
    return await backend.aside.do(lambda: read_images(answer, plan, told), heavy=len(answer) > HEAVY_TEXT)


async def _streamed(
    backend: HttpBackend, incoming: Incoming, plan: ImagePlan, tell: Callable[[Partial], None]
) -> Drawn:
    most = backend.limits.max_images
    parser, size, partial = SseParser(most, backend.limits.max_values), 0, 0
    images: list[Image] = []
    last: Drawn | None = None
    allowed = plan.count * plan.body.get("partial_images", 0)
    while True:
        data = await incoming.read()
        size += len(data)
        if size > most:
            raise _too_large(backend)
        for event in parser.feed(data) if data else parser.end():
            found = read_image_event(event) if event != _DONE else None
            if isinstance(found, Drawn):
                images += found.images
                last = found
            elif found is not None and partial < allowed:  # nobody has asked for more
                partial += 1
                tell(found)
        if not data or len(images) >= plan.count:
            break
    if last is None:
        raise NotImages("ended its stream before the image was whole")
    told = rate_limits(incoming.headers, backend.wire.scrubber)
    return Drawn(tuple(images[: plan.count]), last.told, last.usage, told)


def _too_large(backend: HttpBackend) -> Exception:
    most = f"sent more than {backend.limits.max_images:,} bytes of images"
    return backend.wire.failed(f"{most} (`limits.max_images`); ask for fewer, or smaller ones", TOO_LARGE)
