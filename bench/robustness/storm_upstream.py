"""The provider in a storm: what it does with a request stands in the request's first word.

So whoever asks knows what may come of it, and the same words bring the same weather. `FAIR` are the answers that must
arrive whole; after all others a response may have ended in any way, once.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Final

from bench.robustness.attack_scene import Deed
from bench.robustness.upstream import DONE, Call, delta

FAIR: Final = ("well", "slow", "many", "large", "length", "calls", "json")
FOUL: Final = (
    *("cut", "cut whole", "reset", "stall", "silent", "bytes", "kinds", "no end", "junk"),
    *("429", "500", "503", "half", "flood"),
)
FLOOD: Final = 3_000_000
"""Bytes of the longest answer."""
_STATUSES: Final = {"429": "429 Too Many Requests", "500": "500 Oops", "503": "503 Busy"}


class Weather:
    """The provider. `deeds` are those of attacks, by all of their words."""

    def __init__(self) -> None:
        self.deeds: dict[str, Deed] = {}
        self.busy = 0
        """Requests that it has not answered yet."""

    async def handle(self, call: Call) -> None:
        words = words_of(call)
        self.busy += 1
        try:
            await self.deeds.get(words, _answer)(call)
        finally:
            self.busy -= 1


def words_of(call: Call) -> str:
    content = call.body["messages"][-1].get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


def answer_to(words: str) -> str:
    """What a fair answer says."""
    match words.partition("/")[0]:
        case "many":
            return "".join(f"{number} " for number in range(600))
        case "large":
            return f"{words} " * 8_000
        case "calls":
            return ""
        case "json":
            return '{"a": 1}'
    return f"an answer to {words}"


async def _answer(call: Call) -> None:
    words = words_of(call)
    fate, chance = words.partition("/")[0], random.Random(words)
    if fate in _STATUSES:
        said = json.dumps({"error": {"message": "not now"}}).encode()
        head = f"HTTP/1.1 {_STATUSES[fate]}\r\nretry-after: 1\r\ncontent-length: {len(said)}\r\n\r\n"
        await call.write(head.encode() + said)
    elif fate == "junk":
        await call.write(b"220 mail.example.org ESMTP\r\n\r\n")
        call.hang_up()
    elif fate == "cut whole":
        call.hang_up()
    elif fate == "silent":
        await asyncio.Event().wait()
    elif not call.body.get("stream"):
        await _whole(call, fate, words, chance)
    else:
        await call.begin()
        async for piece in _pieces(call, fate, words, chance):
            await call.say(piece)


async def _whole(call: Call, fate: str, words: str, chance: random.Random) -> None:
    await asyncio.sleep(chance.uniform(0, 0.5 if fate == "slow" else 0.02))
    match fate:
        case "cut" | "reset" | "half" | "stall" | "bytes":
            await call.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{")
            if fate == "bytes":
                await call.write(b"\xff" * 899)
            elif fate != "stall":
                call.hang_up(reset=fate == "reset")
            if fate == "stall":
                await asyncio.Event().wait()
        case "kinds" | "no end" | "calls" | "length":
            message = {"role": "assistant", "content": 7 if fate == "kinds" else answer_to(words)}
            finish = {"kinds": {}, "no end": None, "calls": "tool_calls", "length": "length"}[fate]
            if fate == "calls":
                message |= {"tool_calls": [_CALL]}
            data = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
            await call.write(head.encode() + data)
        case "flood":
            await call.reply("a word " * (FLOOD // 70))
        case _:
            await call.reply(answer_to(words))


async def _pieces(call: Call, fate: str, words: str, chance: random.Random) -> AsyncIterator[bytes]:
    if fate == "flood":
        piece = delta("a word and a blank " * 20) * 20
        while call.sent < FLOOD:
            yield piece
        yield delta(finish="stop") + DONE
        await call.write(b"0\r\n\r\n")
        return
    text = answer_to(words)
    size = max(len(text) // (600 if fate == "many" else 12), 1)
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    broken = chance.randrange(len(parts) + 1)
    for number, part in enumerate(parts):
        if fate not in FAIR and number == broken:
            break
        if fate != "many":
            await asyncio.sleep(chance.uniform(0, 0.1 if fate == "slow" else 0.01))
        yield delta(part)
    match fate:
        case "cut" | "half" | "reset":
            call.hang_up(reset=fate == "reset")
            return
        case "stall":
            await asyncio.Event().wait()
        case "bytes":
            yield b"data: {\xff\xfe\n\ndata: \x00\n\n"
        case "kinds":
            yield b'data: {"choices": {"delta": [1]}}\n\ndata: [[]]\n\ndata: 7\n\n'
        case "calls":
            yield delta(tool_calls=[{**_CALL, "function": {"name": "f", "arguments": '{"a"'}}])
            yield delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}])
    if fate != "no end":
        finish = {"length": "length", "calls": "tool_calls"}.get(fate, "stop")
        yield delta(finish=finish) + DONE
    await call.write(b"0\r\n\r\n")


_CALL: Final = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
