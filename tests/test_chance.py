"""Text for ids: never the same twice, whoever asks."""

from __future__ import annotations

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from isthmus.chance import dated_text, random_text


def test_it_is_long_enough_that_nobody_guesses_it() -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", random_text())


def test_with_the_time_before_it_what_is_made_later_stands_later_and_is_guessed_as_little() -> None:
    began = time.time_ns() // 1_000_000
    some = {dated_text() for _ in range(2_000)}
    assert len({each[11:] for each in some}) == 2_000
    assert {len(each) for each in some} == {32}
    ended = time.time_ns() // 1_000_000
    assert all(began <= int(each[:11], 16) <= ended for each in some)
    while time.time_ns() // 1_000_000 == ended:
        pass
    assert max(some) < dated_text()


def test_no_two_are_the_same_whichever_thread_asks() -> None:
    with ThreadPoolExecutor(8) as threads:
        many = threads.map(lambda _: [random_text() for _ in range(2_000)], range(8))
        made = [each for some in many for each in some]
    assert len(set(made)) == 16_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing can be forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_makes_others() -> None:
    random_text()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, " ".join(random_text() for _ in range(50)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        theirs = told.read().split()
    os.waitpid(child, 0)
    assert len(theirs) == 50
    assert {random_text() for _ in range(50)}.isdisjoint(theirs)
