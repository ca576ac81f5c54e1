"""Proofs for what of `[store]` concerns a store that is a server, and for the key of the envelopes."""

from __future__ import annotations

import asyncio
import threading

from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.store import PostgresStore
from postgres import database_of, name_of, server
from settings.proving import PATIENCE, Scene, proves

SERVER = {"store.url": '"@URL@"'}


def url_of(scene: Scene) -> dict[str, str]:
    return {"URL": database_of(scene.folder)}


async def shown(scene: Scene, setting: str) -> str:
    """What a connection of the gateway's says of itself."""

    def look(connection: Connection) -> str:
        row = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
        assert row is not None
        return str(row[0])

    async with scene.gateway(None, **url_of(scene)) as gateway:
        assert isinstance(gateway.store, PostgresStore)
        return await gateway.store.pool.read(look)


@proves("store.schema", '"elsewhere"', beside=SERVER)
async def tables_are_in_this_schema(scene: Scene) -> None:
    async with scene.gateway(None, **url_of(scene)):
        pass
    found = "SELECT 1 FROM pg_tables WHERE schemaname = 'elsewhere' AND tablename = 'responses'"
    database = name_of(database_of(scene.folder))
    try:
        assert server().execute(found, database) == [(1,)]
    finally:
        server().execute("DROP SCHEMA IF EXISTS elsewhere CASCADE", database)


@proves("store.statement_timeout", '"7s"', beside=SERVER)
async def no_statement_takes_longer(scene: Scene) -> None:
    assert await shown(scene, "statement_timeout") == "7s"


@proves("store.durability", '"power"', beside=SERVER)
async def standbys_are_waited_for(scene: Scene) -> None:
    assert await shown(scene, "synchronous_commit") == "on"


@proves("store.max_connections", "2", beside=SERVER)
async def so_many_are_at_work_at_once(scene: Scene) -> None:
    inside, most, third = [0], [0], threading.Event()

    def work(connection: Connection) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        if inside[0] > 2:
            third.set()
        third.wait(0.3)
        inside[0] -= 1

    async with scene.gateway(None, **url_of(scene)) as gateway:
        assert isinstance(gateway.store, PostgresStore)
        await asyncio.gather(*(gateway.store.pool.read(work) for _ in range(4)))
    assert most == [2]


@proves("store.connect_timeout", '"70s"', beside=SERVER)
async def a_server_that_is_away_is_waited_for_so_long(scene: Scene) -> None:
    async with scene.gateway(None, **url_of(scene)) as gateway:
        assert isinstance(gateway.store, PostgresStore)
        assert gateway.store._medium.options.connect_timeout == 70
        async with asyncio.timeout(PATIENCE):
            await gateway.store.stats()


@proves("store.envelope_key", '"a secret that all replicas have"')
async def envelopes_are_signed_with_it(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.settings.envelope_key == b"a secret that all replicas have"


@proves("store.envelope_key", '"a secret that all replicas have"', beside=SERVER)
async def it_stands_before_what_is_in_the_database(scene: Scene) -> None:
    async with scene.gateway(None, **url_of(scene)) as gateway:
        assert gateway.settings.envelope_key == b"a secret that all replicas have"


@proves("store.envelope_key_file", '"envelope.key"')
async def envelopes_are_signed_with_what_is_in_it(scene: Scene) -> None:
    secret = scene.folder / "envelope.key"
    secret.write_text("a secret from a file, mounted\n")
    secret.chmod(0o600)
    async with scene.gateway() as gateway:
        assert gateway.settings.envelope_key == b"a secret from a file, mounted"


@proves("store.url", '"@URL@"', instead='"memory:"')
async def replicas_on_one_server_share_their_key(scene: Scene) -> None:
    async with scene.gateway(None, **url_of(scene)) as one, scene.gateway(None, **url_of(scene)) as two:
        assert isinstance(one.store, PostgresStore)
        assert one.settings.envelope_key == two.settings.envelope_key
