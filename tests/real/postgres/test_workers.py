"""Two workers on one real PostgreSQL: how many connections they take, what a reload means, and what is told of them."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isthmus.testing import ScriptedUpstream, chat
from postgres import database_of, name_of, server
from serving import GatewayProcess, running_gateway_process
from talking import Talk
from waiting import until

pytestmark = pytest.mark.real
WORKERS, CONNECTIONS = 2, 3
BESIDE = 3
"""Connections of a worker beside those of `store.max_connections`: one listens, two are for traces."""


class House:
    def __init__(self, gateway: GatewayProcess, folder: Path, upstream: ScriptedUpstream) -> None:
        self.gateway, self.folder, self.upstream = gateway, folder, upstream
        self.database = name_of(database_of(folder))
        self.most = 0

    def ask(self, number: int = 0) -> int:
        return Talk(self.gateway.url).post("/v1/responses", {"input": f"hi {number}"}).status

    def connections(self) -> int:
        mine = "application_name = 'isthmus' AND datname = current_database()"
        return int(server().execute(f"SELECT count(*) FROM pg_stat_activity WHERE {mine}", self.database)[0][0])

    def crowd(self) -> None:
        """Many at once, and meanwhile a look again and again at how many connections there are."""
        over = threading.Event()

        def look() -> None:
            while not over.is_set():
                self.most = max(self.most, self.connections())

        with ThreadPoolExecutor(24) as clients:
            looking = clients.submit(look)
            try:
                assert set(clients.map(self.ask, range(120))) == {200}
            finally:
                over.set()
            looking.result()

    def said(self, words: str) -> int:
        return self.gateway.log.read_text().count(words)

    def workers(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"worker\.started worker=\d+ pid=(\d+)", self.gateway.log.read_text())]

    def metric(self, name: str) -> float | None:
        found = re.search(rf"^{re.escape(name)} (\S+)$", Talk(self.gateway.url).get("/metrics").body.decode(), re.M)
        return None if found is None else float(found[1])


def toml(upstream: ScriptedUpstream, url: str, more: str = "") -> str:
    return (
        f'[models]\ndemo = false\ndefault = "main/m"\n[providers.main]\nuses = "openai-compatible"\nretries = 0\n'
        f'base_url = "{upstream.base_url}"\n[store]\nurl = "{url}"\nmax_connections = {CONNECTIONS}\n'
        f"[server]\nworkers = {WORKERS}\n{more}"
    )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with (
        ScriptedUpstream.running(default=chat("Hello.")) as upstream,
        running_gateway_process(toml(upstream, database_of(tmp_path)), tmp_path) as gateway,
    ):
        yield House(gateway, tmp_path, upstream)


def test_they_take_no_more_connections_than_they_may_also_after_a_reload_and_a_death(house: House) -> None:
    bound = WORKERS * (CONNECTIONS + BESIDE)
    house.crowd()
    assert WORKERS * 2 <= house.most <= bound
    config = house.folder / "isthmus.toml"
    config.write_text(config.read_text() + '[models.aliases]\nquick = "main/m"\n')
    house.gateway.process.send_signal(signal.SIGHUP)
    quick = {"input": "hi", "model": "quick"}
    until(lambda: {Talk(house.gateway.url).post("/v1/responses", quick).status for _ in range(10)} == {200})
    house.crowd()
    assert house.most <= bound, "a reload keeps what it has"
    os.kill(house.workers()[0], signal.SIGKILL)
    until(lambda: len(house.workers()) == WORKERS + 1)
    until(lambda: house.said("worker.died") == 1)
    until(lambda: house.metric('isthmus_workers{state="answering"}') == WORKERS)
    house.crowd()
    assert house.most <= bound, "what a dead one had is gone"
    assert house.said("Traceback") == 0


def test_what_waits_for_the_database_is_counted_and_whether_it_can_be_used(house: House) -> None:
    import psycopg

    queue = 'isthmus_queue_length{queue="store"}'
    assert house.metric("isthmus_store_up") == 1
    until(lambda: house.metric(queue) == 0)
    with ThreadPoolExecutor(8) as clients, psycopg.connect(database_of(house.folder)) as holding:
        holding.execute("LOCK TABLE isthmus.responses IN ACCESS EXCLUSIVE MODE")
        waiting = [clients.submit(house.ask) for _ in range(8)]
        until(lambda: (house.metric(queue) or 0) >= 8)
        holding.rollback()
        assert {each.result() for each in waiting} == {200}
    until(lambda: house.metric(queue) == 0)
    server().stop()
    try:
        until(lambda: house.metric("isthmus_store_up") == 0)
    finally:
        server().start()
    until(lambda: house.metric("isthmus_store_up") == 1)
    assert house.ask() == 200
