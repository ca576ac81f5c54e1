"""A copy made beside a running gateway, and a gateway that serves from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from flowing import DEEPSEEK, PLAIN, running_flow
from isthmus.store.copying.stores import back_up_store
from isthmus.testing import chat

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
CARRIED: dict[str, Any] = {
    "model": DEEPSEEK,
    "reasoning": {"effort": "high"},
    "tools": [TOOL],
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
SEEN = {"type": "function_call_output", "call_id": "call_1", "output": "a cat"}


@pytest.mark.parametrize("with_key", [True, False])
def test_a_gateway_on_the_restored_copy_continues_chains_and_opens_what_clients_carry(
    with_key: bool, tmp_path: Path
) -> None:
    first, second, copy = tmp_path / "first", tmp_path / "second", tmp_path / "copy.db"
    first.mkdir()
    second.mkdir()
    with running_flow(first) as flow:
        flow.script(chat("kept"), chat(calls=[("call_1", "look", "{}")], reasoning="I must look."), chat("later"))
        kept = flow.create({"model": PLAIN, "input": "hi"})
        items = flow.create({**CARRIED, "input": "Look"})["output"]
        assert flow.database is not None
        back_up_store(f"sqlite:{flow.database}", copy)
        later = flow.create({"model": PLAIN, "input": "hi"})
    # As the guide says: the copy under the store's name, its key beside it.
    shutil.copy(copy, second / "flow.db")
    if with_key:
        shutil.copy(f"{copy}.key", second / "flow.db.key")
    with running_flow(second) as flow:
        flow.script(chat("goes on"), chat("Seen."))
        assert flow.get(f"/v1/responses/{kept['id']}").json == kept
        assert flow.get(f"/v1/responses/{later['id']}").status == 404
        assert flow.create({"model": PLAIN, "input": "on", "previous_response_id": kept["id"]})["status"] == "completed"
        flow.create({**CARRIED, "input": [*map(only_sealed, items), SEEN]})
        assert ("I must look." in str(flow.sent[-1])) is with_key


def only_sealed(item: dict[str, Any]) -> dict[str, Any]:
    """A thought as clients carry it that cannot read it."""
    return {**item, "content": [], "summary": []} if item["type"] == "reasoning" else item
