"""A revoked key is refused within a second, in every process on the store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from serving import GatewayProcess, running_gateway_process
from socketing import open_socket
from talking import Talk
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes and signals")

SOON = 1.0
"""Seconds within which everybody has heard of it, on a machine that has time for it."""


def isthmus(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "isthmus", "keys", *arguments, "--store", f"sqlite:{folder / 'shared.db'}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout.strip()


def config(folder: Path, more: str = "") -> str:
    return f'[server]\n{more}\n[store]\nurl = "sqlite:{folder / "shared.db"}"\n[models]\ndefault = "demo/demo"\n'


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., GatewayProcess]]:
    with ExitStack() as stack:

        def open_one(name: str, more: str = "") -> GatewayProcess:
            folder = tmp_path / name
            folder.mkdir()
            return stack.enter_context(running_gateway_process(config(tmp_path, more), folder))

        yield open_one


def statuses(url: str, secret: str, count: int = 1) -> set[int]:
    """Each over a connection of its own, so that every worker has its chance."""
    shown = {"authorization": f"Bearer {secret}"}
    return {Talk(url).request("GET", "/v1/models", None, shown).status for _ in range(count)}


def refused_within(urls: list[str], secret: str, count: int = 1) -> float:
    """Seconds until all of them refuse it, each time that they are asked."""
    began = time.monotonic()
    for url in urls:
        until(lambda url=url: statuses(url, secret, count) == {401})  # type: ignore[misc]
    return time.monotonic() - began


def test_two_gateways_on_one_file_hear_of_it(tmp_path: Path, start: Callable[..., GatewayProcess]) -> None:
    ann, bob = isthmus(tmp_path, "create", "ann"), isthmus(tmp_path, "create", "bob")
    one, two = start("one"), start("two")
    urls = [one.url, two.url]
    assert [statuses(url, ann) | statuses(url, "") for url in urls] == [{200, 401}] * 2
    with open_socket(two.url, headers={"x-api-key": ann}) as socket:
        assert socket.answer({"input": "hi"})["status"] == "completed"
        isthmus(tmp_path, "revoke", "ann")
        assert refused_within(urls, ann) < SOON + 1  # the machine may be busy; what is promised is a look every 0.4 s
        assert socket.refused({"input": "hi"})[:2] == (401, "invalid_api_key")
    assert [statuses(url, bob) for url in urls] == [{200}] * 2, "nobody else is"
    carla = isthmus(tmp_path, "create", "carla")
    until(lambda: all(statuses(url, carla) == {200} for url in urls))


def test_every_worker_hears_of_it(tmp_path: Path, start: Callable[..., GatewayProcess]) -> None:
    ann = isthmus(tmp_path, "create", "ann")
    gateway = start("both", "workers = 2")
    assert statuses(gateway.url, ann, 10) == {200}
    isthmus(tmp_path, "revoke", "ann")
    assert refused_within([gateway.url], ann, 20) < SOON + 2  # twenty questions, on whatever machine this is
    assert statuses(gateway.url, ann, 20) == {401}


def test_the_first_key_closes_a_gateway_that_was_open(tmp_path: Path, start: Callable[..., GatewayProcess]) -> None:
    gateway = start("open")
    assert statuses(gateway.url, "") == {200}
    secret = isthmus(tmp_path, "create", "ann")
    until(lambda: statuses(gateway.url, "") == {401})
    assert statuses(gateway.url, secret) == {200}
    isthmus(tmp_path, "revoke", "ann")
    until(lambda: statuses(gateway.url, secret) == {401})
    assert statuses(gateway.url, "") == {401}, "the end of the last key is no invitation"


def test_a_rotated_key_opens_until_its_grace_is_over(tmp_path: Path, start: Callable[..., GatewayProcess]) -> None:
    old = isthmus(tmp_path, "create", "ann")
    gateway = start("one")
    new = isthmus(tmp_path, "rotate", "ann", "--grace", "4s")
    until(lambda: statuses(gateway.url, new) == {200})
    assert statuses(gateway.url, old) <= {200, 401}
    until(lambda: statuses(gateway.url, old) == {401})
    assert statuses(gateway.url, new) == {200}


def test_a_store_whose_keys_are_damaged_lets_nobody_in(tmp_path: Path) -> None:
    isthmus(tmp_path, "create", "ann")
    with sqlite3.connect(tmp_path / "shared.db") as connection:
        connection.execute("UPDATE keys SET seal = x'00'")
    folder = tmp_path / "one"
    folder.mkdir()
    starting = running_gateway_process(config(tmp_path), folder)
    with pytest.raises(RuntimeError, match="not as it was written"), starting:
        pass
