"""Proofs for `[images]`: who draws, with which key and model, how large, how many at a time and for how long."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

from isthmus.errors import ConfigError
from isthmus.testing import Gate, RecordedRequest, ScriptedUpstream, reply
from own_time import turns
from settings.proving import Scene, Served, proves

PNG = b64encode(b"\x89PNG\r\n\x1a\n").decode()
GOOD = reply({"data": [{"b64_json": PNG}]})
MAIN = {"providers.main.base_url": '"@UPSTREAM@"', "images.provider": '"main"', "images.model": '"painter"'}
OWN = {"images.url": '"@UPSTREAM@"', "images.model": '"painter"', "images.api_key": '"sk-of-the-images"'}
GENERATIONS = "/v1/images/generations"
ASKED = {"prompt": "a fox", "size": "512x512"}


async def _sent(scene: Scene, beside: Any, body: Any = None, path: str = GENERATIONS) -> RecordedRequest:
    """What who draws was asked."""
    with ScriptedUpstream.running(default=GOOD) as upstream:
        try:
            async with scene.served(beside, UPSTREAM=upstream.base_url) as server:
                await server.status("POST", path, body or ASKED)
        except ConfigError as refused:
            raise AssertionError("it was refused") from refused
        assert upstream.requests, "nobody was asked"
        return upstream.requests[-1]


@proves("images.provider", '"main"')
async def this_provider_draws(scene: Scene) -> None:
    assert (await _sent(scene, {**MAIN, "images.provider": '""'})).target == GENERATIONS


@proves("images.url", '"@UPSTREAM@"')
async def it_is_drawn_there(scene: Scene) -> None:
    scene.monkeypatch.setenv("NO_PROXY", "*")
    assert (await _sent(scene, {**OWN, "images.url": '""', "images.api_key": '""'})).target == GENERATIONS


@proves("images.api_key", '"sk-another-one"', instead='"sk-of-nobody"')
async def it_is_shown_there(scene: Scene) -> None:
    assert (await _sent(scene, OWN)).headers["authorization"] == "Bearer sk-another-one"


@proves("images.api_key_file", '"the-key"')
async def what_stands_in_the_file_is_shown(scene: Scene) -> None:
    (scene.folder / "the-key").write_text("sk-from-the-file\n")
    sent = await _sent(scene, {**OWN, "images.api_key": '""'})
    assert sent.headers.get("authorization") == "Bearer sk-from-the-file"


@proves("images.model", '"another-painter"', instead='"painter"')
async def this_model_draws(scene: Scene) -> None:
    assert (await _sent(scene, MAIN)).json["model"] == "another-painter"


@proves("images.sizes", '["1024x1024"]')
async def other_sizes_become_this_one(scene: Scene) -> None:
    assert (await _sent(scene, MAIN)).json["size"] == "1024x1024"


@proves("images.timeout", "0.05")
async def it_has_so_long(scene: Scene) -> None:
    gate = Gate()
    with ScriptedUpstream.running(default=reply({}, after=gate), strict=False) as upstream:
        async with scene.served(MAIN, UPSTREAM=upstream.base_url) as server:
            studio = server.gateway.images.studio
            assert studio is not None
            assert studio.timeout == 0.05
            assert await server.status("POST", GENERATIONS, ASKED) == 504
        gate.open()


@proves("images.at_once", "1")
async def others_wait_for_their_turn(scene: Scene) -> None:
    gate = Gate()
    with ScriptedUpstream.running(default=reply({"data": [{"b64_json": PNG}]}, after=gate)) as upstream:
        async with scene.served(MAIN, UPSTREAM=upstream.base_url) as server:
            both = [asyncio.create_task(server.status("POST", GENERATIONS, ASKED)) for _ in range(2)]
            await upstream.received(1)
            try:
                assert await _stays(upstream, server), "both were asked for at once"
            finally:
                gate.open()
                assert await asyncio.gather(*both) == [200, 200]


async def _stays(upstream: ScriptedUpstream, server: Served) -> bool:
    """Whether a second request is kept back: the place is taken, and somebody waits for it."""
    studio = server.gateway.images.studio
    assert studio is not None
    for _ in range(2000):
        if len(upstream.requests) > 1:
            return False
        if studio._places._waiters:
            return True
        await turns()
    return False


@proves("images.max_image", "20")
async def a_larger_image_is_refused(scene: Scene) -> None:
    picture = b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 20).decode()
    body = {"prompt": "bluer", "images": [{"image_url": f"data:image/png;base64,{picture}"}]}
    with ScriptedUpstream.running(default=GOOD) as upstream:
        async with scene.served(OWN, UPSTREAM=upstream.base_url) as server:
            assert await server.status("POST", "/v1/images/edits", body) == 400


@proves("limits.max_images", "100")
async def a_longer_answer_is_a_failure(scene: Scene) -> None:
    long = b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 100).decode()
    with ScriptedUpstream.running(default=reply({"data": [{"b64_json": long}]})) as upstream:
        async with scene.served(MAIN, UPSTREAM=upstream.base_url) as server:
            assert await server.status("POST", GENERATIONS, ASKED) == 502
