from __future__ import annotations

import asyncio
import threading

import pytest

from isthmus.testing import Gate, Signal


def test_a_signal_set_in_a_thread_wakes_a_coroutine() -> None:
    async def main() -> None:
        signal = Signal()
        waiting = asyncio.create_task(signal.waited())
        await asyncio.sleep(0)
        thread = threading.Thread(target=signal.set)
        thread.start()
        await waiting
        thread.join()

    asyncio.run(main())


def test_a_signal_set_in_a_coroutine_wakes_a_thread() -> None:
    signal, woke = Signal(), Signal()

    def wait() -> None:
        signal.wait()
        woke.set()

    async def main() -> None:
        signal.set()

    thread = threading.Thread(target=wait)
    thread.start()
    asyncio.run(main())
    woke.wait()
    thread.join()


def test_a_signal_stays_set_for_late_waiters() -> None:
    signal = Signal()
    signal.set()
    signal.set()
    signal.wait(0)
    asyncio.run(signal.waited(0))
    assert signal.is_set()


def test_waiting_in_vain_names_what_did_not_happen() -> None:
    signal = Signal("the second request")
    with pytest.raises(TimeoutError, match="the second request did not happen within 0 s"):
        signal.wait(0)
    with pytest.raises(TimeoutError, match="the second request did not happen"):
        asyncio.run(signal.waited(0.001))
    assert repr(signal) == "<Signal the second request: not set>"


def test_a_waiter_that_was_cancelled_does_not_disturb_the_signal() -> None:
    async def main() -> None:
        signal = Signal()
        waiting = asyncio.create_task(signal.waited(None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        signal.set()
        await signal.waited()

    asyncio.run(main())


def test_a_signal_outlives_the_loop_of_its_waiter() -> None:
    signal = Signal()

    async def start_waiting() -> None:
        waiting = asyncio.create_task(signal.waited(None))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(start_waiting())
    signal.set()
    assert signal.is_set()


def test_a_gate_may_be_opened_before_anyone_comes() -> None:
    gate = Gate()
    gate.open()
    gate.opened.wait(0)
    assert not gate.reached.is_set()
