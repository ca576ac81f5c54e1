"""Who draws images, and the tool `image_generation` that models call.

In: requests for images, or a model's call. Out: what was drawn. Worth knowing: there are no fallbacks, and no other
model draws than the operator's: a picture costs as much as a long conversation. So many are drawn at the same time,
whoever asks. A call that fails is a result that the model reads; nothing is raised to the run.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.images.answer import Drawn, Image, NotImages, Partial, checked
from isthmus.bridge.images.plan import ImagePlan, plan_images
from isthmus.bridge.images.read import ImageRequest, Picture, check_image_request, read_picture
from isthmus.bridge.resolve import split_reference
from isthmus.bridge.tools.pictures import image_made
from isthmus.bridge.types.managed import PICTURES, Managed, ManagedCall, ManagedKind, Ran
from isthmus.bridge.types.plan import Target
from isthmus.errors import IsthmusError, RequestRefused, UpstreamFailed
from isthmus.ports import OURS, Again, Behalf, Drawer, Visits
from isthmus.ports.tools import Tell, ToolRunner
from isthmus.protocol.json import JsonObject

_OPTIONS: Final = (
    *("model", "size", "quality", "background", "output_format", "output_compression", "moderation", "input_fidelity"),
)
"""Of the tool's declaration: they mean what they mean in a request for images."""


_KNOWN: Final = {
    "background": ("transparent", "opaque", "auto"),
    "output_format": ("png", "webp", "jpeg"),
    "quality": ("low", "medium", "high", "auto"),
}


class Studio:
    """Who draws, and for how many at a time."""

    def __init__(
        self,
        target: Target,
        drawer: Drawer,
        visits: Visits,
        *,
        timeout: float = 300.0,
        at_once: int = 8,
        max_image: int = 20_000_000,
        max_answer: int = 64_000_000,
        sizes: Sequence[str] = (),
    ) -> None:
        """`target`: the usual model. `max_image`: bytes of one image that is to be changed. `max_answer`: bytes of one
        that is fetched. `sizes`: those that may be asked for; none: any."""
        self.target = target
        self.timeout = timeout
        self.max_image = max_image
        self.drawer = drawer
        self._visits = visits
        self._max_answer = max_answer
        self._sizes = sizes
        self._places = asyncio.Semaphore(at_once)

    def plan(
        self, request: ImageRequest, *, strict: bool = False, noted: Sequence[CompatibilityDecision] = ()
    ) -> ImagePlan:
        """Raises `RequestRefused`. A model of who draws can be named in full; every other name means the usual one,
        and the plan says so."""
        self._check_sizes(request)
        asked = request.options.get("model")
        sides = split_reference(asked) if asked else None
        target = self.target
        if sides is not None and sides[0] == target.provider:
            target = Target(sides[0], sides[1], target.capabilities)
        return plan_images(request, target, sizes=self._sizes, strict=strict, noted=noted)

    async def draw(
        self,
        plan: ImagePlan,
        tell: Callable[[Partial], None],
        trail: list[Again] | None = None,
        behalf: Behalf = OURS,
    ) -> Drawn:
        """Raises `UpstreamFailed`."""
        async with self._places:
            drawn = await self.drawer.draw(plan, tell, trail, behalf)
            if plan.answers == "url" or all(image.base64 for image in drawn.images):
                return drawn
            images = [image if image.base64 else await self._fetch(image) for image in drawn.images]
            return msgspec.structs.replace(drawn, images=tuple(images))

    async def _fetch(self, image: Image) -> Image:
        data = await self._visits.fetch(image.url, most=self._max_answer)
        text = b64encode(data).decode()
        try:
            return msgspec.structs.replace(image, base64=text, kind=checked(text))
        except NotImages as error:
            provider = self.target.provider
            raise UpstreamFailed(f"provider `{provider}` {error}", metadata={"provider": provider}) from error

    def _check_sizes(self, request: ImageRequest) -> None:
        for index, image in enumerate((*request.images, *([request.mask] if request.mask is not None else ()))):
            if len(image.data) > self.max_image:
                path = f"image[{index}]" if index < len(request.images) else "mask"
                words = f"`{path}` has more than {self.max_image:,} bytes, the limit `images.max_image`"
                raise RequestRefused(f"{words}; send a smaller one", code="request_too_large", param=path)


class ImageTool:
    """`image_generation`, for as long as the gateway runs."""

    kind: ManagedKind = "image_generation"

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        return self.foresee(managed, tools, items)

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        target = self._studio.target
        facts = target.capabilities.images
        lost = tuple(dict.fromkeys(name for tool in tools for name in self._lost(tool)))
        who, edits = f"{target.provider}/{target.model}", facts.max_inputs if facts.edits else 0
        return msgspec.structs.replace(managed, images=who, edits=edits, lost=lost)

    def runner(self, behalf: Behalf) -> ToolRunner:
        return ImageRunner(self._studio, behalf)

    async def aclose(self) -> None: ...

    def _lost(self, tool: JsonObject) -> Iterator[str]:
        """Options of a declaration that are not as they were asked for."""
        facts = self._studio.target.capabilities.images
        options = {name: tool[name] for name in _OPTIONS if tool.get(name) is not None}
        try:
            plan = self._studio.plan(check_image_request("generate", {"prompt": "x", **options}))
        except RequestRefused as refused:
            yield refused.param or "image_generation"
            return
        yield from (said.path for said in plan.diagnostics)
        if tool.get("partial_images") and not facts.stream:
            yield "partial_images"
        if tool.get("action") == "edit" and not facts.edits:
            yield "action"
        if tool.get("input_image_mask") is not None and not (facts.edits and facts.mask):
            yield "input_image_mask"


class ImageRunner:
    """Carries out a model's call. One that changes an image is handed those of the conversation with it."""

    def __init__(self, studio: Studio, behalf: Behalf = OURS) -> None:
        self._studio = studio
        self._behalf = behalf
        self.patience = studio.timeout

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        def hear(partial: Partial) -> None:
            fields = {"partial_image_index": partial.index, "partial_image_b64": partial.image.base64}
            tell("partial_image", {**fields, **_told(partial.told)})

        try:
            plan = self._studio.plan(self._request(call))
            drawn = await self._studio.draw(plan, hear, None, self._behalf)
        except IsthmusError as failure:
            return _failed(failure)
        image = drawn.images[0]
        fields = {"result": image.base64, "action": plan.operation, **_told(drawn.told)}
        return Ran(image_made(image.base64), fields, usage=drawn.usage or {})

    def _request(self, call: ManagedCall) -> ImageRequest:
        tool, prompt = call.tool, call.arguments.get("prompt")
        options: JsonObject = {name: tool[name] for name in _OPTIONS if tool.get(name) is not None}
        facts = self._studio.target.capabilities.images
        if facts.stream and tool.get("partial_images"):
            options |= {"stream": True, "partial_images": tool["partial_images"]}
        given: Sequence[str] = tool.get(PICTURES) or () if _changes(call) else ()
        images = [read_picture(url, "image") for url in given]
        mask = _mask(tool) if images and facts.mask else None
        return check_image_request("edit" if images else "generate", {**options, "prompt": prompt}, images, mask)


def _changes(call: ManagedCall) -> bool:
    action = call.tool.get("action")
    return action == "edit" or (action != "generate" and call.arguments.get("change") is True)


def _mask(tool: JsonObject) -> Picture | None:
    given = tool.get("input_image_mask")
    url = given.get("image_url") if isinstance(given, dict) else None
    return read_picture(url, "input_image_mask.image_url") if isinstance(url, str) else None


def _told(told: Mapping[str, Any]) -> JsonObject:
    """What is said of an image, in words that clients know."""
    return {name: value for name, value in told.items() if value in _KNOWN.get(name, (value,))}


def _failed(failure: IsthmusError) -> Ran:
    kind = "image_generation_user_error" if failure.meaning.status < 500 else "image_generation_server_error"
    error = {"type": kind, "code": failure.code, "message": failure.message, "param": None}
    return Ran(f"[no image was made: {failure.message}]", {"error": error}, failed=True)
