"""`[checks]` → the processes where costly work is done, and where it can be killed."""

from __future__ import annotations

from isthmus.bridge.bounds import Bounds
from isthmus.config.schema import Checks
from isthmus.observe.traces.patterns import SCRUB, SCRUBBER
from isthmus.workers.checker import CHECK, RUNNER
from isthmus.workers.pool import PoolOptions, WorkerPool


def open_workers(checks: Checks) -> WorkerPool:
    """The pool; it starts no process before the first job."""
    return WorkerPool(
        PoolOptions(
            runners={
                CHECK: RUNNER,
                SCRUB: SCRUBBER,
                "demo": "isthmus.demo.compose:run_encoded",
                "page": "isthmus.upstream.search.extract:run_encoded",
            },
            workers=checks.workers,
            slow_workers=checks.slow_workers,
            quick=checks.quick,
            deadline=checks.deadline,
            idle=checks.idle,
            memory=checks.memory,
            queue=checks.queue,
            wait=checks.wait,
        )
    )


def schema_bounds(checks: Checks) -> Bounds:
    return Bounds(**{name: getattr(checks, name) for name in Bounds.__struct_fields__})
