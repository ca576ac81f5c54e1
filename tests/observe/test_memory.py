"""The allocator gives back what was freed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from isthmus.observe.memory import Litter, _glibc, give_back, resident, tune_allocator

needs_glibc = pytest.mark.skipif(not sys.platform.startswith("linux") or _glibc() is None, reason="no glibc here")

STORM = """
import threading
from isthmus.observe.memory import give_back, resident, tune_allocator
tune_allocator()
def storm():
    for _ in range(3):
        kept = [bytearray(5_000) for _ in range(20_000)]
        kept += [bytearray(3_000_000) for _ in range(20)]
        del kept[::2]
threads = [threading.Thread(target=storm) for _ in range(6)]
before = resident()
[each.start() for each in threads]
[each.join() for each in threads]
give_back()
print(resident() - before)
"""


@needs_glibc
def test_after_a_storm_of_buffers_in_many_threads_the_memory_is_back() -> None:
    left = int(subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, check=True).stdout)
    assert left < 30_000_000


@needs_glibc
def test_it_can_be_tuned_and_measured() -> None:
    assert tune_allocator()
    assert (resident() or 0) > 1_000_000
    give_back()


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.observe.memory._glibc", lambda: None)
    assert not tune_allocator()
    assert not give_back()


SELDOM = """
import gc
from isthmus.observe.memory import search_seldom
search_seldom()
print(*gc.get_threshold(), gc.get_freeze_count() > 1000)
"""


def test_garbage_is_searched_for_seldom_and_never_in_what_was_loaded() -> None:
    told = subprocess.run([sys.executable, "-c", SELDOM], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["20000", "5", "5", "True"]


class Ring:
    """Only a search finds that nobody has it any more."""

    def __init__(self) -> None:
        self.itself = self


def test_what_fails_and_is_large_is_found_before_much_of_it_lies_about() -> None:
    gc.collect()
    gc.disable()
    try:
        litter, ring = Litter(1_000), Ring()
        left = weakref.ref(ring)
        del ring
        litter.dropped(600)
        assert left() is not None
        litter.dropped(600)
        assert left() is None
    finally:
        gc.enable()
