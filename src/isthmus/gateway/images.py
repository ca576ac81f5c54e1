"""Images: drawn by the one whom the operator has chosen, for clients that ask for them and for models that do.

In: a checked request. Out: a `Drawing` to be awaited. Worth knowing: there are no fallbacks, and no other model draws
than the operator's: a picture costs as much as a long conversation. So many are drawn at the same time, whoever asks.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.images.answer import Drawn, Image, NotImages, Partial, checked
from isthmus.bridge.images.plan import ImagePlan, plan_images
from isthmus.bridge.images.read import ImageRequest
from isthmus.bridge.resolve import split_reference
from isthmus.bridge.types.plan import Target
from isthmus.conduct.life import Life
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.gateway.caller import Caller
from isthmus.gateway.once import Once
from isthmus.gateway.runs import Runs
from isthmus.gateway.settings import Settings
from isthmus.ports import Drawer, Observer, Visits

Drawing = Once[ImagePlan, Drawn]


@dataclass(frozen=True, slots=True)
class Studio:
    """Who draws."""

    target: Target
    """The usual model."""
    drawer: Drawer
    visits: Visits
    """Who fetches an image that only has an address."""
    timeout: float = 300.0
    at_once: int = 8
    max_image: int = 20_000_000
    """Bytes of one image that is to be changed."""
    sizes: Sequence[str] = ()
    """Those that may be asked for; none: any."""


class Images:
    def __init__(
        self,
        studio: Studio | None,
        runs: Runs,
        settings: Settings,
        *,
        now: Callable[[], float],
        new_id: Callable[[str], str],
        max_answer: int,
        observer: Observer | None = None,
    ) -> None:
        self.studio = studio
        self._runs = runs
        self._settings = settings
        self._now = now
        self._new_id = new_id
        self._max_answer = max_answer
        self._observer = observer
        self._places = asyncio.Semaphore(studio.at_once if studio is not None else 1)

    def create(
        self,
        caller: Caller,
        request: ImageRequest,
        *,
        strict: bool | None = None,
        noted: Sequence[CompatibilityDecision] = (),
        tell: Callable[[Partial], None] = lambda _: None,
    ) -> Drawing:
        """Plan it; nothing is sent before it is awaited. `tell` hears of images that are still being drawn."""
        studio = self.studio
        if studio is None:
            words = "nobody draws images here; the operator can choose somebody with `[images]` in the configuration"
            raise RequestRefused(words, code="images_not_supported")
        _check_sizes(request, studio.max_image)
        plan = plan_images(
            request,
            _target(studio, request.options.get("model")),
            sizes=studio.sizes,
            strict=self._settings.strict if strict is None else strict,
            noted=noted,
        )
        id = self._new_id("img")
        life = Life(id, caller.owner, self._now, self._observer)
        drawing: Drawing

        def hear(partial: Partial) -> None:
            drawing.spoke()
            tell(partial)

        drawing = Drawing(
            id,
            plan,
            lambda: self._draw(studio, plan, hear),
            what="the images",
            usage=_usage,
            life=life,
            runs=self._runs,
            total_timeout=studio.timeout,
        )
        return drawing

    async def _draw(self, studio: Studio, plan: ImagePlan, tell: Callable[[Partial], None]) -> Drawn:
        async with self._places:
            drawn = await studio.drawer.draw(plan, tell)
            if plan.answers == "url" or all(image.base64 for image in drawn.images):
                return drawn
            images = [image if image.base64 else await self._fetch(studio, image) for image in drawn.images]
            return msgspec.structs.replace(drawn, images=tuple(images))

    async def _fetch(self, studio: Studio, image: Image) -> Image:
        data = await studio.visits.fetch(image.url, most=self._max_answer)
        text = b64encode(data).decode()
        try:
            return msgspec.structs.replace(image, base64=text, kind=checked(text))
        except NotImages as error:
            provider = studio.target.provider
            raise UpstreamFailed(f"provider `{provider}` {error}", metadata={"provider": provider}) from error


def _target(studio: Studio, asked: str | None) -> Target:
    """A model of who draws can be named in full; every other name means the usual one, and the plan says so."""
    sides = split_reference(asked) if asked else None
    if sides is None or sides[0] != studio.target.provider:
        return studio.target
    return Target(sides[0], sides[1], studio.target.capabilities)


def _check_sizes(request: ImageRequest, most: int) -> None:
    for index, image in enumerate((*request.images, *([request.mask] if request.mask is not None else ()))):
        if len(image.data) > most:
            path = f"image[{index}]" if index < len(request.images) else "mask"
            words = f"`{path}` has more than {most:,} bytes, the limit `images.max_image`; send a smaller one"
            raise RequestRefused(words, code="request_too_large", param=path)


def _usage(drawn: Drawn) -> Mapping[str, Any]:
    """As runs tell theirs; a provider that counts nothing has used nothing that could be told."""
    told = drawn.usage or {}
    return {name: told.get(name, 0) for name in ("input_tokens", "output_tokens", "total_tokens")}
