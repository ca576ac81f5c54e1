"""A client in a storm: how it asks, and how it notes what it was told. What it does is in `storm_deeds`."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Final

from bench.robustness.client import Client, Json, Reply, fetch
from bench.robustness.rig import GatewayProcess, until
from bench.robustness.storm_told import UNFINISHED, Stream, Told, judge_refusal, judge_response
from bench.robustness.storm_upstream import FAIR, FOUL

KEYS: Final = ("key-of-ann", "key-of-bob")
"""They are one owner's: what is made with one of them is seen with the other."""
PATH: Final = "/v1/responses"
SECRET: Final = "what nobody else may read"
"""Stands in the responses of the other owner."""
_MODELS: Final = ("up/model", "up/model", "up/model", "again/model", "spare/model")
_SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
_NEEDED: Final[dict[str, Json]] = {
    "calls": {"tools": [{"type": "function", "name": "f", "parameters": _SCHEMA}]},
    "json": {"text": {"format": {"type": "json_schema", "name": "j", "schema": _SCHEMA}}},
}
"""What a fair answer needs that it is asked for."""
_KEPT: Final = 30
"""Responses of its own that a client goes on with."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A response of another owner in the same database."""

    id: str
    item: str
    response: bytes


@dataclass(slots=True)
class User:
    number: int
    gateway: GatewayProcess
    told: Told
    foreign: list[Foreign]
    mine: dict[str, str] = field(default_factory=dict)
    """Responses that it has seen completed, and their words."""
    streams: dict[str, list[Json]] = field(default_factory=dict)
    continued: set[str] = field(default_factory=set)
    """Turns that later ones stand on."""
    gone: list[str] = field(default_factory=list)
    chance: random.Random = field(default_factory=random.Random)
    asked: int = 0

    @property
    def port(self) -> int:
        return self.gateway.port

    def words(self, *fates: str) -> str:
        fate = self.chance.choice(fates or (*FAIR * 4, *FOUL))
        return f"{fate}/{self.number}.{self.asked}"

    def body(self, words: str, **more: Any) -> Json:
        needed = _NEEDED.get(words.partition("/")[0], {})
        return {"model": self.chance.choice(_MODELS), "input": words, **needed, **more}

    async def get(self, path: str, method: str = "GET", body: Any = None) -> Reply:
        return await fetch(self.port, method, f"{PATH}{path}", body)

    def keep(self, id: str, response: Json, words: str) -> None:
        if response["status"] == "completed" and len(self.mine) < _KEPT:
            self.mine[id] = words

    async def whole(self, words: str, **more: Any) -> Json | None:
        reply = await self.get("", "POST", self.body(words, **more))
        if reply.status != 200:
            judge_refusal(self.told, reply, words)
            return None
        response: Json = reply.json
        judge_response(self.told, response, words)
        if more.get("store", True):
            self.told.ended[response["id"]] = reply.body
            self.keep(response["id"], response, words)
        return response

    async def open_stream(self, client: Client, words: str, **more: Any) -> bool:
        status = await client.send("POST", PATH, self.body(words, stream=True, **more))
        if status != 200:
            pieces = [piece async for piece in client.pieces()]
            judge_refusal(self.told, Reply(status, client.headers, b"".join(pieces)), words)
        return status == 200

    def ended(self, stream: Stream, words: str) -> None:
        response = json.loads(stream.end)
        judge_response(self.told, response, words)
        self.told.ended[stream.id] = stream.end
        self.keep(stream.id, response, words)
        if len(self.streams) < _KEPT:
            self.streams[stream.id] = stream.events

    async def followed(self, id: str, after: int = -1) -> Stream | None:
        """Its events above a number, to the end."""
        stream = Stream()
        async with await Client.open(self.port) as client:
            more = f"&starting_after={after}" if after >= 0 else ""
            status = await client.send("GET", f"{PATH}/{id}?stream=true{more}")
            if not self.told.expect(status == 200, f"following {id} after {after}: {status}"):
                return None
            await stream.read(client)
        return stream

    async def until_ended(self, id: str) -> Reply:
        async def look() -> Reply | None:
            reply = await self.get(f"/{id}")
            return reply if reply.status != 200 or reply.json["status"] not in UNFINISHED else None

        reply: Reply = await until(look, f"the end of {id}")
        return reply
