"""The loop of one response: what each round asks with, and when the model has to do without."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from isthmus.bridge.assemble.calls import Calls
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.rounds import Rounds
from isthmus.bridge.deltas import CallArguments, CallOpened
from isthmus.bridge.finish import Outcome
from isthmus.bridge.types.managed import Managed, Ran, ToolLimits
from isthmus.bridge.types.plan import Host, Plan, Progress
from isthmus.testing.fold import plan_for


class Scene:
    def __init__(self, limits: ToolLimits | None = None, **body: Any) -> None:
        host = Host(managed=Managed("x"), limits=limits or ToolLimits())
        self.asked: list[Progress] = []
        self.plan = plan_for({"tools": [{"type": "web_search"}], **body}, host=host)
        self.output = Output("resp_ab")
        self.rounds = Rounds(self.plan, self.output, None)
        first = self.plan.after_tools
        assert first is not None

        def after(progress: Progress) -> Plan:
            self.asked.append(Progress(list(progress.said), dict(progress.results), *_rest(progress)))
            return first(progress)

        self.plan = replace(self.plan, after_tools=after)

    def round(self, *queries: str) -> None:
        calls = Calls(self.plan.tools, self.output, set(), [], _managed=self.rounds.managed)
        for slot, query in enumerate(queries):
            calls.open(CallOpened(slot, None, "web_search"), before=lambda: None)
            calls.append(CallArguments(slot, f'{{"query": "{query}"}}'))
        calls.close_all(Outcome("completed"), spoken_since=False)
        for call in self.rounds.managed.take_waiting():
            self.rounds.managed.ran(call.id, Ran(f"found {call.arguments['query']}"))
        self.rounds.go_on(self.plan, calls, None)


def _rest(progress: Progress) -> tuple[int, int, bool, int | None]:
    return progress.searches, progress.rounds, progress.spent, progress.most


def test_each_round_asks_with_everything_once() -> None:
    scene = Scene()
    scene.round("a", "b")
    scene.round("c")
    assert [[item["id"] for item in asked.said] for asked in scene.asked] == [
        ["ws_ab_c1", "ws_ab_c2"],
        ["ws_ab_c1", "ws_ab_c2", "ws_abr1_c3"],
    ]
    assert scene.asked[1].results == {"ws_ab_c1": "found a", "ws_ab_c2": "found b", "ws_abr1_c3": "found c"}
    assert [asked.rounds for asked in scene.asked] == [1, 2]


def test_the_last_round_is_asked_without_the_tools() -> None:
    scene = Scene(ToolLimits(rounds=2))
    scene.round("a")
    assert not scene.rounds.spent
    scene.round("b")
    assert scene.rounds.spent
    assert [asked.spent for asked in scene.asked] == [False, True]


def test_what_the_client_allows_is_spent_by_calls() -> None:
    scene = Scene(max_tool_calls=1)
    scene.round("a", "b")
    (asked,) = scene.asked
    assert asked.spent
    assert [item["type"] for item in asked.said] == ["web_search_call", "function_call", "function_call_output"]


def test_a_plan_of_which_nothing_runs_here_has_no_next_round() -> None:
    plan, output = plan_for(), Output("resp_ab")
    calls = Calls(plan.tools, output, set(), [])
    with pytest.raises(AssertionError, match="runs here"):
        Rounds(plan, output, None).go_on(plan, calls, None)
