"""Two replicas, each a process of its own, on one real PostgreSQL: whatever one makes, the other one serves."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, chat_reply, reply, stream
from postgres import database_of, name_of, server
from serving import GatewayProcess, running_gateway_process
from talking import PATIENCE, Talk, finished

pytestmark = pytest.mark.real
Json = dict[str, Any]
MODEL = "plain/m"
LEASE = 2.0
PASSWORD = "never-to-be-told"


class House:
    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self.upstream = stack.enter_context(ScriptedUpstream.running())
        self.url = database_of(folder)
        self.logs: list[Path] = []

    def replica(self, name: str) -> tuple[GatewayProcess, Talk]:
        folder = self._folder / name
        folder.mkdir()
        secret = self.url.replace("postgres@", f"postgres:{PASSWORD}@")
        toml = (
            f'[models]\ndemo = false\ndefault = "{MODEL}"\n[providers.plain]\nuses = "openai-compatible"\n'
            f'base_url = "{self.upstream.base_url}"\nretries = 0\n[store]\nurl = "{secret}"\nconnect_timeout = 20\n'
            f"[background]\nlease = {LEASE}\n"
        )
        made = self._stack.enter_context(running_gateway_process(toml, folder))
        self.logs.append(made.log)
        return made, Talk(made.url)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        made = House(stack, tmp_path)
        yield made
    for log in made.logs:
        assert PASSWORD not in log.read_text()


def until(talk: Talk, id: str, *states: str) -> Json:
    deadline = time.monotonic() + PATIENCE
    while (found := talk.get(f"/v1/responses/{id}").json)["status"] not in states:
        assert time.monotonic() < deadline, f"{id} is {found['status']}"
        time.sleep(0.01)
    return dict(found)


def begin(house: House, talk: Talk, gate: Gate) -> str:
    house.upstream.push(reply(chat_reply("Done at last"), after=gate))
    id: str = talk.post("/v1/responses", {"input": "slow", "background": True}).json["id"]
    gate.reached.wait()
    return id


def test_whatever_one_makes_the_other_one_reads_continues_and_deletes(house: House) -> None:
    (_, one), (_, two) = house.replica("one"), house.replica("two")
    house.upstream.push(chat("I am first"), chat("I am second"), chat("Third"), chat("Fourth"))
    first = one.create({"input": "begin"})
    assert two.get(f"/v1/responses/{first['id']}").json == first
    second = two.create({"input": "go on", "previous_response_id": first["id"]})
    listed = one.get(f"/v1/responses/{second['id']}/input_items?order=asc").json["data"]
    assert [item["content"][0]["text"] for item in listed] == ["begin", "I am first", "go on"]
    conversation = one.post("/v1/conversations", {"items": [{"role": "user", "content": "hello"}]}).json["id"]
    two.create({"input": "in it", "conversation": conversation})
    one.create({"input": "again", "conversation": conversation})
    said = two.get(f"/v1/conversations/{conversation}/items?order=asc").json["data"]
    assert [item["content"][0]["text"] for item in said] == ["hello", "in it", "Third", "again", "Fourth"]
    assert two.delete(f"/v1/responses/{first['id']}").status == 200
    assert one.get(f"/v1/responses/{first['id']}").status == 404


def test_what_one_makes_the_other_one_follows_resumes_and_cancels(house: House) -> None:
    (_, one), (_, two) = house.replica("one"), house.replica("two")
    gate, chunks = Gate(), chat_chunks("Hello there", pieces=4)
    house.upstream.push(stream([*chunks[:3], gate, *chunks[3:]]))
    with one.streaming("/v1/responses", {"input": "slow", "background": True, "stream": True}) as here:
        created = here.until("response.created")
        id = created["response"]["id"]
        with two.streaming(f"/v1/responses/{id}?stream=true", method="GET") as there:
            seen = [there.next() for _ in range(3)]
            gate.open()
            seen += list(there)
        told = [created, *here]
    assert seen == told
    with two.streaming(f"/v1/responses/{id}?stream=true&starting_after=4", method="GET") as rest:
        assert list(rest) == told[5:]
    held = Gate()
    cancelled = begin(house, one, held)
    answer = two.post(f"/v1/responses/{cancelled}/cancel")
    assert (answer.status, answer.json["status"]) == (200, "cancelled")
    assert one.get(f"/v1/responses/{cancelled}").json == answer.json
    held.open()


def test_what_a_replica_that_was_killed_was_at_another_one_makes(house: House) -> None:
    (dying, one), (_, two) = house.replica("one"), house.replica("two")
    gate = Gate()
    id = begin(house, one, gate)
    house.upstream.push(chat("Made by the other one"))
    dying.process.send_signal(signal.SIGKILL)
    dying.process.wait()
    assert until(two, id, "completed", "failed")["output_text"] == "Made by the other one"
    gate.open()


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_when_the_server_is_restarted_nothing_that_was_told_is_lost(house: House, how: str) -> None:
    (_, one), (_, two) = house.replica("one"), house.replica("two")
    house.upstream.push(*(chat(f"answer {number}") for number in range(3)))
    before = [one.create({"input": f"{number}"}) for number in range(3)]
    gate = Gate()
    id = begin(house, two, gate)
    server().restart(how)
    gate.open()
    assert until(one, id, "completed", "failed")["status"] == "completed"
    for talk in (one, two):
        assert [talk.get(f"/v1/responses/{each['id']}").json for each in before] == before
    ready(one)
    house.upstream.push(chat("on and on"))
    again = one.create({"input": "and on", "previous_response_id": before[-1]["id"]})
    assert two.get(f"/v1/responses/{again['id']}").json == again
    with two.streaming(f"/v1/responses/{id}?stream=true", method="GET") as events:
        assert finished(list(events))["id"] == id


def ready(talk: Talk) -> None:
    deadline = time.monotonic() + PATIENCE
    while talk.get("/ready").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_while_the_server_is_away_requests_are_refused_before_they_cost_anything(house: House) -> None:
    _, talk = house.replica("one")
    server().stop()
    try:
        deadline = time.monotonic() + PATIENCE
        while talk.get("/ready").status == 200:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        refused = talk.post("/v1/responses", {"input": "hi"})
        assert (refused.status, refused.error["code"]) == (503, "store_unavailable")
        assert PASSWORD not in refused.body.decode()
        assert house.upstream.requests == []
    finally:
        server().start()
    ready(talk)
    house.upstream.push(chat("back"))
    assert talk.create({"input": "hi"})["output_text"] == "back"


def test_replicas_that_start_at_once_on_an_empty_database_all_start(house: House) -> None:
    server().execute("DROP SCHEMA isthmus CASCADE", name_of(house.url))
    talks: list[Talk] = []

    def start(name: str) -> Callable[[], None]:
        return lambda: talks.append(house.replica(name)[1])

    threads = [threading.Thread(target=start(f"r{number}")) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    house.upstream.push(chat("hello"))
    made = talks[0].create({"input": "hi"})
    assert [talk.get(f"/v1/responses/{made['id']}").json for talk in talks] == [made] * 3
