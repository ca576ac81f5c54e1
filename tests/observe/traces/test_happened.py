"""Each step of a run in its place: askings with what became of them, tools, checks."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from isthmus.bridge.contract.check import ContractCheck
from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.errors import UpstreamFailed
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import NO_CONTENTS, Contents
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.happened import NO_BODY, asked_of, happened, trace_error, trace_item
from isthmus.ports import Accepted, AttemptFailed, ContractChecked, Retried, Sent, ToolRan
from observe.traces.test_packing import BODY, ITEM, PLANNED, draft

BODIES = Bodies(b"k" * 32)
FAILED = UpstreamFailed("broken", code="upstream_broken")
CALL = ManagedCall("mcp_1", "mcp", "look", {"at": "it"}, {"server_label": "docs"})
STEPS: list[tuple[float, Any]] = [
    (0.1, Sent("resp_1", "p", "m", 1, body=BODY)),
    (0.2, Retried("resp_1", "p", FAILED, 0.5)),
    (0.3, Retried("resp_1", "p", FAILED, elsewhere=True)),
    (0.4, AttemptFailed("resp_1", "p", "m", 1, FAILED)),
    (0.5, Sent("resp_1", "q", "n", 2, "anew", key="team:a")),
    (0.6, Accepted("resp_1", 0.1)),
    (0.8, ToolRan("resp_1", CALL, Ran("found"), 0.05)),
    (0.9, ToolRan("resp_1", CALL, None, 0.05)),
    (1.0, ContractChecked("resp_1", ContractCheck(False, "{}", errors=("a word is missing",)), 0.01)),
]


def told(contents: Contents = NO_CONTENTS, **changed: Any) -> Any:
    return happened(draft(**{"ended_steps": STEPS, **changed}), BODIES, contents, 0)


def test_retries_and_failures_belong_to_the_asking_before_them() -> None:
    (first, second), _, _, retries = told()
    assert retries == 2
    assert [(each.wait, each.elsewhere) for each in first.retries] == [(0.5, False), (0.0, True)]
    assert (first.error, second.error) == (trace_error(FAILED), None)
    assert (first.first_byte, second.first_byte) == (None, 0.1)
    assert (second.provider, second.model, second.attempt, second.why, second.key) == ("q", "n", 2, "anew", "team:a")
    assert (first.body, second.body) == (BODIES.read(BODY), NO_BODY)
    assert round(second.at - first.at, 6) == 0.4


def test_a_tool_that_was_left_failed_and_its_words_are_no_content() -> None:
    _, (ran, left), (check,), _ = told()
    assert (ran.title, ran.failed, left.failed, left.output) == ("docs.look", False, True, NO_BODY)
    assert ran.output == BODIES.text("found")
    assert (check.valid, check.errors, check.words) == (False, 1, ())


def test_all_of_it_where_that_is_wanted() -> None:
    (first, _), (ran, _), (check,), _ = told(Contents(kept=True, most=10_000))
    assert b"hello" in bytes(first.body.content)
    assert bytes(ran.output.content) == b'"found"'
    assert check.words == ("a word is missing",)


def test_what_has_no_asking_before_it_belongs_to_nothing() -> None:
    calls, tools, checks, retries = told(ended_steps=STEPS[1:4])
    assert (calls, tools, checks, retries) == ([], [], [], 0)
    assert happened(Draft(1.0, 2.0), BODIES, NO_CONTENTS, 0) == ([], [], [], 0)


def test_the_request_is_told_with_its_items_and_an_item_with_its_size() -> None:
    assert asked_of(PLANNED) == {"model": "m", "input": [ITEM], "user": "u"}
    assert asked_of(replace(PLANNED, items=())) == PLANNED.asked
    item = trace_item({"type": "message", "status": None, "content": "é"})
    assert (item.type, item.status, item.bytes, item.name) == ("message", "", 47, "")
