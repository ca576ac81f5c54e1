"""Images over the wire: whole and streamed, within a size, and never drawn twice for one request."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from isthmus.bridge.images.answer import Drawn, Partial
from isthmus.bridge.images.plan import ImagePlan, plan_images
from isthmus.bridge.images.read import Picture, check_image_request
from isthmus.bridge.limits import AnswerLimits
from isthmus.bridge.types.plan import Target
from isthmus.errors import UpstreamFailed
from isthmus.providers import load_provider
from isthmus.testing import ScriptedUpstream, Step, error, reply, stream
from isthmus.upstream.endpoint import IMAGE_EDITS, IMAGES, Elsewhere, Endpoint
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.pool import PooledBackend
from isthmus.upstream.retry import RetryingBackend, RetryRule

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 60).decode()
GOOD = reply({"data": [{"b64_json": PNG}]})


def plan(provider: str = "openai", images: int = 0, **options: Any) -> ImagePlan:
    facts = load_provider(provider).capabilities()
    target = Target(provider, facts.images.models[0], facts)
    given = [Picture(b"\x89PNG\r\n\x1a\n")] * images
    return plan_images(check_image_request("edit" if images else "generate", {"prompt": "a", **options}, given), target)


def backend(upstream: ScriptedUpstream, most: int = 10_000) -> HttpBackend:
    others = {IMAGES: Elsewhere(f"{upstream.url}/draw"), IMAGE_EDITS: Elsewhere(f"{upstream.url}/change")}
    endpoint = Endpoint("main", f"{upstream.url}/chat", {"authorization": "Bearer sk-very-secret"}, others=others)
    return HttpBackend(endpoint, limits=AnswerLimits(max_images=most))


async def draw(steps: list[Step], asked: ImagePlan, most: int = 10_000) -> tuple[Drawn, list[Partial], list[str]]:
    told: list[Partial] = []
    async with ScriptedUpstream(steps) as upstream:
        made = backend(upstream, most)
        try:
            drawn = await made.draw(asked, told.append)
        finally:
            await made.aclose()
    return drawn, told, [request.target for request in upstream.requests]


@pytest.mark.parametrize(
    ("asked", "target"),
    [(plan(), "/draw"), (plan(images=1), "/change"), (plan("volcengine", images=1), "/draw")],
    ids=["drawn", "changed", "changed where it is drawn"],
)
async def test_each_operation_has_its_place(asked: ImagePlan, target: str) -> None:
    drawn, _, targets = await draw([GOOD], asked)
    assert drawn.images[0].base64 == PNG
    assert targets == [target]


def events(*kinds: str) -> Step:
    made = [{"type": f"image_generation.{kind}", "b64_json": PNG, "partial_image_index": 0} for kind in kinds]
    return stream(made, done=False)


async def test_partial_images_are_told_as_often_as_they_were_asked_for() -> None:
    asked = plan(stream=True, partial_images=1)
    drawn, told, _ = await draw([events("partial_image", "partial_image", "completed")], asked)
    assert len(told) == 1
    assert drawn.images[0].base64 == PNG


async def test_a_server_that_streams_nothing_is_taken_whole() -> None:
    drawn, told, _ = await draw([GOOD], plan(stream=True, partial_images=3))
    assert (len(drawn.images), told) == (1, [])


@pytest.mark.parametrize("step", [GOOD, events("partial_image", "completed")], ids=["whole", "streamed"])
async def test_what_is_too_large_is_not_read_to_its_end(step: Step) -> None:
    with pytest.raises(UpstreamFailed, match="sent more than 50 bytes of images") as failed:
        await draw([step], plan(stream=True), most=50)
    assert (failed.value.code, failed.value.retryable) == ("images_too_large", False)


@pytest.mark.parametrize("step", [reply({"data": []}), events("partial_image")], ids=["nothing", "cut"])
async def test_what_was_drawn_in_vain_is_not_drawn_again(step: Step) -> None:
    """It was paid for; a refusal was not."""
    async with ScriptedUpstream([error(503), step], strict=False) as upstream:

        async def at_once(_: float) -> None: ...

        inner = PooledBackend([backend(upstream), backend(upstream)])
        made = RetryingBackend(inner, RetryRule(retries=3), sleep=at_once)
        with pytest.raises(UpstreamFailed):
            await made.draw(plan(stream=True, partial_images=1), lambda _: None)
        await made.aclose()
    assert len(upstream.requests) == 2


async def test_a_refusal_is_told_without_our_key() -> None:
    with pytest.raises(UpstreamFailed) as failed:
        await draw([error(400, "the key sk-very-secret draws no such thing")], plan())
    assert failed.value.code == "invalid_prompt"
    assert "sk-very-secret" not in failed.value.message
    assert msgspec.json.encode(failed.value.metadata).find(b"sk-very-secret") < 0
