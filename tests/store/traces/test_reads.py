"""What a question costs does not grow with what it does not ask for, and ids of other doors are understood."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.ports.traces import TraceFilter
from isthmus.store.traces.reads import known_as
from isthmus.store.traces.sqlite import SqliteTraces
from traced import keep_in, traced


@pytest.mark.parametrize(
    ("id", "response"), [("chatcmpl-7f", "resp_7f"), ("msg_7f", "resp_7f"), ("resp_7f", ""), ("req_7f", ""), ("", "")]
)
def test_clients_of_other_doors_know_a_response_by_another_name(id: str, response: str) -> None:
    assert known_as(id) == response


QUESTIONS: dict[str, dict[str, Any]] = {
    "the newest": {},
    "the oldest": {"order": "asc"},
    "of one provider": {"filter": TraceFilter(provider="p1")},
    "that failed": {"filter": TraceFilter(outcome="failed")},
    "that are none": {"filter": TraceFilter(provider="p1", code="nothing")},
    "of long ago": {"filter": TraceFilter(model="m2", until=1_050.0)},
    "of a thread": {"filter": TraceFilter(thread="resp_5")},
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_page_takes_as_much_work_from_ten_times_as_many(question: str) -> None:
    """Counted in steps of SQLite's machine, whatever else the processor does."""
    worked = [await work(count, **QUESTIONS[question]) for count in (1_000, 10_000)]
    assert worked[1] < worked[0] * 1.7 + 2_000


async def work(count: int, filter: TraceFilter = TraceFilter(), order: Any = "desc") -> int:  # noqa: B008  # frozen
    store = SqliteTraces()
    for start in range(0, count, 500):
        numbers = range(start, start + 500)
        keep_in(
            store,
            [
                traced(
                    str(number),
                    1_000.0 + number / 10,
                    provider=f"p{number % 3}",
                    model=f"m{number % 5}",
                    outcome="failed" if number % 50 == 0 else "completed",
                )
                for number in numbers
            ],
        )
    connection, steps = store._writer, 0
    assert connection is not None

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(step, 10)
    await store.list("local", filter, limit=50, order=order)
    connection.set_progress_handler(None, 0)
    store.close()
    return steps * 10
