"""What clients do with two replicas: what one of them begins, the other one goes on with.

Every deed may meet a replica that is killed, or a store that is away. What it was told by then counts, and nothing of
it may turn out otherwise; what it was not told it forgets.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from bench.replicas.told import BROKEN, PATH, Gone, Told, is_end, is_kept
from bench.robustness.client import Client, Json, Reply, fetch, text_of
from bench.robustness.rig import GatewayProcess
from bench.robustness.storm_told import Stream

PATIENCE: Final = 60.0
"""Seconds in which a client has done any one thing."""
_AGAIN: Final = 0.05


@dataclass(slots=True)
class User:
    number: int
    replicas: list[GatewayProcess]
    told: Told
    chance: random.Random
    asked: int = 0

    def words(self, manner: str = "say") -> str:
        self.asked += 1
        return f"{manner} {self.number}.{self.asked}"

    def two(self) -> tuple[GatewayProcess, GatewayProcess]:
        """One to begin with, and one to go on with: the other one, where there are two."""
        one = self.chance.choice(self.replicas)
        return one, self.other(one)

    async def ask(self, at: GatewayProcess, method: str, path: str, body: Any = None) -> Reply:
        """An answer, or `Gone`."""
        reply = await fetch(at.port, method, path, body)
        if reply.status != 200:
            self.told.refuse(reply, f"{method} {path}")
            raise Gone
        return reply

    async def insist(self, at: GatewayProcess, method: str, path: str, body: Any = None) -> Reply:
        """The same, again and again until it is there: for what may be asked twice. Where nobody is, the other one is
        asked, as by any client behind a balancer."""
        while True:
            try:
                return await self.ask(at, method, path, body)
            except Gone:
                await asyncio.sleep(_AGAIN)
            except BROKEN as error:
                self.told.cut(error)
                at = self.other(at)
                await asyncio.sleep(_AGAIN)

    def other(self, at: GatewayProcess) -> GatewayProcess:
        return next((each for each in self.replicas if each is not at), at)

    async def until_ended(self, at: GatewayProcess, id: str) -> Reply:
        while True:
            reply = await self.insist(at, "GET", f"{PATH}/{id}")
            if is_end(reply.json):
                self.told.end(id, reply.body)
                return reply
            await asyncio.sleep(_AGAIN)

    async def follow(self, at: GatewayProcess, stream: Stream, id: str) -> None:
        """From where it was left to its end, however often that takes."""
        while not stream.end:
            after = f"&starting_after={stream.events[-1]['sequence_number']}" if stream.events else ""
            try:
                async with await Client.open(at.port) as client:
                    status = await client.send("GET", f"{PATH}/{id}?stream=true{after}")
                    if status != 200:
                        pieces = b"".join([piece async for piece in client.pieces()])
                        self.told.refuse(Reply(status, client.headers, pieces), f"following {id}")
                    else:
                        self.told.deeds["resumed"] += bool(after)
                        stream._frames = None
                        await stream.read(client)
                        # A stream that the server leaves without an end is as good as one that was cut.
            except BROKEN as error:
                self.told.cut(error)
                at = self.other(at)
            if not stream.end:
                await asyncio.sleep(_AGAIN)


async def live(user: User, over: asyncio.Event) -> None:
    """One deed after another until it is over."""
    deeds, weights = list(DEEDS), list(DEEDS.values())
    while not over.is_set():
        deed = user.chance.choices(deeds, weights)[0]
        try:
            async with asyncio.timeout(PATIENCE):
                await deed(user)
            user.told.deeds[deed.__name__] += 1
        except TimeoutError:
            user.told.wrong.append(f"{deed.__name__} of {user.number}.{user.asked} took more than {PATIENCE:g} s")
        except Gone:
            await asyncio.sleep(_AGAIN)
        except BROKEN as error:
            user.told.cut(error)
            await asyncio.sleep(_AGAIN)
        await asyncio.sleep(user.chance.uniform(0, 0.05))


async def ask(user: User) -> None:
    one, two = user.two()
    words = user.words()
    reply = await user.ask(one, "POST", PATH, {"input": words})
    _judge(user, reply.json, words)
    user.told.end(reply.json["id"], reply.body)
    if is_kept(reply.json):
        again = await user.insist(two, "GET", f"{PATH}/{reply.json['id']}")
        user.told.end(reply.json["id"], again.body)


async def stream(user: User) -> None:
    """Not in the background: of one whose replica is killed nothing is promised but that its stream breaks off."""
    one, two = user.two()
    words, read = user.words(), Stream()
    async with await Client.open(one.port) as client:
        status = await client.send("POST", PATH, {"input": words, "stream": True})
        if status != 200:
            pieces = b"".join([piece async for piece in client.pieces()])
            user.told.refuse(Reply(status, client.headers, pieces), words)
            raise Gone
        await read.read(client)
    if not read.end:  # broken off in good order
        raise Gone
    read.judge(user.told, f"a stream of `{words}`")  # type: ignore[arg-type]  # it only expects
    _judge(user, json.loads(read.end), words)
    user.told.end(read.id, read.end)
    if is_kept(json.loads(read.end)):
        await user.until_ended(two, read.id)


async def chain(user: User) -> None:
    """Each turn through the replica that has not made the one before."""
    one, two = user.two()
    previous, turns = None, user.chance.randint(2, 4)
    for turn in range(turns):
        words = user.words()
        body = {"input": words, "previous_response_id": previous}
        reply = await user.ask((one, two)[turn % 2], "POST", PATH, body)
        user.told.end(reply.json["id"], reply.body)
        _judge(user, reply.json, words, before=2 * turn)
        if reply.json["status"] != "completed":
            return
        previous = reply.json["id"]


async def in_background(user: User) -> None:
    one, two = user.two()
    words = user.words(user.chance.choice(("say", "slow")))
    reply = await user.ask(one, "POST", PATH, {"input": words, "background": True})
    user.told.accepted[reply.json["id"]] = words
    ended = await user.until_ended(two, reply.json["id"])
    _judge(user, ended.json, words, orphan=True)


async def resume(user: User) -> None:
    """A stream is left in the middle, and read on through the other one."""
    one, two = user.two()
    words, read = user.words("slow"), Stream()
    async with await Client.open(one.port) as client:
        status = await client.send("POST", PATH, {"input": words, "stream": True, "background": True})
        if status != 200:
            pieces = b"".join([piece async for piece in client.pieces()])
            user.told.refuse(Reply(status, client.headers, pieces), words)
            raise Gone
        try:
            await read.read(client, user.chance.randint(1, 6))
        finally:
            if read.id:
                user.told.accepted[read.id] = words
    await user.follow(two, read, read.id)
    read.judge(user.told, f"a resumed stream of `{words}` ({read.id})")  # type: ignore[arg-type]  # it only expects
    _judge(user, json.loads(read.end), words, orphan=True)
    user.told.end(read.id, read.end)
    if is_kept(json.loads(read.end)):
        await user.until_ended(one, read.id)


async def cancel(user: User) -> None:
    one, two = user.two()
    words = user.words("wait")
    reply = await user.ask(one, "POST", PATH, {"input": words, "background": True})
    id = reply.json["id"]
    user.told.accepted[id] = words
    await asyncio.sleep(user.chance.uniform(0, 0.3))
    user.told.cancelled.add(id)
    ended = await user.insist(two, "POST", f"{PATH}/{id}/cancel")
    if is_end(ended.json):
        user.told.end(id, ended.body)
    else:  # after twice the time of a lease it is told as it is; the word was left with whoever makes it
        user.told.errors["a cancel that is told as under way"] += 1
        await user.until_ended(two, id)


async def converse(user: User) -> None:
    one, two = user.two()
    made = (await user.ask(one, "POST", "/v1/conversations", {})).json["id"]
    seen = user.told.conversations.setdefault(made, [])
    for turn in range(user.chance.randint(1, 3)):
        words = user.words()
        reply = await user.ask((two, one)[turn % 2], "POST", PATH, {"input": words, "conversation": made})
        user.told.end(reply.json["id"], reply.body)
        _judge(user, reply.json, words, before=2 * turn)
        if reply.json["status"] != "completed":
            return
        seen.append(reply.json["id"])


def _judge(user: User, response: Json, words: str, *, before: int = 0, orphan: bool = False) -> None:
    """Whole, and with all turns before it; of a background run whose replica was killed, failed with the reason."""
    status, error = response["status"], response.get("error")
    right = status == "completed" and text_of(response).strip() == answer_to(words, before)
    right |= orphan and status == "failed" and error["code"] == "server_error"
    # A store that is away in the middle of a run is told as the end of that run.
    right |= status == "failed" and error["code"] == "store_unavailable"
    user.told.errors[f"{status} {error['code']}" if error else status] += status != "completed"
    user.told.expect(right, f"`{words}`: {status} {error} {text_of(response)[:80]!r}")


def answer_to(words: str, before: int) -> str:
    return f"an answer to {words} after {before} messages"


DEEDS: Final[dict[Callable[[User], Awaitable[None]], int]] = {
    ask: 5,
    stream: 4,
    chain: 4,
    in_background: 5,
    resume: 6,
    cancel: 3,
    converse: 3,
}
"""And how often each is done, compared with the others."""
