"""A request becomes a run: what was taken for it is given back, whatever comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.house import Upstream, make_gateway
from isthmus.bridge.parse import parse_request
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.caller import LOCAL
from isthmus.gateway.gateway import Gateway
from isthmus.store.memory import MemoryStore


def asking(**body: Any) -> Any:
    return parse_request({"input": "hi", **body})


def make(gateway: Gateway, request: Any, id: str = "resp_1") -> Any:
    return gateway._making.make(LOCAL, request, None, (), id)


async def test_a_run_is_a_user_of_its_gateway_until_it_lets_go() -> None:
    gateway = make_gateway(MemoryStore(), Upstream())
    run = await make(gateway, asking())
    assert (run.id, len(gateway.users)) == ("resp_1", 1)
    assert run.plan.body["messages"][-1]["content"] == "hi"
    await run.let_go()
    assert len(gateway.users) == 0
    await gateway.aclose()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"model": "nobody/m"}, None),
        ({"previous_response_id": "resp_unknown"}, None),
        ({"background": True, "store": False}, "invalid_value"),
    ],
)
async def test_what_is_refused_takes_nothing(body: Any, code: str | None) -> None:
    upstream = Upstream()
    gateway = make_gateway(MemoryStore(), upstream)
    with pytest.raises(RequestRefused) as refused:
        await make(gateway, asking(**body))
    assert code in (None, refused.value.code)
    assert (len(gateway.users), upstream.open) == (0, [])
    await gateway.aclose()


async def test_a_store_that_is_out_of_order_is_told_before_anybody_is_asked() -> None:
    class Broken(MemoryStore):
        async def check(self) -> None:
            raise IsthmusError("it is full", code="store_unavailable")

    gateway = make_gateway(Broken(), Upstream())
    with pytest.raises(IsthmusError, match="it is full"):
        await make(gateway, asking())
    run = await make(gateway, asking(store=False))
    await run.let_go()
    assert len(gateway.users) == 0
    await gateway.aclose()


async def test_a_plan_that_is_only_looked_at_is_no_user() -> None:
    gateway = make_gateway(MemoryStore(), Upstream())
    plan = await gateway.plan_only(LOCAL, asking())
    assert plan.body["messages"][-1]["content"] == "hi"
    assert len(gateway.users) == 0
    await gateway.aclose()
