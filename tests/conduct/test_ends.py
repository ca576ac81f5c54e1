"""How a run ends that did not come to its end by itself, and how an end is kept."""

from __future__ import annotations

from typing import Any

import pytest

from conduct.stage import Stage
from isthmus.conduct.ends import explain, keep, stopped
from isthmus.errors import IsthmusError, UpstreamFailed


class Told:
    """A turn that says which end it was asked for."""

    started = True

    def __getattr__(self, name: str) -> Any:
        return lambda *given: (name, *(getattr(each, "code", each) for each in given))


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("shutdown", ("fail", "server_is_overloaded", 7)),
        ("timeout", ("fail", "upstream_timeout", 7)),
        ("lost", ("fail", "server_error", 7)),
        ("steered", ("steer_out", 7)),
        ("cancelled", ("cancel", 7)),
        ("left", ("cancel", 7)),
        (None, ("cancel", 7)),
    ],
)
def test_every_reason_has_its_end(reason: Any, end: Any) -> None:
    turn: Any = Told()
    assert stopped(reason, turn, 7) == end


class Way:
    def __init__(self, where: str | None = None) -> None:
        self.locate = None if where is None else lambda kind: f"{where}.{kind}"


@pytest.mark.parametrize(
    ("inside", "kind", "code"), [(True, UpstreamFailed, "server_error"), (False, IsthmusError, "internal_error")]
)
def test_a_bug_is_told_without_its_details(
    inside: bool, kind: type, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    way: Any = Way()
    failure = explain(ValueError("a secret"), "resp_1", way, inside=inside)
    assert (type(failure), failure.code, "a secret" in failure.message) == (kind, code, False)
    assert "response.broken" in caplog.text


@pytest.mark.parametrize(
    ("param", "where", "told"), [(None, "input[0]", "input[0].image"), ("mine", "input[0]", "mine"), (None, None, None)]
)
def test_content_that_is_refused_is_found_in_the_request(param: Any, where: Any, told: Any) -> None:
    way: Any = Way(where)
    failure = UpstreamFailed("no images", metadata={"content": "image"})
    failure.param = param
    assert explain(failure, "resp_1", way, inside=True) is failure
    assert failure.param == told


def end_of(stage: Stage) -> tuple[Any, Any]:
    run = stage.run_of()
    return run._turn.cancel(1), run.plan


def test_what_was_saved_is_told_and_what_was_lost_is_not_even_tried(stage: Stage) -> None:
    done, plan = end_of(stage)
    asked = []

    async def save(end: Any, of: Any) -> Any:
        asked.append(end)
        return end

    assert stage.run(keep(done, "resp_1", plan, save, None)) == (done, False)
    told, lost = stage.run(keep(done, "resp_1", plan, save, "lost"))
    assert (lost, len(asked)) == (True, 1)
    assert told.response["status"] == "failed"


@pytest.mark.parametrize("error", [IsthmusError("full", code="store_unavailable"), ValueError("a bug")])
def test_what_could_not_be_kept_is_told_as_failed(
    stage: Stage, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    done, plan = end_of(stage)

    async def save(end: Any, of: Any) -> Any:
        raise error

    told, lost = stage.run(keep(done, "resp_1", plan, save, None))
    assert (told.response["status"], lost) == ("failed", False)
    assert "could not be stored" in told.response["error"]["message"]
    assert "response.save.failed" in caplog.text


def test_what_somebody_else_has_taken_over_is_lost(stage: Stage) -> None:
    done, plan = end_of(stage)

    async def save(end: Any, of: Any) -> Any:
        return None

    told, lost = stage.run(keep(done, "resp_1", plan, save, None))
    assert (lost, told.response["error"]["code"]) == (True, "server_error")
