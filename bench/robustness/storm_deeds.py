"""What clients do in a storm: each does one thing after another, by a seed of its own.

What comes next depends on the seed and the client's number only, never on what came of the last thing; how the clients
meet is up to the machine.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from bench.robustness.client import KEY, Client, Json, Reply, fetch
from bench.robustness.storm_clients import KEYS, PATH, SECRET, User
from bench.robustness.storm_told import UNFINISHED, Stream, judge_refusal, judge_response
from bench.robustness.storm_upstream import FAIR

HANG: Final = 90.0
"""Seconds in which a client has done any one thing."""
Deed = Callable[[User], Awaitable[None]]


async def live(user: User, seed: int, over: asyncio.Event) -> None:
    """One deed after another until it is over."""
    KEY.set(KEYS[user.number % 2])
    deeds, weights = list(DEEDS), list(DEEDS.values())
    while not over.is_set():
        user.asked += 1
        user.chance = random.Random(f"{seed}.{user.number}.{user.asked}")
        deed = user.chance.choices(deeds, weights)[0]
        user.told.counts[deed.__name__] += 1
        try:
            async with asyncio.timeout(HANG):
                await deed(user)
        except (TimeoutError, EOFError, OSError) as error:
            user.told.expect(False, f"{deed.__name__}, {user.number}.{user.asked}: {error!r}")
        await asyncio.sleep(user.chance.uniform(0, 0.05))


# ── asking and reading ─────────────────────────────────────────────────────────────────────────────────


async def ask(user: User) -> None:
    await user.whole(user.words(), store=user.chance.random() < 0.8)


async def stream(user: User) -> None:
    words, read = user.words(), Stream()
    async with await Client.open(user.port) as client:
        if await user.open_stream(client, words):
            await read.read(client)
            if read.judge(user.told, f"a stream of `{words}`"):
                user.ended(read, words)


async def converse(user: User) -> None:
    """Some turns, each on the one before."""
    previous = user.chance.choice([*user.mine, ""]) or None
    for turn in range(user.chance.randint(2, 4)):
        user.continued.add(previous or "")
        response = await user.whole(f"{user.words(*FAIR)}.{turn}", previous_response_id=previous)
        if response is None or response["status"] != "completed" or response["output"][0]["type"] != "message":
            return
        previous = response["id"]


async def read_items(user: User) -> None:
    if user.mine:
        id = user.chance.choice(list(user.mine))
        reply = await user.get(f"/{id}/input_items")
        told = reply.status == 200 and reply.json["data"][0]["content"][0]["text"]
        user.told.expect(told == user.mine[id], f"the input of {id}: {reply.status} {reply.body[:200]!r}")


async def resume(user: User) -> None:
    """What was told is told again, from any number on."""
    if user.streams:
        id = user.chance.choice(list(user.streams))
        events = user.streams[id]
        after = user.chance.randrange(-1, len(events) - 1)
        again = await user.followed(id, after)
        same = again is not None and again.events == events[after + 1 :]
        user.told.expect(same, f"the stream of {id} after {after} was told otherwise")


async def look_again(user: User) -> None:
    """With either key, whoever made it."""
    if user.told.ended:
        ids = list(user.told.ended)
        id = ids[-1 - int(min(len(ids), 200) * user.chance.random())]
        kept = user.told.ended[id]
        reply = await user.get(f"/{id}")
        if id not in user.told.deleted | user.told.unsure:
            same = reply.status == 200 and reply.body == kept
            user.told.expect(same, f"{id}: {reply.status} {reply.body[:200]!r}, told as {kept[:200]!r}")


async def chat(user: User) -> None:
    words, streamed = user.words(), user.chance.random() < 0.5
    messages = [{"role": "user", "content": words}]
    async with await Client.open(user.port) as client:
        body = {"model": "up/model", "messages": messages, "stream": streamed}
        status = await client.send("POST", "/v1/chat/completions", body)
        if streamed and status == 200:
            frames = [frame async for frame in client.frames()]
            ended = bool(frames) and (frames[-1] == b"[DONE]" or b'"error"' in frames[-1])
            user.told.expect(ended, f"a chat stream of `{words}` without an end")
            return
        reply = Reply(status, client.headers, b"".join([piece async for piece in client.pieces()]))
    if status != 200:
        judge_refusal(user.told, reply, words)


async def look_around(user: User) -> None:
    for path in ("/health", "/ready", "/v1/models"):
        reply = await fetch(user.port, "GET", path)
        user.told.expect(reply.status == 200, f"{path}: {reply.status} {reply.body[:200]!r}")


# ── slow ones, and those that leave ────────────────────────────────────────────────────────────────────


async def leave(user: User) -> None:
    words, read = user.words("well", "slow", "stall", "flood", "many"), Stream()
    client = await Client.open(user.port)
    try:
        if await user.open_stream(client, words):
            if await read.read(client, user.chance.randint(1, 8)):
                user.ended(read, words)
            elif user.told.expect(bool(read.id), f"a stream of `{words}` without an event"):
                user.told.left.add(read.id)
    finally:
        client.leave(reset=user.chance.random() < 0.5)


async def read_slowly(user: User) -> None:
    """A pause that fills all buffers; then it reads on, or not."""
    words, read = user.words("flood", "large"), Stream()
    client = await Client.open(user.port)
    try:
        if await user.open_stream(client, words):
            over = await read.read(client, 2)
            await asyncio.sleep(user.chance.uniform(0.1, 1.0))
            if not over and user.chance.random() < 0.5:
                user.told.left.add(read.id)
                return
            if over or await read.read(client):
                read.judge(user.told, f"a slow stream of `{words}`")
                user.told.ended[read.id] = read.end
    finally:
        client.leave()


async def vanish(user: User) -> None:
    """In the middle of a request, or before its answer."""
    client = await Client.open(user.port)
    try:
        if user.chance.random() < 0.5:
            await client.write("POST", PATH, user.body(user.words(), stream=user.chance.random() < 0.5))
            await asyncio.sleep(user.chance.uniform(0, 0.05))
        else:
            client._writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{")
    finally:
        client.leave(reset=user.chance.random() < 0.5)


# ── in the background ──────────────────────────────────────────────────────────────────────────────────


async def in_background(user: User) -> None:
    words = user.words()
    then = user.chance.choice((wait, wait, follow, follow, cancel, cancel, forget, None))
    id = await (_accepted_with_stream if user.chance.random() < 0.5 else _accepted)(user, words)
    if id and then is not None:
        await asyncio.sleep(user.chance.uniform(0, 0.3))
        await then(user, id, words)


async def _accepted(user: User, words: str) -> str:
    reply = await user.get("", "POST", user.body(words, background=True))
    if reply.status != 200:
        judge_refusal(user.told, reply, words)
        return ""
    id = str(reply.json["id"])
    user.told.accepted[id] = words
    return id


async def _accepted_with_stream(user: User, words: str) -> str:
    """Leaves the stream after some events, and has the rest told: together they are the whole."""
    read = Stream()
    async with await Client.open(user.port) as client:
        if not await user.open_stream(client, words, background=True):
            return ""
        over = await read.read(client, user.chance.randint(1, 10))
    user.told.accepted[read.id] = words
    if not over:
        rest = await user.followed(read.id, len(read.events) - 1)
        if rest is None:
            return ""
        read.events, read.end = read.events + rest.events, rest.end
    if read.judge(user.told, f"a background stream of `{words}` in two pieces"):
        user.ended(read, words)
    return read.id


async def wait(user: User, id: str, words: str) -> None:
    reply = await user.until_ended(id)
    if user.told.expect(reply.status == 200, f"{id}: {reply.status}"):
        judge_response(user.told, reply.json, words)
        user.told.ended[id] = reply.body


async def follow(user: User, id: str, words: str) -> None:
    read = await user.followed(id)
    if read is not None and read.judge(user.told, f"a background stream of `{words}`"):
        user.ended(read, words)


async def cancel(user: User, id: str, words: str) -> None:
    reply = await user.get(f"/{id}/cancel", "POST")
    over = reply.status == 200 and reply.json["status"] not in UNFINISHED
    if user.told.expect(over, f"a cancel of {id}: {reply.status} {reply.body[:200]!r}"):
        user.told.ended[id] = reply.body


async def forget(user: User, id: str, words: str) -> None:
    user.told.unsure.add(id)
    reply = await user.get(f"/{id}", "DELETE")
    if user.told.expect(reply.status == 200, f"a delete of {id}: {reply.status} {reply.body[:200]!r}"):
        user.told.deleted.add(id)
        user.gone.append(id)
    user.mine.pop(id, None)
    user.streams.pop(id, None)


async def delete(user: User) -> None:
    alone = [id for id in user.mine if id not in user.continued]
    if alone:
        id = user.chance.choice(alone)
        await forget(user, id, user.mine.pop(id))


async def miss(user: User) -> None:
    """What was deleted is not there, and cannot be continued."""
    if user.gone:
        id = user.chance.choice(user.gone)
        found = await user.get(f"/{id}")
        asked = await user.get("", "POST", user.body(user.words("well"), previous_response_id=id))
        user.told.expect((found.status, asked.status) == (404, 400), f"deleted {id}: {found.status}, {asked.status}")


# ── other owners ───────────────────────────────────────────────────────────────────────────────────────


async def pry(user: User) -> None:
    """Whatever is asked about somebody else's response: it is not there. And nobody is served without a key."""
    other = user.chance.choice(user.foreign)
    words = user.words("well")
    reference = [{"type": "item_reference", "id": other.item}]
    asked: dict[str, tuple[str, str, Json | None, int]] = {
        "read": ("GET", f"/{other.id}", None, 404),
        "follow": ("GET", f"/{other.id}?stream=true", None, 404),
        "items": ("GET", f"/{other.id}/input_items", None, 404),
        "cancel": ("POST", f"/{other.id}/cancel", None, 404),
        "delete": ("DELETE", f"/{other.id}", None, 404),
        "continue": ("POST", "", user.body(words, previous_response_id=other.id), 400),
        "refer": ("POST", "", {"input": [*reference, {"role": "user", "content": words}]}, 400),
    }
    name = user.chance.choice(list(asked))
    method, path, body, wanted = asked[name]
    reply = await user.get(path, method, body)
    hidden = reply.status in (wanted, 404) and SECRET.encode() not in reply.body
    user.told.expect(hidden, f"{name} of another owner's {other.id}: {reply.status} {reply.body[:200]!r}")
    shown = KEY.set(user.chance.choice(("", "no such key")))
    reply = await user.get(path, method, body)
    KEY.reset(shown)
    user.told.expect(reply.status == 401, f"{name} without a key: {reply.status} {reply.body[:200]!r}")


DEEDS: Final[dict[Deed, int]] = {
    ask: 12,
    stream: 16,
    in_background: 16,
    look_again: 8,
    leave: 8,
    converse: 6,
    resume: 6,
    pry: 6,
    chat: 5,
    read_items: 5,
    vanish: 4,
    delete: 4,
    read_slowly: 3,
    miss: 3,
    look_around: 1,
}
"""And how often each is done, compared with the others."""
