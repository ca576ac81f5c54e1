"""Whose requests hooks see, and those that are asked once."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.test_embeddings import House
from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.gateway.caller import Caller
from isthmus.gateway.hooked import context_of
from isthmus.hooks import Context, Sending
from isthmus.hooks.bounded import Bounded
from isthmus.hooks.hooked import Hooks, Named


def test_a_hook_knows_whose_request_it_is() -> None:
    caller = Caller("team:search", key="key_1", team="search", request="req_1")
    context = context_of(caller, "resp_1", {"model": "fast", "metadata": {"a": "b"}}, streamed=True)
    assert context == Context(
        "resp_1",
        "response",
        owner="team:search",
        key="key_1",
        team="search",
        request="req_1",
        model="fast",
        metadata={"a": "b"},
        streamed=True,
    )
    assert context_of(Caller(), "x", {"model": None, "metadata": None}) == Context("x", owner="local")


async def test_what_becomes_vectors_passes_by_them() -> None:
    seen: list[Any] = []

    class Mine:
        def before_plan(self, request: Any, context: Context) -> Any:
            seen.append((context.kind, context.owner))
            return {**request, "input": ["planned"]}

        def before_send(self, body: Any, sending: Sending, context: Context) -> Any:
            seen.append((sending.provider, sending.dialect, body["input"]))
            return {**body, "input": ["sent"]}

    house = House()
    house.embeddings._hooks = Hooks([Named("mine", Mine())], Bounded(60, 9))
    asked = {"model": "openai/text-embedding-3-small", "input": ["a"]}
    made = await house.embeddings.create(Caller("ann"), read_embedding_request(msgspec.json.encode(asked)))
    assert seen == [("embeddings", "ann"), ("openai", "embeddings", ["planned"])]
    assert made.plan.body["input"] == ["sent"]
    assert [each.path for each in made.plan.diagnostics] == ["input[0]", "upstream.input[0]"]
