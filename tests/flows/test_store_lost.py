"""What happens to the store's file while the gateway runs, seen by clients: nothing is told as kept that is not."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import shutil
import sqlite3
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from flowing import PLAIN, Flow, running_flow
from isthmus.errors import ConfigError
from isthmus.store.open import open_store
from isthmus.testing import ScriptedUpstream, chat
from serving import running_gateway_process
from talking import Talk
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")

ASK = {"model": PLAIN, "input": "hi"}
KEPT = {"model": PLAIN, "input": "hi", "store": True}
CHAINED = {"model": PLAIN, "input": "hi", "previous_response_id": "resp_any"}
BACKGROUND = {"model": PLAIN, "input": "hi", "background": True}


def fold(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def refused_without_cost(flow: Flow) -> None:
    before = len(flow.sent)
    for body in (ASK, KEPT, CHAINED, BACKGROUND, {**ASK, "stream": True}):
        refused = flow.post("/v1/responses", body)
        assert (refused.status, refused.error["code"]) == (503, "store_unavailable"), body
        assert int(refused.headers["retry-after"]) > 0
        assert str(flow.database) in refused.error["message"]
    assert len(flow.sent) == before


def test_a_deleted_database_refuses_what_it_cannot_keep_until_it_is_back(special: Any) -> None:
    flow: Flow = special()
    flow.script(chat("one"), chat("unkept"), chat("two"))
    first = flow.create(ASK)
    hidden = flow.database.with_name("hidden.db")
    os.rename(flow.database, hidden)
    refused_without_cost(flow)
    assert "was deleted or moved away" in flow.post("/v1/responses", ASK).error["message"]
    assert flow.get(f"/v1/responses/{first['id']}").error["code"] == "store_unavailable"
    assert flow.get("/ready").status == 503
    assert flow.create({**ASK, "store": False})["status"] == "completed"
    assert not flow.database.exists(), "an empty store that nobody asked for"

    os.rename(hidden, flow.database)
    until(lambda: flow.get("/ready").status == 200)
    second = flow.create({**ASK, "previous_response_id": first["id"]})
    assert flow.get(f"/v1/responses/{second['id']}").json == second
    assert flow.get(f"/v1/responses/{first['id']}").json == first


def test_what_ends_while_the_database_is_gone_is_not_told_as_kept(special: Any) -> None:
    """It is deleted between the request and the save: hundreds of `completed` were told, all gone after a restart."""
    flow: Flow = special()
    upstream = chat("paid for")
    flow.script(upstream, chat("kept"))
    flow.create(ASK)
    database = flow.database
    assert database is not None

    def delete(*_: Any) -> None:
        os.unlink(database)

    original = flow.server.gateway.runs.save

    async def save(*given: Any) -> bool:
        delete()
        return await original(*given)

    flow.server.gateway.runs.save = save  # type: ignore[method-assign]
    response = flow.create(ASK)
    assert (response["status"], response["error"]["code"]) == ("failed", "store_unavailable")


def test_a_replaced_database_is_taken_up_and_nothing_of_the_old_one_gets_into_it(special: Any, tmp_path: Path) -> None:
    flow: Flow = special()
    flow.script(chat("old"), *(chat(f"between {number}") for number in range(20)), chat("new"))
    old = flow.create(ASK)
    fold(flow.database)
    shutil.copy(flow.database, tmp_path / "backup.db")
    between = [flow.create(ASK) for _ in range(20)]  # only in the log
    os.replace(tmp_path / "backup.db", flow.database)
    assert flow.post("/v1/responses", ASK).error["code"] == "store_unavailable"
    until(lambda: flow.get("/ready").status == 200)
    new = flow.create({**ASK, "previous_response_id": old["id"]})
    assert flow.get(f"/v1/responses/{old['id']}").json == old
    assert {flow.get(f"/v1/responses/{each['id']}").status for each in between} == {404}
    with closing(sqlite3.connect(flow.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert {id for (id,) in connection.execute("SELECT id FROM responses")} == {old["id"], new["id"]}


def test_an_empty_file_in_its_place_begins_a_new_store(special: Any) -> None:
    flow: Flow = special()
    flow.script(chat("old"), chat("new"))
    old = flow.create(ASK)
    os.unlink(flow.database)
    refused_without_cost(flow)
    flow.database.touch()
    until(lambda: flow.get("/ready").status == 200)
    chained = flow.post("/v1/responses", {**ASK, "previous_response_id": old["id"]})
    assert (chained.status, chained.error["code"]) == (400, "previous_response_not_found")
    new = flow.create(ASK)
    assert flow.get(f"/v1/responses/{new['id']}").json == new


def test_many_changes_leave_no_connection_and_no_thread_behind(special: Any) -> None:
    flow: Flow = special()
    flow.script(*(chat("x") for _ in range(9)))
    id = flow.create(ASK)["id"]
    assert flow.get(f"/v1/responses/{id}").status == 200

    def change() -> None:
        os.unlink(flow.database)
        assert flow.post("/v1/responses", ASK).status == 503
        flow.database.touch()
        until(lambda: flow.get("/ready").status == 200)
        made = flow.create(ASK)
        assert flow.get(f"/v1/responses/{made['id']}").json == made

    change()
    change()
    threads = store_threads()
    for _ in range(6):
        change()
    # A writer, two readers and whoever waits for changes: file and log each, and the memory that they share.
    names = [name for name in open_names() if name.startswith(str(flow.database))]
    assert len(names) <= 4 * 2 + 1
    assert not [name for name in names if "(deleted)" in name]
    assert store_threads() <= threads + 2, "both readers, and nobody else"


def store_threads() -> int:
    return sum(thread.name.startswith("isthmus-store") for thread in threading.enumerate())


def open_names() -> list[str]:
    names = []
    for number in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return names


# ── damage ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_response_is_503_for_itself_alone(tmp_path: Path) -> None:
    with running_flow(tmp_path) as flow:
        flow.script(chat("the first answer"), chat("another answer"), chat("on top"))
        first, second = flow.create(ASK), flow.create(ASK)
        child = flow.create({**ASK, "previous_response_id": first["id"]})
    content = flow.database.read_bytes()
    assert b"the first answer" in content
    flow.database.write_bytes(content.replace(b"the first answer", b"the f\xffrst answer"))
    with running_flow(tmp_path) as flow:
        flow.script(chat("goes on"))
        for path in ("", "/input_items"):
            broken = flow.get(f"/v1/responses/{(child if path else first)['id']}{path}")
            assert (broken.status, broken.error["code"]) == (503, "store_damaged"), path
            assert first["id"] in broken.error["message"] or path
            assert broken.headers["x-should-retry"] == "false"
        chained = flow.post("/v1/responses", {**ASK, "previous_response_id": child["id"]})
        assert (chained.status, chained.error["code"]) == (503, "store_damaged")
        assert first["id"] in chained.error["message"]
        assert flow.get(f"/v1/responses/{second['id']}").json == second
        assert flow.create({**ASK, "previous_response_id": second["id"]})["status"] == "completed"
        assert flow.get("/ready").status == 200


@pytest.mark.parametrize("seed", range(6))
def test_bytes_flipped_anywhere_are_never_served_as_an_answer(seed: int, tmp_path: Path) -> None:
    with running_flow(tmp_path) as flow:
        flow.script(*(chat(f"answer {number} " + "words " * 40) for number in range(12)))
        told = [flow.create({**ASK, "metadata": {"n": str(number)}}) for number in range(12)]
    chance = random.Random(seed)
    content = bytearray(flow.database.read_bytes())
    page = 4096 * chance.randrange(1, len(content) // 4096)
    for _ in range(40):
        content[page + chance.randrange(100, 4096)] ^= 1 << chance.randrange(8)
    flow.database.write_bytes(content)
    with ExitStack() as stack:
        try:
            flow = stack.enter_context(running_flow(tmp_path))
        except ConfigError:
            return  # it lies where the gateway looks at the start
        for response in told:
            answer = flow.get(f"/v1/responses/{response['id']}")
            assert answer.status in (200, 404, 503)
            assert answer.status != 200 or answer.json == response


# ── no room ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limits of another process")
def test_a_full_disk_costs_one_answer_and_no_more(tmp_path: Path) -> None:
    async def lay_out() -> None:
        """Its tables are there: making them would leave a log with room for more than one answer."""
        await open_store(f"sqlite:{tmp_path}/full.db").aclose()

    asyncio.run(lay_out())
    with ScriptedUpstream.running() as upstream:
        toml = (
            f'[models]\ndemo = false\ndefault = "main/some-model"\n[store]\nurl = "sqlite:{tmp_path}/full.db"\n'
            f'[providers.main]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\nretries = 0\n'
        )
        with running_gateway_process(toml, tmp_path) as gateway:
            talk = Talk(gateway.url)
            ask = {"input": "hi"}
            upstream.push(chat("fits"))
            first = talk.post("/v1/responses", ask).json
            pid, wal = gateway.process.pid, tmp_path / "full.db-wal"
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (wal.stat().st_size + 1000, hard))
            upstream.push(chat("does not fit"))
            paid = talk.post("/v1/responses", ask).json
            assert (paid["status"], paid["error"]["code"]) == ("failed", "store_unavailable")
            asked = len(upstream.requests)
            for _ in range(20):
                refused = talk.post("/v1/responses", ask)
                assert (refused.status, refused.error["code"]) == (503, "store_unavailable")
                assert "retry-after" in refused.headers
            assert len(upstream.requests) == asked
            until(lambda: talk.get("/ready").status == 503)
            upstream.push(chat("unkept"))
            assert talk.post("/v1/responses", {**ask, "store": False}).json["status"] == "completed"
            assert talk.get(f"/v1/responses/{first['id']}").json == first, "what is there can be read"

            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
            until(lambda: talk.get("/ready").status == 200)
            upstream.push(chat("fits again"))
            again = talk.post("/v1/responses", ask).json
            assert talk.get(f"/v1/responses/{again['id']}").json == again
        log = (tmp_path / "gateway.log").read_text()
        assert "store.unavailable" in log
        assert "store.available" in log
