"""The demo model's schema work goes to the workers, and only that; what they do not do is refused in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.bounds import Bounds
from isthmus.demo.compose import KIND, Composer, run_encoded
from isthmus.demo.model import answer
from isthmus.demo.question import Refused
from isthmus.errors import WorkNotDone

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}}
BARE = {"type": "function", "function": {"name": "f"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}


class Workers:
    def __init__(self, refusal: WorkNotDone | None = None) -> None:
        self.jobs = 0
        self.refusal = refusal

    async def run(self, kind: str, payload: bytes) -> bytes:
        assert kind == KIND
        self.jobs += 1
        if self.refusal is not None:
            raise self.refusal
        return run_encoded(payload)


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": [{"role": "user", "content": "Use f, please"}], **fields}


@pytest.mark.parametrize(
    ("body", "jobs"),
    [
        (asked(), 0),
        (asked(response_format={"type": "json_object"}), 0),
        (asked(tools=[TOOL]), 1),
        (asked(tools=[BARE]), 1),
        (asked(response_format=FORMAT), 1),
        (asked(tools=[TOOL], tool_choice="required", stream=True), 1),
    ],
)
async def test_the_reply_is_the_same_wherever_it_is_composed(body: dict[str, Any], jobs: int) -> None:
    workers = Workers()
    assert await Composer(workers).compose(body) == await Composer(None).compose(body) == answer(body)
    assert workers.jobs == jobs


async def test_a_refusal_comes_back_whole() -> None:
    with pytest.raises(Refused) as refused:
        await Composer(Workers()).compose(asked(tools=[TOOL], tool_choice={"function": {"name": "g"}}))
    assert (refused.value.status, refused.value.code) == (400, "invalid_request_error")
    assert "`g`" in refused.value.message


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("work_too_costly", 400, "schema_too_large"),
        ("workers_busy", 503, "server_is_overloaded"),
        ("work_failed", 500, "server_error"),
    ],
)
async def test_what_was_not_done_is_refused_with_the_reason(code: str, status: int, told: str) -> None:
    workers = Workers(WorkNotDone("over `checks.deadline`", code=code))
    with pytest.raises(Refused, match=r"`checks\.deadline`") as refused:
        await Composer(workers).compose(asked(tools=[TOOL]))
    assert (refused.value.status, refused.value.code) == (status, told)


@pytest.mark.parametrize("body", [asked(tools=[TOOL]), asked(response_format=FORMAT)])
async def test_bounds_are_kept_before_any_work(body: dict[str, Any]) -> None:
    workers = Workers()
    with pytest.raises(Refused, match=r"`checks\.max_schema`") as refused:
        await Composer(workers, Bounds(max_schema=10)).compose(body)
    assert (refused.value.status, refused.value.code) == (400, "schema_too_large")
    assert workers.jobs == 0
