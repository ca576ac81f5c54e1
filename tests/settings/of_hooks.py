"""Proofs for `[hooks]`."""

from __future__ import annotations

import asyncio
import time

from isthmus.errors import IsthmusError
from isthmus.testing import ScriptedUpstream, chat
from settings.proving import Scene, ask, proves, refusal

UP = {"providers.main.base_url": '"@UPSTREAM@"'}
MARK = "class Mark:\n    def before_send(self, body, sending, context):\n        return {**body, 'user': 'marked'}\n"
SLOW = "import time\nclass Slow:\n    def before_send(self, body, sending, context):\n        time.sleep(0.7)\n"
FAILS = "class Fails:\n    def before_send(self, body, sending, context):\n        raise ValueError\n"


async def _marked(scene: Scene) -> bool:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        try:
            async with scene.gateway(UP, UPSTREAM=upstream.base_url) as gateway:
                await ask(gateway)
        except IsthmusError as refused:
            raise AssertionError("it cannot be loaded") from refused
        return upstream.requests[0].json.get("user") == "marked"


@proves("hooks.uses", '["marks.py:Mark"]')
async def it_is_asked(scene: Scene) -> None:
    (scene.folder / "marks.py").write_text(MARK)
    assert await _marked(scene)


@proves("hooks.folder", '"elsewhere"', beside={"hooks.uses": '["marks.py:Mark"]'})
async def it_is_found_there(scene: Scene) -> None:
    (scene.folder / "elsewhere").mkdir(exist_ok=True)
    (scene.folder / "elsewhere" / "marks.py").write_text(MARK)
    assert await _marked(scene)


@proves("hooks.timeout", '"100ms"', beside={"hooks.uses": '["slow.py:Slow"]'})
async def it_may_take_no_longer(scene: Scene) -> None:
    (scene.folder / "slow.py").write_text(SLOW)
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UP, UPSTREAM=upstream.base_url) as gateway:
            assert "`hooks.timeout` (0.1 s)" in (await refusal(ask(gateway))).message


@proves("hooks.at_once", "1", beside={"hooks.uses": '["slow.py:Slow"]'})
async def the_second_waits_for_the_first(scene: Scene) -> None:
    (scene.folder / "slow.py").write_text(SLOW)
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UP, UPSTREAM=upstream.base_url) as gateway:
            began = time.monotonic()
            asking = [asyncio.create_task(ask(gateway)) for _ in range(3)]
            await asyncio.gather(*asking)
            assert time.monotonic() - began > 2.0


@proves("hooks.on_failure", '"skip"', beside={"hooks.uses": '["fails.py:Fails"]'})
async def the_request_goes_on_without_it(scene: Scene) -> None:
    (scene.folder / "fails.py").write_text(FAILS)
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.gateway(UP, UPSTREAM=upstream.base_url) as gateway:
            try:
                assert (await ask(gateway))["isthmus"]["diagnostics"][0]["code"] == "bridge.hook.skipped"
            except IsthmusError as refused:
                raise AssertionError("it was refused") from refused
