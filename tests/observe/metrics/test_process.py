from __future__ import annotations

import os
import resource
import sys
import time

import pytest

from isthmus.observe.metrics.process import process_probe

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def found() -> dict[str, float]:
    return {name: value for name, _, value in process_probe()}


def test_the_system_is_asked_for_what_it_knows_of_us() -> None:
    told = found()
    assert told["process_resident_memory_bytes"] > 10_000_000
    assert told["process_virtual_memory_bytes"] > told["process_resident_memory_bytes"]
    assert told["process_max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert 0 < time.time() - told["process_start_time_seconds"] < 86_400
    assert 0 < told["process_cpu_seconds_total"] <= time.process_time()


def test_open_files_are_counted() -> None:
    before = found()["process_open_fds"]
    pipes = [os.pipe() for _ in range(10)]
    try:
        assert found()["process_open_fds"] == before + 20
    finally:
        for pipe in pipes:
            for end in pipe:
                os.close(end)
