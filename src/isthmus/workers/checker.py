"""The core's jobs, carried to the worker processes; what was found out about a schema is remembered.

In: a contract to admit, or a job of a turn. Out: nothing or a refusal; a result, also where the work was given up.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from isthmus.bridge.jobs import Admission, Job, Result, admission_of, decode_result, encode_job, give_up, refuse
from isthmus.bridge.types.plan import OutputContract
from isthmus.errors import WorkNotDone
from isthmus.ports import Workers

CHECK: Final = "check"
RUNNER: Final = "isthmus.bridge.jobs:run_encoded"
_ENTRY: Final = 300
"""Bytes that an entry takes beside the words of its refusal."""


class PooledChecker:
    def __init__(self, workers: Workers, *, cache: int) -> None:
        self._workers = workers
        self._known = _Verdicts(cache)

    async def admit(self, contract: OutputContract) -> None:
        job = admission_of(contract)
        if job is None:
            return
        key = hashlib.sha256(b"%d\0%b" % (job.max_regex, contract.canonical)).digest()
        known = self._known.get(key)
        if known is None:
            known = await self._admission(job)
            # What took too long once may not the next time: only what is certain is remembered.
            if known.code == Admission().code:
                self._known.put(key, known)
        refuse(known)

    async def check(self, job: Job) -> Result:
        try:
            return decode_result(await self._workers.run(CHECK, encode_job(job)))
        except WorkNotDone as error:
            return give_up(job, error.message)

    async def _admission(self, job: Job) -> Admission:
        try:
            found = decode_result(await self._workers.run(CHECK, encode_job(job)))
        except WorkNotDone as error:
            if error.code != WorkNotDone.default_code:  # the schema is not to blame
                raise
            found = give_up(job, error.message)
        assert isinstance(found, Admission)
        return found


class _Verdicts:
    """Digest of a schema → what was found; the longest unused go first when it grows beyond so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._entries: OrderedDict[bytes, Admission] = OrderedDict()

    def get(self, key: bytes) -> Admission | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: bytes, admission: Admission) -> None:
        if key not in self._entries:
            self._size += _size(admission)
        self._entries[key] = admission
        while self._size > self._most:
            self._size -= _size(self._entries.popitem(last=False)[1])


def _size(admission: Admission) -> int:
    return _ENTRY + len(admission.refusal)
