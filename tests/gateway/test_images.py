"""One request for images: planned, drawn once, and told like a run."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.house import Heard
from isthmus.bridge.images.answer import Drawn, Image, Partial
from isthmus.bridge.images.read import check_image_request
from isthmus.bridge.types.plan import Target
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.images import Images
from isthmus.gateway.runs import RunLimits, Runs
from isthmus.gateway.settings import Settings
from isthmus.ports import Ended, FirstToken, Planned, Sent
from isthmus.providers import load_provider
from isthmus.store.memory import MemoryStore
from isthmus.tools.images import Studio

MADE = Drawn((Image(base64="aaaa", kind="image/png"),), {}, {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3})


class Painter:
    async def draw(self, plan: Any, tell: Any, trail: Any = None, behalf: Any = None) -> Drawn:
        tell(Partial(0, MADE.images[0]))
        return MADE


def images(heard: Heard, studio: bool = True, strict: bool = False) -> Images:
    target = Target("openai", "gpt-image-2", load_provider("openai").capabilities())
    who = Studio(target, Painter(), visits=None) if studio else None  # type: ignore[arg-type]
    runs = Runs(MemoryStore(), "gw", RunLimits(), Aside())
    ids = lambda kind: f"{kind}_1"  # noqa: E731
    return Images(who, runs, Settings(strict=strict), now=lambda: 0.0, new_id=ids, observer=heard)


async def test_its_life_is_told_like_that_of_a_run() -> None:
    heard = Heard()
    told: list[Partial] = []
    asked = check_image_request("generate", {"prompt": "a fox"})
    drawing = await images(heard).create(Caller("ann"), asked, tell=told.append)
    assert await drawing.answer() == MADE
    assert len(told) == 1
    planned, sent, first, _, ended = heard.facts
    assert isinstance(planned, Planned)
    assert planned.asked == {"prompt": "a fox"}
    assert (type(sent), type(first), type(ended)) == (Sent, FirstToken, Ended)
    assert (ended.id, ended.owner, ended.model, ended.outcome) == ("img_1", "ann", "gpt-image-2", "completed")
    assert ended.usage == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


async def test_the_settings_say_how_strict_it_is_unless_the_request_does() -> None:
    asked = check_image_request("generate", {"prompt": "a", "model": "other"})
    with pytest.raises(RequestRefused):
        await images(Heard(), strict=True).create(Caller("ann"), asked)
    assert (await images(Heard(), strict=True).create(Caller("ann"), asked, strict=False)).plan.diagnostics


async def test_nobody_draws_where_nobody_was_chosen() -> None:
    with pytest.raises(RequestRefused) as refused:
        await images(Heard(), studio=False).create(Caller("ann"), check_image_request("generate", {"prompt": "a"}))
    assert refused.value.code == "images_not_supported"
