"""What a worker gets from its supervisor, and how it shows that it lives."""

from __future__ import annotations

import asyncio
import os

from isthmus.server.post import BEAT, EVERY, READY, VARIABLE, Beating, Post, take_post
from own_time import clock, run_in_own_time, turns


def test_a_post_is_taken_once() -> None:
    environ = {VARIABLE: Post(2, 7, 9).spell(), "HOME": "/x"}
    assert take_post(environ) == Post(2, 7, 9)
    assert environ == {"HOME": "/x"}, "what a worker starts is no worker"
    assert take_post(environ) is None


def test_a_sign_of_life_comes_every_second_until_nobody_hears_it() -> None:
    read, write = os.pipe()

    async def live() -> None:
        stop = asyncio.Event()
        beating = Beating(Post(1, 0, write), stop)
        beating.start()
        assert os.read(read, 10) == READY + BEAT
        for _ in range(3):
            clock().skip(EVERY)
            await turns()
            assert os.read(read, 10) == BEAT
        os.close(read)
        clock().skip(EVERY)
        await turns()
        assert stop.is_set()
        beating.end()

    run_in_own_time(live())


def test_a_full_pipe_is_nothing_to_worry_about() -> None:
    read, write = os.pipe()

    async def live() -> None:
        stop = asyncio.Event()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"." * 4096)
        except BlockingIOError:
            pass
        beating = Beating(Post(1, 0, write), stop)
        beating.start()
        assert not stop.is_set()
        beating.end()

    run_in_own_time(live())
    os.close(read)
