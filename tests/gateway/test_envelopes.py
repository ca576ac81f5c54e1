"""What a client carries for us opens for its owner, in whatever conversation, and for nobody else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec

from gateway.house import Upstream, make_gateway, start
from isthmus.bridge.deltas import Reasoning, Text
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.store.memory import MemoryStore

ASKED: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}


async def ask(gateway: Gateway, upstream: Upstream, owner: str, items: list[Any]) -> Any:
    run = await start(gateway, Caller(owner), input=items, **ASKED)

    async def read() -> Any:
        return [event async for batch in run.events() for event in batch][-1]

    reading = asyncio.create_task(read())
    while not upstream.open:  # noqa: ASYNC110
        await asyncio.sleep(0)
    upstream.open[-1].say(Reasoning("a thought"), Text("words"))
    upstream.open[-1].end()
    last = await reading
    return last["response"] if isinstance(last, dict) else msgspec.json.decode(last)["response"]


def test_an_envelope_opens_for_its_owner_in_any_conversation_and_for_no_other() -> None:
    async def main() -> None:
        upstream = Upstream()
        gateway = make_gateway(MemoryStore(), upstream)
        gateway.settings = replace(gateway.settings, envelope_key=b"k" * 32)
        first = await ask(gateway, upstream, "ann", [{"role": "user", "content": "hi"}])
        assert first["output"][0]["encrypted_content"].startswith("isth2.")
        carried = [*first["output"], {"role": "user", "content": "go on"}]
        told = {}
        for owner in ("ann", "bob"):  # neither names the response that it came from: a fork, a resumed session
            answer = await ask(gateway, upstream, owner, carried)
            told[owner] = [said["path"] for said in answer["isthmus"]["diagnostics"]]
        assert "input[0].encrypted_content" not in told["ann"]
        assert "input[0].encrypted_content" in told["bob"]
        await gateway.aclose()

    asyncio.run(main())
