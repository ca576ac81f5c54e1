"""Schemas are admitted once, answers and grammars checked elsewhere, and what is given up says why."""

from __future__ import annotations

import asyncio

import pytest

from isthmus.bridge.contract.check import ContractCheck
from isthmus.bridge.contract.validators import read_schema
from isthmus.bridge.jobs import CheckAnswer, run_encoded
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.types.plan import OutputContract
from isthmus.errors import RequestRefused, WorkNotDone
from isthmus.protocol.json import JsonObject
from isthmus.workers.checker import CHECK, PooledChecker


class CountingWorkers:
    """Does the work on the spot, or does not do it."""

    def __init__(self) -> None:
        self.jobs = 0
        self.refusal: WorkNotDone | None = None

    async def run(self, kind: str, payload: bytes) -> bytes:
        assert kind == CHECK
        self.jobs += 1
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        return run_encoded(payload)


def contract(schema: JsonObject) -> OutputContract:
    return OutputContract("json_schema", "native", schema=schema, canonical=read_schema(schema))


async def test_a_schema_that_was_admitted_is_not_sent_to_a_worker_again() -> None:
    workers = CountingWorkers()
    checker = PooledChecker(workers, cache=1_000_000)
    for _ in range(3):
        await checker.admit(contract({"type": "object", "required": ["a"]}))
    await checker.admit(contract({"required": ["a"], "type": "object"}))
    assert workers.jobs == 1
    await checker.admit(contract({"type": "array"}))
    assert workers.jobs == 2


async def test_a_refusal_is_remembered_too_with_its_words() -> None:
    workers = CountingWorkers()
    checker = PooledChecker(workers, cache=1_000_000)
    said = []
    for _ in range(2):
        with pytest.raises(RequestRefused) as refused:
            await checker.admit(contract({"type": "objct"}))
        assert (refused.value.code, refused.value.param) == ("invalid_json_schema", "text.format.schema")
        said.append(refused.value.message)
    assert workers.jobs == 1
    assert said[0] == said[1]


async def test_the_memory_is_bounded_by_bytes_and_the_longest_unused_goes_first() -> None:
    workers = CountingWorkers()
    checker = PooledChecker(workers, cache=1000)  # room for three
    for limit in (1, 2, 3):
        await checker.admit(contract({"maximum": limit}))
    await checker.admit(contract({"maximum": 1}))
    await checker.admit(contract({"maximum": 4}))
    assert workers.jobs == 4
    await checker.admit(contract({"maximum": 1}))
    assert workers.jobs == 4
    await checker.admit(contract({"maximum": 2}))
    assert workers.jobs == 5


async def test_without_room_to_remember_everything_still_works() -> None:
    workers = CountingWorkers()
    checker = PooledChecker(workers, cache=0)
    for _ in range(2):
        await checker.admit(contract({"maximum": 1}))
    assert workers.jobs == 2


async def test_a_contract_without_a_schema_needs_no_worker() -> None:
    workers = CountingWorkers()
    await PooledChecker(workers, cache=1000).admit(OutputContract("json_object", "native"))
    assert workers.jobs == 0


async def test_a_schema_that_cost_too_much_is_refused_but_may_be_tried_again() -> None:
    workers = CountingWorkers()
    checker = PooledChecker(workers, cache=1_000_000)
    workers.refusal = WorkNotDone("it took longer than 5 s (`checks.deadline`)")
    with pytest.raises(RequestRefused, match=r"`checks\.deadline`") as refused:
        await checker.admit(contract({"type": "object"}))
    assert (refused.value.code, refused.value.param) == ("schema_too_large", "text.format.schema")
    workers.refusal = None
    await checker.admit(contract({"type": "object"}))


@pytest.mark.parametrize("code", ["workers_busy", "work_failed"])
async def test_when_nobody_is_free_or_we_have_a_bug_the_schema_is_not_to_blame(code: str) -> None:
    workers = CountingWorkers()
    workers.refusal = WorkNotDone("200 others are waiting (`checks.queue`)", code=code)
    with pytest.raises(WorkNotDone, match=r"`checks\.queue`"):
        await PooledChecker(workers, cache=1000).admit(contract({"type": "object"}))


async def test_a_check_is_answered_also_when_it_was_given_up() -> None:
    workers = CountingWorkers()
    checker = PooledChecker(workers, cache=1000)
    answer = CheckAnswer('{"type":"object"}', 1_000_000, "{}")
    call = ExamineInput({"format": {"type": "grammar", "syntax": "regex", "definition": "a"}}, "a")
    assert await checker.check(answer) == ContractCheck(True, "{}")
    assert await checker.check(call) == Examined("a", "", "matches")
    workers.refusal = WorkNotDone("it took longer than 5 s (`checks.deadline`)")
    assert await checker.check(answer) == ContractCheck(False, "{}", unchecked=workers.refusal.message)
    assert await checker.check(call) == Examined("a", "", "unchecked", workers.refusal.message)
