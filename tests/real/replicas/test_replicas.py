"""Replicas come and go, and so does their store: nothing that a client saw is lost or changed."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc"),
]


@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_nothing_that_a_client_saw_is_lost_when_replicas_die(store: Literal["postgres", "sqlite"]) -> None:
    from bench.replicas.check import check

    assert asyncio.run(check(30.0, store, users=6, late=20.0)).broken == []
