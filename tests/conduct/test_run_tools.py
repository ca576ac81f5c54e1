"""A run whose tools are carried out: whatever ends it stops them, and each call has its end before the response."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conduct.stage import STOPS, Stage
from isthmus.bridge.deltas import CallArguments, CallOpened, Finished
from isthmus.bridge.types.managed import Managed, ManagedCall, Ran
from isthmus.bridge.types.plan import Host
from isthmus.conduct.around import Stop
from isthmus.conduct.hosted import Hosted
from isthmus.conduct.run import Run
from isthmus.ports import Sent
from isthmus.ports.tools import Tell
from isthmus.testing import ScriptedTool
from wire.oracle import check_stream

TOOLS = [{"type": "web_search"}]


class Scene:
    """A run that waits for two searches."""

    def __init__(self, stage: Stage, **more: Any) -> None:
        self.stage = stage
        self.found = asyncio.Event()

        async def search(call: ManagedCall, tell: Tell) -> Ran:
            await self.found.wait()
            return Ran(f"found {call.arguments['query']}")

        self.tool = ScriptedTool("web_search", search, search="scripted")
        stage.host, stage.hosted = Host(managed=Managed("scripted")), Hosted([self.tool])
        self.run: Run = stage.run_of(tools=TOOLS, **more)
        self.reading = stage.read(self.run)
        for slot, query in enumerate(("a", "b")):
            stage.asked.say(CallOpened(slot, f"c{slot}", "web_search"), CallArguments(slot, f'{{"query": "{query}"}}'))
        self.answer("tool_calls")

    def answer(self, reason: str) -> None:
        self.stage.asked.say(Finished(reason))
        self.stage.asked._steps.put_nowait(None)
        self.stage.quiet()

    @property
    def items(self) -> list[tuple[str, str]]:
        return [(item["type"], item["status"]) for item in self.stage.saved[-1].response["output"]]  # type: ignore


def test_the_upstream_is_asked_again_once_all_have_ended(stage: Stage) -> None:
    scene = Scene(stage)
    assert (scene.tool.running, stage.upstream.open) == (2, [])
    scene.found.set()
    stage.quiet()
    told = [message["content"] for message in stage.asked.body["messages"] if message["role"] == "tool"]
    assert told == ["found a", "found b"]
    stage.asked.end("There.")
    stage.quiet()
    assert scene.reading.done()
    assert stage.story == ["begun", "saved completed by one", "told response.completed", "over"]
    check_stream(stage.events)
    assert sum(isinstance(fact, Sent) for fact in stage.heard.facts) == 2
    assert stage.end.attempts == 1, "asking again with results is no new attempt"


@pytest.mark.parametrize("why", [stop for stop in STOPS if stop != "left"])
def test_whatever_stops_the_run_stops_its_tools(stage: Stage, why: Stop) -> None:
    scene = Scene(stage)
    scene.run.stop(why)
    stage.quiet()
    assert (scene.tool.stopped, scene.tool.running) == (2, 0)
    assert len(stage.terminal) == 1
    check_stream(stage.events)
    if why != "lost":
        assert scene.items == [("web_search_call", "failed")] * 2


def test_a_reader_that_leaves_stops_them_too(stage: Stage) -> None:
    scene = Scene(stage)
    scene.run.stop("left")
    stage.quiet()
    assert (scene.tool.stopped, scene.tool.running) == (2, 0)
    assert scene.items == [("web_search_call", "failed")] * 2
    assert stage.saved[-1].response["status"] == "cancelled"


def test_a_cut_off_reader_stops_them_too(stage: Stage) -> None:
    scene = Scene(stage)
    scene.reading.cancel()
    stage.quiet()
    assert (scene.tool.stopped, scene.tool.running) == (2, 0)
    assert stage.saved[-1].response["status"] == "cancelled"


def test_steering_ends_the_response_with_what_there_is(stage: Stage) -> None:
    scene = Scene(stage)
    scene.run.steer()
    stage.quiet()
    assert (scene.tool.stopped, scene.tool.running) == (2, 0)
    (terminal,) = stage.terminal
    assert terminal["response"]["incomplete_details"] == {"reason": "steered"}
    check_stream(stage.events)


def test_a_sign_of_life_is_given_while_they_run(stage: Stage) -> None:
    scene = Scene(stage)
    beat = scene.run.heartbeat()
    assert beat is not None
    stage.events.append(beat)
    scene.found.set()
    stage.quiet()
    stage.asked.end("There.")
    stage.quiet()
    check_stream(stage.events)


def test_all_of_it_has_one_time(stage: Stage) -> None:
    scene = Scene(stage, total=50.0)
    stage.flow(51)
    assert scene.tool.stopped == 2
    assert stage.terminal[0]["response"]["error"]["code"] == "upstream_timeout"


def test_an_upstream_that_fails_after_the_tools_fails_the_response_and_keeps_them(stage: Stage) -> None:
    scene = Scene(stage)
    scene.found.set()
    stage.quiet()
    stage.asked.fail(ValueError("nobody meant that"))
    stage.quiet()
    assert stage.terminal[0]["type"] == "response.failed"
    assert scene.items == [("web_search_call", "completed")] * 2
