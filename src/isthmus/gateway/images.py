"""Images for clients that ask for them; for models that do, see `tools.images`, where it stands who draws.

In: a checked request. Out: a `Drawing` to be awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.images.answer import Drawn, Partial
from isthmus.bridge.images.plan import ImagePlan
from isthmus.bridge.images.read import ImageRequest, check_image_request
from isthmus.conduct.life import Life
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.gates import NO_GATES, Gates
from isthmus.gateway.hooked import before_once, before_sending_once
from isthmus.gateway.once import Once
from isthmus.gateway.planned import tell_planned
from isthmus.gateway.runs import Runs
from isthmus.gateway.scopes import check_target
from isthmus.gateway.settings import Settings
from isthmus.hooks.hooked import Hooked, Hooks
from isthmus.ports import Observer, key_for
from isthmus.protocol.json import JsonObject
from isthmus.tools.images import Studio

Drawing = Once[ImagePlan, Drawn]


class Images:
    def __init__(
        self,
        studio: Studio | None,
        runs: Runs,
        settings: Settings,
        *,
        now: Callable[[], float],
        new_id: Callable[[str], str],
        observer: Observer | None = None,
        gates: Gates = NO_GATES,
        hooks: Hooks | None = None,
    ) -> None:
        self.studio = studio
        self._runs = runs
        self._settings = settings
        self._now = now
        self._new_id = new_id
        self._observer = observer
        self._gates = gates
        self._hooks = hooks

    async def create(
        self,
        caller: Caller,
        request: ImageRequest,
        *,
        strict: bool | None = None,
        noted: Sequence[CompatibilityDecision] = (),
        tell: Callable[[Partial], None] = lambda _: None,
    ) -> Drawing:
        """Plan it; nothing is sent before it is awaited. `tell` hears of images that are still being drawn."""
        began, studio = self._now(), self.studio
        if studio is None:
            words = "nobody draws images here; the operator can choose somebody with `[images]` in the configuration"
            raise RequestRefused(words, code="images_not_supported")
        id, hooked = self._new_id("img"), None
        if self._hooks is not None:
            hooked, request, noted = await _before_plan(self._hooks, caller, request, noted, id)
        plan = studio.plan(request, strict=self._settings.strict if strict is None else strict, noted=noted)
        check_target(caller, plan.target)
        if hooked is not None:
            plan = await before_sending_once(hooked, plan)
        life = Life(id, caller.owner, self._now, self._observer)
        drawing: Drawing

        def hear(partial: Partial) -> None:
            drawing.spoke()
            tell(partial)

        drawing = Drawing(
            id,
            plan,
            lambda trail: studio.draw(plan, hear, trail, caller.behalf),
            what="the images",
            usage=_usage,
            life=life,
            runs=self._runs,
            total_timeout=studio.timeout,
            gate=self._gates.of_once(caller, plan.target.model, plan, {"prompt": request.prompt}),
            key=key_for(studio.drawer, caller.behalf),
        )
        asked = {"prompt": request.prompt, **request.options}
        tell_planned(self._observer, caller, drawing, asked, (), 0, began, self._now())
        return drawing


async def _before_plan(
    hooks: Hooks, caller: Caller, request: ImageRequest, noted: Sequence[CompatibilityDecision], id: str
) -> tuple[Hooked, ImageRequest, Sequence[CompatibilityDecision]]:
    """Hooks see what is asked for, not the images themselves."""

    def read(body: JsonObject) -> ImageRequest:
        return check_image_request(request.operation, body, request.images, request.mask)

    asked = {"prompt": request.prompt, **request.options}
    hooked, body, decisions = await before_once(hooks, caller, "images", id, asked, read)
    return hooked, request if body is None else read(body), (*noted, *decisions)


def _usage(drawn: Drawn) -> Mapping[str, Any]:
    """As runs tell theirs; a provider that counts nothing has used nothing that could be told."""
    told = drawn.usage or {}
    return {name: told.get(name, 0) for name in ("input_tokens", "output_tokens", "total_tokens")}
