"""Proofs for `[discovery]`: whether, how long and how often servers of this machine are looked for."""

from __future__ import annotations

import asyncio

from isthmus.config.load import Reading, load_config
from isthmus.testing import Answer, ScriptedUpstream
from isthmus.wiring_notice import Noticing
from local_servers import at, ollama
from settings.proving import Scene, proves


def _read(scene: Scene) -> Reading:
    """The file without its provider: where one is named, nobody looks."""
    file = scene.write()
    lines = [line for line in file.read_text().splitlines() if not line.startswith(("providers.", "models.demo"))]
    file.write_text("\n".join(lines))
    return load_config(file, environ={"HOME": str(scene.folder)})


@proves("discovery.local", "false")
async def nobody_is_looked_for(scene: Scene) -> None:
    async with ScriptedUpstream(routes=ollama("m")) as upstream:
        at(scene.folder, ollama=upstream.base_url)
        noticing = Noticing(_read(scene))
        await noticing.look()
        assert noticing.found == {}
        assert upstream.requests == []


@proves("discovery.within", "30")
async def a_slow_one_is_waited_for(scene: Scene) -> None:
    tags = ollama("m")["/api/tags"]
    assert isinstance(tags, Answer)
    slow = Answer(tags.parts, tags.status, tags.headers, before=(1.5,))
    async with ScriptedUpstream(routes={"/api/tags": slow}) as upstream:
        at(scene.folder, ollama=upstream.base_url)
        noticing = Noticing(_read(scene))
        await noticing.look()
        assert noticing.found == {"ollama": "m"}


@proves("discovery.every", "0.01")
async def it_is_looked_for_again_soon(scene: Scene) -> None:
    async with ScriptedUpstream(routes=ollama("m")) as upstream:
        at(scene.folder, ollama=upstream.base_url)
        noticing, changed = Noticing(_read(scene)), asyncio.Event()
        looking = asyncio.create_task(noticing.keep_looking(changed.set))
        await asyncio.wait([asyncio.ensure_future(changed.wait())], timeout=3.0 if scene.forgotten else 60.0)
        looking.cancel()
        assert changed.is_set()
