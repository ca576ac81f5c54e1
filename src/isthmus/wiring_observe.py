"""Config → those who watch: the traces of a gateway, and where they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from isthmus.bridge.limits import take_limits
from isthmus.config.schema import Config
from isthmus.config.secrets import configured_secrets
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.cleaning import Cleaner
from isthmus.observe.traces.patterns import SCRUB, SCRUBBER, decode_scrub, encode_scrub
from isthmus.observe.traces.recorder import Keeping, Recorder
from isthmus.observe.traces.tracer import CaptureRule, Tracer
from isthmus.ports import Workers
from isthmus.scrub import Scrubber
from isthmus.store.open import ServerLimits, database_path, is_server, open_traces

__all__ = ["SCRUB", "SCRUBBER", "open_tracer"]

MOST_IN_MEMORY: Final = 64_000_000
"""Bytes of traces beside a store in memory."""


def open_tracer(config: Config, key: bytes, workers: Workers) -> Tracer:
    """From inside the loop. `key` is that of the installation: what is hashed with it means nothing elsewhere."""
    settings, loop = config.trace, asyncio.get_running_loop()
    patterns = tuple(settings.scrub)

    def find(texts: Sequence[str]) -> Sequence[str]:
        job = encode_scrub(patterns, texts)
        return decode_scrub(asyncio.run_coroutine_threadsafe(workers.run(SCRUB, job), loop).result())

    in_memory = database_path(config.store.url) is None and not is_server(config.store.url)
    most = min(settings.max_bytes or MOST_IN_MEMORY, MOST_IN_MEMORY) if in_memory else settings.max_bytes
    recorder = Recorder(
        open_traces(config.store.url, server=take_limits(ServerLimits, config.store)),
        Bodies.of(key),
        Cleaner(Scrubber(configured_secrets(config)), find if patterns else None),
        Keeping(
            max_age=settings.max_age,
            max_bytes=most,
            max_content=settings.max_content,
            unstored=settings.unstored,
            max_queued=settings.max_queued,
            max_queued_bytes=settings.max_queued_bytes,
        ),
    )
    recorder.start()
    full = settings.capture == "full"
    return Tracer(recorder, CaptureRule(full, frozenset(settings.full_for), settings.max_content))
