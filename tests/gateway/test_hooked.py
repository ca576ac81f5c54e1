"""Whose requests hooks see, and those that are asked once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.house import Heard
from gateway.test_embeddings import House
from gateway.test_images import images
from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.bridge.images.read import check_image_request
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.hooked import context_of
from isthmus.hooks import Context, Refuse, Sending
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


async def test_what_is_to_be_drawn_passes_by_them() -> None:
    class Mine:
        def before_plan(self, request: Any, context: Context) -> Any:
            assert context.kind == "images"
            if "bomb" in request["prompt"]:
                raise Refuse("not that")
            return {**request, "prompt": "a fox"}

        def before_send(self, body: Any, sending: Sending, context: Context) -> Any:
            return {**body, "user": sending.dialect}

    drawing = images(Heard())
    drawing._hooks = Hooks([Named("mine", Mine())], Bounded(60, 9))
    made = await drawing.create(Caller("ann"), check_image_request("generate", {"prompt": "a cat"}))
    assert (made.plan.body["prompt"], made.plan.body["user"]) == ("a fox", "images")
    assert [each.path for each in made.plan.diagnostics] == ["prompt", "upstream.user"]
    with pytest.raises(RequestRefused, match="not that"):
        await drawing.create(Caller("ann"), check_image_request("generate", {"prompt": "a bomb"}))
