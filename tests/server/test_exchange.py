"""One line for each request: who asked, what ran, how it ended, and how loud that is said."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from conduct.stage import Stage
from isthmus.bridge.deltas import Text, Usage, Used
from isthmus.bridge.types.clients import CODEX
from isthmus.conduct.run import Run
from isthmus.errors import ConfigError, IsthmusError, RequestRefused, UpstreamFailed
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.log import Told
from isthmus.server.exchange import Exchange, exchange_of


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


def line(exchange: Exchange, caplog: pytest.LogCaptureFixture) -> tuple[str, dict[str, Any]]:
    """The one line that it tells."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "isthmus.server"):
        exchange.tell()
    (record,) = caplog.records
    assert isinstance(record.msg, Told)
    assert record.msg.event == "request.done"
    return record.levelname.lower(), record.msg.facts


def finished(stage: Stage, ending: str) -> Run:
    run = stage.run_of("one", "two")
    reading = stage.read(run)
    if ending == "refused":
        for _ in range(2):
            stage.asked.fail(UpstreamFailed("it is full", code="server_is_overloaded"))
            stage.quiet()
        assert reading.exception() is not None
        return run
    stage.asked.fail(UpstreamFailed("it is full"))
    stage.quiet()
    stage.asked.say(Text("Hello"), Used(Usage(10, 20, 30, cached_tokens=4)))
    stage.quiet()
    if ending == "completed":
        stage.asked.end()
    elif ending == "failed":
        stage.asked.fail(UpstreamFailed("it broke off"))
    else:
        run.stop("cancelled")
    stage.quiet()
    assert reading.done()
    return run


def test_it_says_who_asked_for_what_and_how_long_it_took(caplog: pytest.LogCaptureFixture) -> None:
    exchange = Exchange("GET", "/v1/models")
    exchange.caller, exchange.status = Caller("ann", "key_1", client=CODEX), 200
    level, facts = line(exchange, caplog)
    took = facts.pop("ms")
    assert took >= 0
    assert (level, facts) == (
        "info",
        {
            "id": exchange.id,
            "caller": "ann",
            "key": "key_1",
            "client": "codex",
            "method": "GET",
            "path": "/v1/models",
            "status": 200,
        },
    )


def test_what_there_is_nothing_to_say_of_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    exchange = Exchange("GET", "/")
    assert exchange.caller is LOCAL
    _, facts = line(exchange, caplog)
    assert set(facts) == {"id", "caller", "method", "path", "ms"}


def test_every_request_has_an_id_of_its_own() -> None:
    ids = {Exchange("GET", "/").id for _ in range(100)}
    assert len(ids) == 100
    assert all(id.startswith("req_") for id in ids)


def test_a_client_that_left_is_said_to_have(caplog: pytest.LogCaptureFixture) -> None:
    exchange = Exchange("POST", "/v1/responses")
    exchange.left = True
    level, facts = line(exchange, caplog)
    assert (level, facts["left"]) == ("info", True)


@pytest.mark.parametrize(("ending", "level"), [("completed", "info"), ("cancelled", "info"), ("failed", "warning")])
def test_a_run_is_told_with_its_numbers(
    stage: Stage, ending: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    exchange = Exchange("POST", "/v1/responses")
    exchange.run, exchange.status = finished(stage, ending), 200
    told, facts = line(exchange, caplog)
    assert told == level
    assert facts["id"] == exchange.id != facts["response"] == "resp_1"
    assert (facts["provider"], facts["model"], facts["attempts"], facts["outcome"]) == ("two", "m", 2, ending)
    assert (facts["input_tokens"], facts["output_tokens"], facts["cached_tokens"]) == (10, 20, 4)
    assert (facts["degraded"], facts["ignored"]) == (0, 0)
    assert facts["first_ms"] == 0.0
    assert facts.get("reason") == ("it broke off" if ending == "failed" else None)


def test_a_refused_run_is_told_with_its_failure(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    exchange = Exchange("POST", "/v1/responses")
    exchange.run, exchange.status = finished(stage, "refused"), 503
    exchange.failure = exchange.run.failure
    level, facts = line(exchange, caplog)
    assert (level, facts["outcome"], facts["attempts"]) == ("warning", "refused", 2)
    assert (facts["code"], facts["reason"]) == ("server_is_overloaded", "it is full")


@pytest.mark.parametrize(
    ("failure", "status", "level"),
    [
        (RequestRefused("no `model`", param="model"), 400, "info"),
        (RequestRefused("gone", code="response_not_found"), 404, "info"),
        (UpstreamFailed("it is full", metadata={"provider": "zhipu"}), 502, "warning"),
        (UpstreamFailed("too long", code="context_length_exceeded"), 400, "warning"),
        (ConfigError("no key"), 500, "warning"),
        (IsthmusError("later", code="draining"), 503, "warning"),
        (None, 500, "warning"),
        (None, 499, "info"),
    ],
)
def test_a_failure_is_a_warning_unless_the_caller_can_mend_it(
    failure: IsthmusError | None, status: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    exchange = Exchange("POST", "/v1/responses")
    exchange.failure, exchange.status = failure, status
    told, facts = line(exchange, caplog)
    assert told == level
    if failure is not None:
        assert (facts["code"], facts["reason"]) == (failure.code, failure.message)
        assert facts.get("param") == failure.param
        assert facts.get("provider") == failure.provider


@pytest.mark.parametrize(
    ("path", "status", "level"),
    [("/health", 200, "debug"), ("/ready", 200, "debug"), ("/ready", 503, "warning"), ("/healthy", 404, "info")],
)
def test_a_probe_is_nobodys_news_unless_it_fails(
    path: str, status: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    exchange = Exchange("GET", path)
    exchange.status = status
    assert line(exchange, caplog)[0] == level


@pytest.mark.parametrize(("path", "hears"), [("/health", "info"), ("/v1/models", "warning")])
def test_what_nobody_hears_is_not_even_made(path: str, hears: str, caplog: pytest.LogCaptureFixture) -> None:
    class Silent:
        failed = False

        def ended(self) -> Any:
            raise AssertionError("made for nobody")

    exchange = Exchange("GET", path)
    exchange.run = Silent()
    with caplog.at_level(hears.upper(), "isthmus.server"):
        exchange.tell()
    assert caplog.records == []


def test_it_travels_with_its_request() -> None:
    exchange = Exchange("GET", "/")
    assert exchange_of({"isthmus.exchange": exchange}) is exchange
