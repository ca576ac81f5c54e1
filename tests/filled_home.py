"""The home of somebody who uses all of it: a store with keys, deeds, uses, responses, deliveries and traces, a
configuration with long names, requests and provider files. Commands that show something have something to show."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path

from isthmus.access.keeper import Keeper
from isthmus.access.wishes import read_wishes
from isthmus.ports import Notice, StoredConversation
from isthmus.ports.spending import Use
from isthmus.ports.traced import Trace, TracedError, TraceSummary
from isthmus.store.envelope_key import envelope_key
from isthmus.store.open import open_store
from stored import message, turn
from traced_plans import NOW, keep, traced

EXAMPLES = Path(__file__).parents[1] / "examples"

CONFIG = """
[models]
default = "deepseek/deepseek-v4-pro"
[models.aliases]
fast = "a-server-of-our-own/a-model-with-a-name-that-goes-on-and-on"
"*" = "deepseek/deepseek-v4-pro"
[models.fallbacks]
fast = ["deepseek/deepseek-v4-flash", "demo/demo"]
[models.choices.either]
targets = ["deepseek/deepseek-v4-pro", "demo/demo"]
weights = [3, 1]
by = "weight"
[providers.deepseek]
api_key = "sk-not-a-key"
[providers.demo]
[providers.a-server-of-our-own]
uses = "openai-compatible"
base_url = "http://localhost:1/a/path/of/some/length/v1/openai"
[mcp.hosts]
allowed_hosts = ["tools.example.com", "more-tools.example.com"]
[store]
url = "sqlite:isthmus.db"
"""

REQUEST = {
    "model": "deepseek/deepseek-v4-pro",
    "instructions": "Answer in one sentence.",
    "input": [{"role": "user", "content": "What does a gateway do? " * 20}],
    "temperature": 1.9,
    "seed": 5,
    "user": "somebody-with-a-long-name-that-is-passed-on",
    "service_tier": "flex",
    "metadata": {"a-key-of-some-length": "a value of some length, too"},
    "text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": {"type": "object"}}},
    "tools": [
        {"type": "function", "name": "look_up_the_weather_of_a_city", "parameters": {"type": "object"}},
        {"type": "web_search"},
    ],
}


def fill_home(home: Path) -> None:
    (home / "isthmus.toml").write_text(CONFIG)
    (home / "isthmus.toml").chmod(0o600)
    (home / "request.json").write_text(json.dumps(REQUEST))
    (home / "broken.toml").write_text('title = 5\nmodls = "x"\n')
    (home / "sound.toml").write_text('extends = "openai-compatible"\ntitle = "Sound"\n')
    for name in ("codex.json", "images.json", "chat.json"):
        (home / name).write_bytes((EXAMPLES / name).read_bytes())
    envelope_key(home / "isthmus.db")
    asyncio.run(_fill_store(f"sqlite:{home / 'isthmus.db'}"))
    keep(home / "isthmus.db", *_traces())


async def _fill_store(url: str) -> None:
    store = open_store(url)
    keeper = Keeper(store, "cli", about={"user": "somebody"}, most=100)
    await keeper.create(read_wishes({"name": "ann"}))
    scope = {"models": ["deepseek/*", "fast"], "endpoints": ["responses", "chat"], "tools": ["web_search", "mcp:docs"]}
    rates = {"requests_per_minute": 100, "tokens_per_minute": 2_000_000, "daily_budget": 5.5, "monthly_budget": 60.0}
    name = "a person with a rather long name of her own"
    await keeper.create(read_wishes({"name": name, "team": "a-team-with-a-long-name", **scope, **rates}))
    await keeper.change("ann", read_wishes({"models": ["deepseek/deepseek-v4-pro"], "metadata": {"cost-centre": "42"}}))
    made = await keeper.create(read_wishes({"name": "bob"}))
    await keeper.rotate("bob", 3600)
    await keeper.revoke(made.key.id)
    day = datetime.now(UTC).date().isoformat()
    long = "accounts/fireworks/models/gpt-oss-120b"
    await store.note_uses(
        [
            Use(day, "key_a", "key_0123456789abcdef0123", "", "deepseek", "deepseek-v4-pro", 1_234, 15_000_000, 9, 3),
            Use(day, "team:t", "key_b", "a-team", "fireworks", long, 1, 10, 0, 5_000_000, 1_234_567_000_000, 1),
        ]
    )
    for index, name in enumerate(("a" * 24, "b" * 24, "c" * 24)):
        kind = "response.completed"
        notice = Notice(f"wh_{name}", "an-endpoint-for-billing", kind, f"resp_{name}{index:08x}", b"{}", "ann")
        await store.save(turn(f"resp_{name}{index:08x}", at=time.time() - index), notices=[notice])
    await store.take_due("an-endpoint-for-billing", holder="gw", seconds=600, most=2)
    reason = "it answered HTTP 410: this receiver is gone, and nobody will ever listen at this address again"
    await store.put_off(f"wh_{'a' * 24}", holder="gw", seconds=None, reason=reason)
    await store.start_conversation(StoredConversation("conv_1", time.time()), [message("hello", "msg_1")])
    await store.aclose()


def _traces() -> list[Trace]:
    said = {**REQUEST, "text": {}}
    turns = [{**said, "input": [{"role": "user", "content": f"turn {n}"} for n in range(index)]} for index in (1, 2, 3)]
    failed = traced(4, said, provider="zhipu", full=False, outcome="failed", code="upstream_timeout", door="chat")
    refused = TraceSummary(
        id=f"req_{5:024x}", at=NOW + 5, ended_at=NOW + 5, outcome="refused", code="invalid_api_key", status=401
    )
    told = TracedError("invalid_api_key", "this API key is not known here; make one with `isthmus keys create NAME`")
    made = [traced(index, body, client="openai-python/3.1.0") for index, body in enumerate(turns, 1)]
    return [*made, failed, Trace(summary=refused, error=told)]
