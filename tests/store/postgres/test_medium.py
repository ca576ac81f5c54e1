"""Whether the server is there is known to everybody at once."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options
from isthmus.store.postgres.medium import Medium, Trouble

AWAY = Trouble("it is away", "wait for it")


def test_what_one_finds_out_all_others_are_told(options: Options, caplog: pytest.LogCaptureFixture) -> None:
    medium, woken = Medium(options), []
    medium.wake = lambda: woken.append(1)
    medium.check()
    with caplog.at_level(logging.INFO, "isthmus.store"):
        medium.report(AWAY)
        medium.report(AWAY)
        with pytest.raises(StoreUnavailable, match=r"cannot be used \(it is away\): wait for it"):
            medium.check()
        medium.recovered()
        medium.check()
    assert woken == [1], "whoever tries again is called once"
    assert [record.message.split()[0] for record in caplog.records] == ["store.unavailable", "store.available"]


def test_who_waits_for_it_goes_on_when_it_is_back(options: Options) -> None:
    medium = Medium(options)
    medium.report(AWAY)
    waiting = threading.Thread(target=medium.wait, args=(60,))
    waiting.start()
    medium.recovered()
    waiting.join(60)
    assert not waiting.is_alive()


def test_who_waited_long_enough_is_told_why(options: Options) -> None:
    medium = Medium(options)
    medium.report(AWAY)
    with pytest.raises(StoreUnavailable, match="it is away"):
        medium.wait(0)


def test_a_password_is_in_no_word_of_it(options: Options, caplog: pytest.LogCaptureFixture) -> None:
    away = replace(options, address=Address("postgresql://ann:hush-hush@127.0.0.1:9/kept"))
    with caplog.at_level(logging.INFO, "isthmus.store"), pytest.raises(StoreUnavailable) as refused:
        Medium(away).connect()
    assert "hush" not in f"{refused.value} {caplog.text}"
    assert "postgresql://127.0.0.1:9/kept" in str(refused.value)
