"""Retention beside running responses, seen by clients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flowing import PLAIN
from isthmus.testing import Gate, chat, chat_reply, reply


@pytest.mark.parametrize("store", ["sqlite", "memory", "postgres"])
def test_a_parent_that_is_forgotten_while_its_child_is_made_takes_nothing_from_the_child(
    special: Any, store: str
) -> None:
    flow, gate = special(store=store), Gate()
    flow.script(chat("I am the parent"), reply(chat_reply("I am the child"), after=gate), chat("I am the grandchild"))
    parent = flow.create({"model": PLAIN, "input": "first"})

    async def forget() -> None:
        assert (await flow.server.gateway.store.prune(older_than=1e12)).responses == 1

    body = {"model": PLAIN, "input": "second", "previous_response_id": parent["id"]}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(flow.create, body)
        gate.reached.wait()
        flow.server.do(forget())
        gate.open()
        child = asked.result()
    assert flow.get(f"/v1/responses/{parent['id']}").status == 404
    assert flow.get(f"/v1/responses/{child['id']}").json == child
    assert child["previous_response_id"] == parent["id"]
    grandchild = flow.create({"model": PLAIN, "input": "third", "previous_response_id": child["id"]})
    assert grandchild["status"] == "completed"
    said = [message["content"] for message in flow.sent[-1]["messages"]]
    assert said == ["first", "I am the parent", "second", "I am the child", "third"]
    listed = flow.get(f"/v1/responses/{child['id']}/input_items?order=asc").json["data"]
    assert [item["content"][0]["text"] for item in listed] == ["first", "I am the parent", "second"]
