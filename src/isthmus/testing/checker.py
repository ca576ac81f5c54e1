"""The `Checker` of a test: the same checks, made on the spot and not in worker processes."""

from __future__ import annotations

from isthmus.bridge.jobs import Job, Result, admit_here, run_job
from isthmus.bridge.types.plan import OutputContract


class InlineChecker:
    async def admit(self, contract: OutputContract) -> None:
        admit_here(contract)

    async def check(self, job: Job) -> Result:
        return run_job(job)
