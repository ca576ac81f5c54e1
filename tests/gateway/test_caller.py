"""Who asks decides what there is: every question to the gateway is asked for one owner, and sees nobody else's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import fields, replace

from gateway.house import asking, start_in_background
from gateway.world import ANN, World, stored
from isthmus import ports
from isthmus.bridge.types.clients import ANY_CLIENT, CODEX
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.gateway import Gateway
from isthmus.ports.keys import Grant

BOB = Caller("bob")
Deed = Callable[[Gateway, Caller, str], Awaitable[Any]]


async def _continue(gateway: Gateway, caller: Caller, id: str) -> Any:
    return await gateway.create(caller, asking(previous_response_id=id))


async def _plan(gateway: Gateway, caller: Caller, id: str) -> Any:
    return await gateway.plan_only(caller, asking(previous_response_id=id))


async def _compact(gateway: Gateway, caller: Caller, id: str) -> Any:
    return await gateway.compact(caller, asking(previous_response_id=id))


async def _in_background(gateway: Gateway, caller: Caller, id: str) -> Any:
    request = asking(previous_response_id=id, background=True)
    return await gateway.create_in_background(caller, await gateway.create(caller, request), request)


DEEDS: dict[str, Deed] = {
    "create": _continue,
    "compact": _compact,
    "create_in_background": _in_background,
    "plan_only": _plan,
    "retrieve": lambda gateway, caller, id: gateway.retrieve(caller, id),
    "delete": lambda gateway, caller, id: gateway.delete(caller, id),
    "cancel": lambda gateway, caller, id: gateway.cancel(caller, id),
    "input_items": lambda gateway, caller, id: gateway.input_items(caller, id),
    "follow": lambda gateway, caller, id: gateway.follow(caller, id),
}


def test_whoever_needs_no_key_is_local() -> None:
    assert Caller() == LOCAL
    assert LOCAL.owner == ports.LOCAL
    assert (LOCAL.key, LOCAL.scopes, LOCAL.client) == ("", frozenset(), ANY_CLIENT)


def test_a_caller_stays_who_it_is() -> None:
    caller = Caller("ann", "key_1", frozenset({"admin"}), CODEX)
    with pytest.raises(AttributeError):
        caller.owner = "bob"  # type: ignore[misc]
    assert {caller: 1}[Caller("ann", "key_1", frozenset({"admin"}), CODEX)] == 1
    assert caller != Caller("bob", "key_1", frozenset({"admin"}), CODEX)


def test_a_caller_in_a_request_is_the_same_but_for_that() -> None:
    grant = Grant(models=("a/*",))
    caller = Caller("ann", "key_1", frozenset({"admin"}), "team", grant, "laptop", ("b/*",), CODEX, "req_1", 1.0)
    asking = caller.asking("req_2", 2.0)
    assert asking == replace(caller, request="req_2", asked_at=2.0)
    assert all(each.default != getattr(caller, each.name) for each in fields(Caller)), "each would be missed"


def test_everything_that_the_gateway_does_for_somebody_is_in_the_table() -> None:
    methods = {
        name
        for name, method in inspect.getmembers(Gateway, inspect.isfunction)
        if not name.startswith("_") and "caller" in inspect.signature(method).parameters
    }
    assert methods == set(DEEDS)


@pytest.mark.parametrize("running", [False, True], ids=["over", "running"])
@pytest.mark.parametrize("deed", DEEDS)
def test_nobody_sees_stops_or_continues_what_is_somebody_elses(world: World, deed: str, running: bool) -> None:
    here, there = world.begin(), world.begin()
    id = world.spawn(here, start_in_background(here.gateway, ANN)).result()
    if not running:
        world.upstream.open[0].end("mine")
        world.quiet()
    for process in (here, there):
        asked = world.spawn(process, DEEDS[deed](process.gateway, BOB, id))  # type: ignore[arg-type]
        failure = asked.exception()
        assert isinstance(failure, RequestRefused)
        assert failure.code in ("response_not_found", "previous_response_not_found")
        assert failure.code == _refusal_of_nothing(world, process.gateway, deed), "as if it were not there"
    world.flow(10)
    assert stored(world, id)["status"] == ("in_progress" if running else "completed")
    assert len(world.upstream.open) == running


def _refusal_of_nothing(world: World, gateway: Gateway, deed: str) -> str:
    async def ask() -> str:
        try:
            await DEEDS[deed](gateway, BOB, "resp_never")
        except RequestRefused as refused:
            return refused.code
        raise AssertionError("it was found")

    return str(world.run(ask()))


def test_an_item_of_somebody_else_cannot_be_referred_to(world: World) -> None:
    process = world.begin()
    id = world.spawn(process, start_in_background(process.gateway, ANN)).result()
    world.upstream.open[0].end("mine")
    world.quiet()
    item = {"type": "item_reference", "id": stored(world, id)["output"][0]["id"]}
    for caller, refused in ((ANN, False), (BOB, True)):
        asked = world.spawn(process, process.gateway.create(caller, asking(input=[item])))
        assert isinstance(asked.exception(), RequestRefused) is refused
