"""A run always ends itself: one terminal fact, saved, then told, whatever rises and whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from conduct.stage import Noted, Stage
from gateway.house import Heard, Upstream
from isthmus.bridge.deltas import CallArguments, CallOpened, Failed, Finished, Text, Usage, Used
from isthmus.bridge.turn import Done
from isthmus.client.local import LocalLine
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.run import Run
from isthmus.errors import ConfigError, IsthmusError, RequestRefused, UpstreamFailed, WorkNotDone
from isthmus.ports import OURS, Accepted, Again, AttemptFailed, ContractChecked, Ended, FirstToken, Retried, Sent
from isthmus.providers import load_provider
from isthmus.testing.checker import InlineChecker
from wire.oracle import check_stream

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
FORMAT = {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}}

RISES: dict[str, Exception] = {
    "the provider fails": UpstreamFailed("it is full", code="server_is_overloaded", status=503),
    "a refusal": RequestRefused("send less"),
    "a setting": ConfigError("no key", code="missing_key"),
    "work not done": WorkNotDone("it took too long"),
    "a bug": KeyError("nobody meant that"),
    "a time": TimeoutError(),
}
rises = pytest.mark.parametrize("what", RISES)


def told_code(error: Exception, *, inside: bool) -> str:
    if isinstance(error, IsthmusError):
        return error.code
    return "server_error" if inside else "internal_error"


# ── the way that all hope for ──────────────────────────────────────────────────────────────────────────


def test_an_answer_is_told_as_it_comes_and_saved_before_its_end_is_told(stage: Stage) -> None:
    run = stage.run_of()
    reading = stage.read(run)
    assert stage.events == [], "nothing before the upstream has accepted"
    stage.asked.accept()
    stage.quiet()
    assert [event["type"] for event in stage.events] == ["response.created", "response.in_progress"]
    stage.asked.say(Text("Hel"))
    stage.quiet()
    assert stage.events[-1]["delta"] == "Hel"
    stage.asked.end("lo")
    stage.quiet()
    assert reading.done()
    assert stage.story == ["begun", "saved completed by one", "told response.completed", "over"]
    assert check_stream(stage.events) == run.response == stage.saved[0].response
    assert (run.finished, run.failure, run.bug, run.lost, run.abandoned) == (True, None, None, False, False)
    assert stage.upstream.open == []


def test_the_end_waits_until_it_is_saved(stage: Stage) -> None:
    stage.saving = asyncio.Event()
    run = stage.run_of()
    stage.read(run)
    stage.asked.end("Hello")
    stage.quiet()
    assert (stage.terminal, run.finished, len(stage.saved)) == ([], False, 1)
    stage.saving.set()
    stage.quiet()
    assert [event["type"] for event in stage.terminal] == ["response.completed"]


def test_the_connection_is_closed_before_the_end_is_saved(stage: Stage) -> None:
    stage.saving = asyncio.Event()
    stage.read(stage.run_of())
    stage.asked.end("Hello")
    stage.quiet()
    assert stage.upstream.open == []


def test_a_slow_reader_slows_the_upstream_down(stage: Stage) -> None:
    patience = asyncio.Event()
    stage.read(stage.run_of(), slowly=patience)
    asked = stage.asked
    asked.say(Text("one"))
    asked.say(Text("two"))
    stage.quiet()
    assert asked._steps.qsize() == 2, "nothing is pulled that nobody takes"
    patience.set()
    stage.quiet()
    assert asked._steps.qsize() == 0


def test_the_whole_answer_is_the_stream_folded(stage: Stage) -> None:
    run = stage.run_of()
    folding = stage.launch(run.fold())
    stage.asked.end("Hello")
    stage.quiet()
    assert folding.result() is run.response
    assert folding.result()["output_text"] == "Hello"


def test_without_a_store_there_is_nothing_to_save(stage: Stage) -> None:
    run = stage.run_of(stored=False)
    stage.read(run)
    stage.asked.end("Hello")
    stage.quiet()
    assert stage.story == ["begun", "told response.completed", "over"]
    assert not run.lost


def test_an_answer_that_breaks_its_contract_is_asked_for_again_and_counts_as_one_attempt(stage: Stage) -> None:
    stage.read(stage.run_of(text=FORMAT, stream=False))
    stage.asked.say(Text("no"), Used(Usage(1, 2, 3)))
    stage.asked.end()
    stage.quiet()
    stage.asked.say(Text('{"a": 1}'), Used(Usage(10, 20, 30)))
    stage.asked.end()
    stage.quiet()
    assert len(stage.upstream.asked) == 2
    assert check_stream(stage.events)["output_text"] == '{"a": 1}'
    assert (stage.end.attempts, stage.end.usage["total_tokens"]) == (1, 33)  # type: ignore[index]
    assert [type(fact) for fact in stage.heard.facts].count(Sent) == 2


# ── whatever rises ─────────────────────────────────────────────────────────────────────────────────────


@rises
def test_before_anything_was_told_it_is_raised_because_it_still_has_a_status(stage: Stage, what: str) -> None:
    run = stage.run_of()
    reading = stage.read(run)
    stage.asked.fail(RISES[what])
    stage.quiet()
    raised = reading.exception()
    assert isinstance(raised, IsthmusError)
    assert raised is run.failure
    assert raised.code == told_code(RISES[what], inside=False)
    assert run.bug is (None if isinstance(RISES[what], IsthmusError) else RISES[what])
    assert (stage.events, stage.saved, stage.story) == ([], [], ["begun", "over"])
    assert (stage.end.outcome, stage.end.failure) == ("refused", raised)
    assert stage.upstream.open == []


@rises
def test_where_nobody_waits_for_a_status_it_is_the_end_of_a_whole_life(stage: Stage, what: str) -> None:
    run = stage.run_of(background=True)
    reading = stage.read(run)
    stage.asked.fail(RISES[what])
    stage.quiet()
    assert reading.exception() is None
    assert stage.story == ["begun", "saved failed by one", "told response.failed", "over"]
    response = check_stream(stage.events)
    assert response == run.response == stage.saved[0].response
    assert response["error"]["code"] == told_code(RISES[what], inside=True)
    assert (stage.end.outcome, stage.end.background) == ("failed", True)


@rises
@pytest.mark.parametrize("background", [False, True])
def test_after_something_was_told_it_is_told_in_the_stream(stage: Stage, what: str, background: bool) -> None:
    run = stage.run_of("one", "two", background=background)
    reading = stage.read(run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    stage.asked.fail(RISES[what])
    stage.quiet()
    assert reading.exception() is None
    assert stage.story == ["begun", "saved failed by one", "told response.failed", "over"]
    response = check_stream(stage.events)
    assert response == run.response
    assert response["output_text"] == "so far"
    assert response["error"]["code"] == told_code(RISES[what], inside=True)
    assert len(stage.upstream.asked) == 1, "a reader that was told something is never told another story"
    assert run.failure is not None
    assert stage.end.failure is run.failure


@rises
@pytest.mark.parametrize("told", [False, True])
def test_the_library_raises_it_and_a_bug_as_it_is(stage: Stage, what: str, told: bool) -> None:
    provider = load_provider("openai-compatible")
    line = LocalLine("one", provider, stage.upstream, checker=InlineChecker())

    async def read() -> None:
        async for batch in line.events({"model": "m", "input": "hi", "stream": True}):
            stage.events += batch

    reading = stage.launch(read())
    if told:
        stage.asked.say(Text("so far"))
        stage.quiet()
    stage.asked.fail(RISES[what])
    stage.quiet()
    assert reading.exception() is RISES[what]
    assert stage.terminal == []
    assert stage.upstream.open == []


def test_a_bug_is_shown_to_the_log_and_not_to_the_client(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.read(stage.run_of())
    stage.asked.say(Text("so far"))
    stage.quiet()
    stage.asked.fail(KeyError("our insides"))
    stage.quiet()
    assert "our insides" not in str(stage.events)
    (record,) = caplog.records
    assert record.getMessage().startswith("response.broken id=resp_1")
    assert record.exc_info is not None


def test_a_check_that_fails_ends_it_too(stage: Stage) -> None:
    class Broken(InlineChecker):
        async def check(self, job: Any) -> Any:
            raise WorkNotDone("no worker is left", code="workers_busy")

    stage.read(stage.run_of(text=FORMAT, checker=Broken(), stream=False))
    stage.asked.end('{"a": 1}')
    stage.quiet()
    assert check_stream(stage.events)["error"]["code"] == "workers_busy"
    assert stage.upstream.open == []


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (ConfigError("the disk is full", code="store_unavailable"), "store_unavailable"),
        (KeyError("our insides"), "internal_error"),
    ],
    ids=["a store that fails", "a bug"],
)
@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_what_could_not_be_saved_is_not_told_as_if_it_were(
    stage: Stage, what: Exception, code: str, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(done: Done) -> Done:
        raise what

    stage.save_as = fail
    run = stage.run_of()
    stage.read(run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    if ending == "completed":
        stage.asked.end()
    elif ending == "failed":
        stage.asked.fail(UpstreamFailed("broke off"))
    else:
        run.stop("cancelled")
    stage.quiet()
    response = check_stream(stage.events)
    assert response == run.response
    assert (response["status"], response["error"]["code"]) == ("failed", code)
    assert "could not be stored" in response["error"]["message"]
    assert "our insides" not in str(response)
    assert stage.end.outcome == "failed"
    assert "response.save.failed" in caplog.text


def test_who_wrote_it_before_decides_what_is_told(stage: Stage) -> None:
    stage.save_as = lambda done: done.unkept("response_not_found", "the response was deleted while it was being made")
    run = stage.run_of()
    stage.read(run)
    stage.asked.end("Hello")
    stage.quiet()
    assert check_stream(stage.events)["error"]["code"] == "response_not_found"
    assert run.response == stage.terminal[0]["response"]
    assert not run.lost


def test_what_somebody_else_is_about_to_end_is_lost(stage: Stage) -> None:
    stage.save_as = lambda done: None
    run = stage.run_of()
    stage.read(run)
    stage.asked.end("Hello")
    stage.quiet()
    assert run.lost
    assert run.response is not None
    assert run.response["error"] == {"code": "server_error", "message": "another gateway has taken this response over"}


@pytest.mark.parametrize("code", ["server_error", "rate_limit_exceeded"])
def test_a_failure_inside_the_answer_ends_it_at_once_and_is_known_to_who_watches(stage: Stage, code: str) -> None:
    run = stage.run_of()
    stage.read(run)
    stage.asked.say(Text("so far"), Failed("out of memory", code))
    stage.quiet()
    response = check_stream(stage.events)
    assert (response["status"], response["error"]["code"]) == ("failed", code)
    assert stage.upstream.open == [], "there is nothing more to wait for"
    (failed,) = [fact for fact in stage.heard.facts if isinstance(fact, AttemptFailed)]
    assert (failed.failure.code, failed.failure.message) == (code, "out of memory")
    assert stage.end.failure is failed.failure


def test_a_contract_that_is_never_met_is_known_to_who_watches(stage: Stage) -> None:
    stage.read(stage.run_of(text=FORMAT))
    for _ in range(2):
        stage.asked.end("no")
        stage.quiet()
    (failed,) = [fact for fact in stage.heard.facts if isinstance(fact, AttemptFailed)]
    assert failed.failure.code == check_stream(stage.events)["error"]["code"]
    assert stage.end.failure is failed.failure


# ── other ways ─────────────────────────────────────────────────────────────────────────────────────────


@rises
@pytest.mark.parametrize("background", [False, True])
def test_a_fallback_sees_every_failure_before_something_was_told(stage: Stage, what: str, background: bool) -> None:
    run = stage.run_of("one", "two", background=background)
    reading = stage.read(run)
    stage.asked.fail(RISES[what])
    stage.quiet()
    assert [asked.provider for asked in stage.upstream.asked] == ["one", "two"]
    assert stage.events == []
    stage.asked.end("from two")
    stage.quiet()
    assert reading.exception() is None
    response = check_stream(stage.events)
    assert response["output_text"] == "from two"
    assert response["isthmus"]["provider"] == "two"
    assert stage.story == ["begun", "saved completed by two", "told response.completed", "over"]
    assert (run.plan.target.provider, run.failure) == ("two", None)
    assert (stage.end.provider, stage.end.attempts, stage.end.failure) == ("two", 2, None)


def test_when_all_fail_the_last_failure_is_raised(stage: Stage) -> None:
    run = stage.run_of("one", "two", "three")
    reading = stage.read(run)
    failures = [UpstreamFailed(name) for name in ("first", "second", "third")]
    for failure in failures:
        stage.asked.fail(failure)
        stage.quiet()
    assert reading.exception() is failures[-1]
    assert [asked.provider for asked in stage.upstream.asked] == ["one", "two", "three"]
    assert [fact.failure for fact in stage.heard.facts if isinstance(fact, AttemptFailed)] == failures


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("what", ["a setting", "a bug"])
def test_a_fallback_that_cannot_even_be_planned_is_no_way_and_no_excuse(
    stage: Stage, background: bool, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its run would otherwise end nowhere: not told, not stored."""

    def others() -> Iterator[Attempt]:
        raise RISES[what]
        yield

    run = stage.run_of(others=others(), background=background)
    reading = stage.read(run)
    stage.asked.fail(RISES["the provider fails"])
    stage.quiet()
    if background:
        assert check_stream(stage.events)["error"]["code"] == "server_is_overloaded"
        assert stage.story == ["begun", "saved failed by one", "told response.failed", "over"]
    else:
        assert reading.exception() is RISES["the provider fails"]
    assert stage.end.failure is RISES["the provider fails"]
    assert "attempt.not_planned" in caplog.text


def test_the_library_and_the_codex_door_can_have_a_refusal_told_afterwards(stage: Stage) -> None:
    run = stage.run_of()
    reading = stage.read(run)
    stage.asked.fail(RISES["the provider fails"])
    stage.quiet()
    failure = reading.exception()
    assert isinstance(failure, UpstreamFailed)
    assert check_stream(stage.run(run.tell(failure)))["error"]["code"] == "server_is_overloaded"
    assert run.finished
    assert len(stage.saved) == 1


# ── those who watch ────────────────────────────────────────────────────────────────────────────────────


def test_facts_come_in_the_order_of_what_happened(stage: Stage) -> None:
    stage.read(stage.run_of("one", "two"))
    stage.flow(1)
    stage.asked.fail(RISES["the provider fails"])
    stage.quiet()
    stage.flow(2)
    stage.asked.accept()
    stage.quiet()
    assert not any(isinstance(fact, FirstToken) for fact in stage.heard.facts), "accepting is not saying"
    stage.flow(3)
    stage.asked.say(Text("a"))
    stage.asked.say(Text("b"))
    stage.asked.end()
    stage.quiet()
    *facts, end = stage.heard.facts
    first, second = (asked.body for asked in stage.upstream.asked)
    assert facts == [
        Sent("resp_1", "one", "m", 1, "first", first),
        AttemptFailed("resp_1", "one", "m", 1, RISES["the provider fails"]),  # type: ignore[arg-type]
        Sent("resp_1", "two", "m", 2, "anew", second),
        Accepted("resp_1", 2.0),
        FirstToken("resp_1", 6.0),
    ]
    assert isinstance(end, Ended)
    assert (end.id, end.owner, end.seconds, end.first_token) == ("resp_1", "ann", 6.0, 6.0)
    assert (end.first_byte, end.batches, end.events) == (2.0, 2, len(stage.events))
    assert [mark.batches for mark in end.marks] == [1, 2]
    assert end.response == stage.events[-1]["response"]


def test_what_happened_below_an_asking_is_told_before_it_is_accepted_or_fails(stage: Stage) -> None:
    again = Again(UpstreamFailed("in passing"), 0.5)

    class Trailing(Upstream):
        def send(self, plan: Any, body: Any, behalf: Any = OURS) -> Any:
            sending: Any = super().send(plan, body, behalf)
            sending.trail = [again]
            return sending

    stage.upstream = Trailing()
    stage.read(stage.run_of("one", "two"))
    stage.quiet()
    stage.asked.fail(RISES["the provider fails"])
    stage.quiet()
    stage.asked.accept()
    stage.quiet()
    told = [type(fact).__name__ for fact in stage.heard.facts]
    assert told == ["Sent", "Retried", "AttemptFailed", "Sent", "Retried", "Accepted"]
    assert stage.heard.facts[1] == Retried("resp_1", "one", again.failure, 0.5)
    stage.asked.end()
    stage.quiet()


@pytest.mark.parametrize(("said", "valid"), [('{"a": 1}', [True]), ("no json", [False, True])])
def test_every_answer_that_is_held_against_its_format_is_told(stage: Stage, said: str, valid: list[bool]) -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    stage.read(stage.run_of(text={"format": {"type": "json_schema", "name": "n", "strict": True, "schema": schema}}))
    for text in (said, '{"b": 2}')[: len(valid)]:
        stage.quiet()
        stage.asked.accept()
        stage.asked.say(Text(text))
        stage.asked.end()
    stage.quiet()
    checks = [fact.check.valid for fact in stage.heard.facts if isinstance(fact, ContractChecked)]
    assert checks == valid
    whys = [fact.why for fact in stage.heard.facts if isinstance(fact, Sent)]
    assert whys == ["first", "repair"][: len(valid)]


def test_the_last_fact_comes_when_nobody_counts_the_run_any_more(stage: Stage) -> None:
    class Last(Heard):
        def tell(self, fact: Any) -> None:
            if isinstance(fact, Ended):
                stage.story.append("ended")
            super().tell(fact)

    stage.heard = Last()
    stage.read(stage.run_of())
    stage.asked.end("Hello")
    stage.quiet()
    assert stage.story[-2:] == ["over", "ended"]


def test_before_its_end_its_life_can_be_read_as_far_as_it_came(stage: Stage) -> None:
    run = stage.run_of()
    stage.read(run)
    stage.flow(2)
    assert (run.ended().outcome, run.ended().seconds) == ("refused", 2.0)
    stage.asked.end("Hello")
    stage.quiet()
    stage.flow(5)
    assert run.ended() is stage.end, "afterwards it is the same for everybody"


def test_a_recorder_takes_note_of_all_that_is_told_and_before_it_is_saved(stage: Stage) -> None:
    noted, known = Noted(), []
    run = stage.run_of(text=FORMAT)
    run.recorder = noted
    stage.save_as = lambda done: known.append(len(noted.events)) or done  # type: ignore[func-returns-value]
    stage.read(run)
    stage.asked.accept()
    stage.quiet()
    beat = run.heartbeat()
    assert beat is not None
    stage.events.append(beat)
    stage.asked.say(Text('{"a": 1}'))
    stage.asked.end()
    stage.quiet()
    assert noted.events == stage.events
    assert known == [len(stage.events)]


# ── signs of life ──────────────────────────────────────────────────────────────────────────────────────


def test_a_heartbeat_is_an_event_of_the_stream_while_there_is_one(stage: Stage) -> None:
    run = stage.run_of()
    assert run.heartbeat() is None
    stage.read(run)
    assert run.heartbeat() is None, "not accepted: a refusal may still need the status"
    stage.asked.accept()
    stage.quiet()
    beat = run.heartbeat()
    assert beat is not None
    assert (beat["type"], beat["sequence_number"]) == ("response.in_progress", 2)
    stage.asked.end("Hello")
    stage.quiet()
    assert stage.events[2]["sequence_number"] == 3
    assert run.heartbeat() is None, "nothing comes behind the end"


DIAL = {"type": "custom", "name": "dial", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}}
DIALLED = [
    delta
    for slot in range(3)
    for delta in (CallOpened(slot, f"c{slot}", "dial"), CallArguments(slot, f'{{"input": "{slot}"}}'))
]


def beat(stage: Stage, run: Run) -> None:
    """A sign of life, told at once."""
    stage.flow(15)
    event = run.heartbeat()
    assert event is not None
    stage.events.append(event)


def numbers(stage: Stage) -> list[int]:
    return [event["sequence_number"] for event in stage.events]


def test_signs_of_life_while_something_is_checked_keep_their_place(stage: Stage) -> None:
    class Slow(InlineChecker):
        async def check(self, job: Any) -> Any:
            await checking.wait()
            checking.clear()
            return await super().check(job)

    checking = asyncio.Event()
    run = stage.run_of(tools=[DIAL], checker=Slow())
    stage.read(run)
    stage.asked.say(*DIALLED, Finished("tool_calls"))
    stage.asked.end()
    stage.quiet()
    while not run.finished:
        beat(stage, run)
        checking.set()
        stage.quiet()
    assert numbers(stage) == list(range(len(stage.events)))
    assert [item["input"] for item in run.response["output"]] == ["0", "1", "2"]  # type: ignore[index]
    assert [event["type"] for event in stage.events].count("response.in_progress") == 4


def test_signs_of_life_while_the_model_is_asked_again_keep_their_place(stage: Stage) -> None:
    mail = {"type": "function", "name": "mail", "description": "Send a letter.", "parameters": {"type": "object"}}
    run = stage.run_of(tools=[{"type": "tool_search"}, {**mail, "defer_loading": True}])
    stage.read(run)
    search = [CallOpened(0, "c0", "tool_search"), CallArguments(0, '{"query": "letter"}')]
    stage.asked.say(*search, Finished("tool_calls"))
    stage.asked.end()
    stage.quiet()
    assert len(stage.upstream.asked) == 2
    assert stage.events[-1]["item"]["type"] == "tool_search_output", "what was found is told at once"
    beat(stage, run)
    stage.asked.end("Which address?")
    stage.quiet()
    assert numbers(stage) == list(range(len(stage.events)))
    assert run.response is not None
    assert run.response["output_text"] == "Which address?"
