"""What providers did to the gateway: answers without end, in thousands of pieces, or with words that are not theirs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from bench.robustness.attack_scene import SECRET, Scene, ended_once
from bench.robustness.upstream import Call, delta


async def secrets(scene: Scene) -> str:
    """R3, R4: a key in a query and in an upstream's words reaches nobody."""

    async def echo(call: Call) -> None:
        said = json.dumps({"error": {"message": f"what is this key {SECRET}, or ?code={SECRET}"}}).encode()
        status = b"400 Bad Request" if call.words == "echo 400" else b"500 Oops"
        await call.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(said), said))

    scene.deeds |= {"echo 400": echo, "echo 500": echo}
    told = b""
    for model, words in (("gone/model", "hi"), ("up/model", "echo 400"), ("up/model", "echo 500")):
        for streamed in (False, True):
            told += (await scene.post({"model": model, "input": words, "stream": streamed})).body
    scene.expect(SECRET.encode() not in told, "a client was told the key")
    scene.expect(SECRET not in scene.gateway.log.read_text(), "the log shows the key")
    return "silent" if SECRET.encode() not in told else "told"


async def fragments(scene: Scene) -> str:
    """R5: thousands of pieces of calls, each with an id of its own."""
    count = 500 if scene.small else 3_000

    async def piecemeal(call: Call) -> None:
        await call.begin()
        for number in range(count):
            function = {"name": "f", "arguments": "[" * 8}
            fragment = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            await call.say(delta(tool_calls=[fragment]))
        await call.end()

    scene.deeds["piecemeal"] = piecemeal
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    reply = await scene.post({"input": "piecemeal", "stream": True, "tools": [tool]})
    status = ended_once(reply)
    scene.expect(" " not in status, f"{count} fragments: {status}")
    return f"{count} fragments: {status}"


async def endless(scene: Scene) -> str:
    """R6: one event that never ends, and reasoning that never ends."""
    most = 40_000_000 if scene.small else 400_000_000
    sent: dict[str, int] = {}

    def without_end(name: str, piece: bytes) -> Any:
        async def deed(call: Call) -> None:
            await call.begin()
            while call.sent < most:
                sent[name] = call.sent
                await call.say(piece)
            await call.end()

        return deed

    scene.deeds["one event"] = without_end("one event", b"data: " + b"x" * 65_000 + b"\n")
    scene.deeds["reasoning"] = without_end("reasoning", delta(reasoning_content="thinking " * 800) * 4)
    scene.deeds["tiny"] = without_end("tiny", delta("x") * 100)
    said = []
    for name in ("one event", "reasoning", *(() if scene.small else ("tiny",))):
        reply = await scene.post({"input": name, "stream": True})
        status = ended_once(reply)
        scene.look()
        scene.expect(" " not in status, f"{name} without end: {status}")
        scene.expect(sent.get(name, 0) < most - 1_000_000 or scene.small, f"{name}: all {most / 1e6:.0f} MB were taken")
        said.append(f"{name}: {status} after {sent.get(name, 0) / 1e6:.0f} MB")
    return ", ".join(said)


async def waits(scene: Scene) -> str:
    """R13: a time to wait that nobody can wait."""
    said = []
    for value in ("1e308", "99999999", "-1", "nan", "Fri, 31 Dec 9999 23:59:59 GMT"):

        async def refuse(call: Call, value: str = value) -> None:
            head = f"HTTP/1.1 429 Too Many\r\nretry-after: {value}\r\ncontent-length: 2\r\n\r\n{{}}"
            await call.write(head.encode())

        scene.deeds["wait"] = refuse
        reply = await scene.post({"input": "wait"})
        told = reply.headers.get("retry-after", "none")
        scene.expect(told == "none" or (told.isdigit() and int(told) <= 86_400), f"retry-after {value}: {told[:40]}")
        scene.expect(reply.status == 429, f"retry-after {value}: {reply.status}")
        said.append(told[:40])
    return f"told as {', '.join(said)}"


async def continues(scene: Scene) -> str:
    """R15: `100 Continue`, for ever."""

    async def continuing(call: Call) -> None:
        while True:
            await call.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            await asyncio.sleep(0)

    scene.deeds["continue"] = continuing
    reply = await scene.post({"input": "continue"})
    scene.expect(reply.status in (502, 504), f"endless 100s: {reply.status}")
    return f"{reply.status}"


async def stale_connections(scene: Scene) -> str:
    """R18: a provider that closes a connection after its answer, without a word."""

    async def answer_and_close(call: Call) -> None:
        await call.reply("well")
        await asyncio.sleep(0.002)
        if call.last:  # else it would be the answer to somebody else's question that breaks off
            call.hang_up()

    scene.deeds["stale"] = answer_and_close
    count = 60 if scene.small else 300
    failed = 0
    for number in range(count):
        reply = await scene.post({"input": "stale", "store": False})
        failed += reply.status != 200
        await asyncio.sleep(0.001 * (number % 5))
    scene.expect(failed == 0, f"{failed} of {count} requests failed on a stale connection")
    return f"{failed} of {count} failed"
