"""Random histories of a store: everything that it can hold, from a seed."""

from __future__ import annotations

import random
from typing import Any

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import EventBatch, NamedRequest, Notice, Store, StoredConversation, StoredWord
from isthmus.ports.keys import Deed, StoredKey
from isthmus.ports.spending import Hold, Use
from stored import message, turn

OWNERS = ("local", "team:blue", "key_00ff")
TEXTS = ("plain", "Grüße 🌍", 'it\'s "quoted"', "x" * 5000, "\\u0000 as text", "")


async def fill(store: Store, seed: int, steps: int = 40) -> dict[str, list[str]]:
    """What was made, by its kind: ids of one owner each are `<owner> <id>`."""
    chance = random.Random(seed)
    made: dict[str, list[str]] = {"responses": [], "conversations": []}
    for step in range(steps):
        owner = chance.choice(OWNERS)
        await chance.choice(_DEEDS)(store, chance, f"{seed}_{step}", owner, made)
    return made


async def _respond(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    mine = [each.split(" ")[1] for each in made["responses"] if each.startswith(f"{owner} ")]
    previous = chance.choice([*mine, None])
    status = chance.choice(("completed", "completed", "incomplete", "failed", "in_progress", "queued"))
    text = chance.choice(TEXTS)
    asked = tuple(
        message(f"{text} {each}", f"msg_{each}" if each % 2 else None) for each in range(chance.randint(1, 3))
    )
    record = turn(
        f"resp_{name}", previous, at=chance.random() * 1e9, status=status, input=asked, owner=owner, text=text
    )
    events = [b'{"n":%d,"text":"%s"}' % (each, b"y" * chance.choice((1, 3000))) for each in range(chance.randint(0, 5))]
    told = Notice(f"evt_{name}", "crm", "response.completed", record.id, b'{"id":"%s"}' % name.encode(), owner)
    batch = EventBatch(0, tuple(events)) if events else None
    await store.save(record, events=batch, notices=(told,) if chance.random() < 0.4 else ())
    made["responses"].append(f"{owner} {record.id}")


async def _forget(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    if made["responses"] and chance.random() < 0.5:
        whose, id = chance.choice(made["responses"]).split(" ")
        await store.delete(id, owner=whose)


async def _chat(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    record = turn(f"chatcmpl-{name}", at=chance.random() * 1e9, owner=owner)
    await store.save_chat(record, {"zone": chance.choice(TEXTS[:4])[:60], "a": name})


async def _converse(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    items = [message(chance.choice(TEXTS), f"msg_{name}_{each}") for each in range(chance.randint(0, 4))]
    await store.start_conversation(StoredConversation(f"conv_{name}", 5.0, b'{"a":"b"}', owner), items)
    if items and chance.random() < 0.5:
        await store.remove_item(f"conv_{name}", f"msg_{name}_0", owner=owner)
    made["conversations"].append(f"{owner} conv_{name}")


async def _learn(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    await store.learn(Lesson("up", f"model {name}", "top_k", chance.choice(TEXTS)[:400], chance.random() * 1e9))
    await store.hear(StoredWord("up", f"http://{name}", b'{"models":[]}', chance.random() * 1e9))


async def _name(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    named = NamedRequest(chance.randbytes(20), f"resp_{name}", chance.random() * 1e9)
    await store.name_request(f"{chance.choice(TEXTS)[:40]} {name}", named, owner=owner)
    await store.claim(f"run:{name}", owner=owner, holder="one", seconds=60)


async def _manage(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    key = StoredKey(
        f"key_{name}", f"a key {name}", chance.randbytes(32), "ik_abcdefg", chance.random() * 1e9, team="blue"
    )
    deed = Deed(chance.random() * 1e9, "cli", "key.create", key.id, {"name": chance.choice(TEXTS)[:60]})
    await store.add_key(key, deed)


async def _spend(store: Store, chance: random.Random, name: str, owner: str, made: dict[str, list[str]]) -> None:
    use = Use(
        f"2026-11-{chance.randint(10, 17)}",
        owner,
        f"key_{name}",
        "",
        "up",
        "model",
        1,
        10,
        2,
        5,
        chance.randint(0, 10**15),
    )
    await store.note_uses([use])
    await store.hold(f"run_{name}", [Hold(f"key:{name}", "2026-11-01", 7, 10**12)], seconds=60)
    if chance.random() < 0.5:
        await store.settle(f"run_{name}", [use])


_DEEDS: Any = (_respond, _respond, _respond, _forget, _chat, _converse, _learn, _name, _manage, _spend)
