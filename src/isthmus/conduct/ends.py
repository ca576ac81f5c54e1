"""How a run ends that did not come to its end by itself, and how an end is kept.

In: what rose, or why it was stopped. Out: the end that is told, or the failure of what has told nothing yet: there may
be another way, or a status. What could not be kept must not be believed to be.
"""

from __future__ import annotations

import logging

from isthmus.bridge.commands import Done
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.around import Save, Stop
from isthmus.conduct.attempt import Attempt
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.log import tell

log = logging.getLogger("isthmus.conduct")

_ELSEWHERE = "another gateway has taken this response over"


def stopped(reason: Stop | None, turn: Turn, now: int) -> Done:
    match reason:
        case "shutdown":
            failure = UpstreamFailed("the gateway is shutting down; try again", code="server_is_overloaded")
        case "timeout":
            failure = too_long()
        case "steered":
            return turn.steer_out(now)
        case "lost":
            failure = UpstreamFailed(_ELSEWHERE, code="server_error")
        case _:
            return turn.cancel(now)
    return turn.fail(failure, now)


def too_long() -> UpstreamFailed:
    return UpstreamFailed("the response took longer than allowed", code="upstream_timeout")


def explain(error: Exception, id: str, attempt: Attempt, *, inside: bool) -> IsthmusError:
    """Whatever rose, as a failure that a client may read. `inside`: it is told in a response, which has no word for
    whose bug it was; an HTTP answer does."""
    if isinstance(error, IsthmusError):
        failure = error
    else:
        tell(log, "error", "response.broken", id=id, trace=error)
        words = "the gateway failed while it made this response; its log says more"
        failure = UpstreamFailed(words) if inside else IsthmusError(words, code="internal_error")
    content, locate = failure.metadata.get("content"), attempt.locate
    if content is not None and failure.param is None and locate is not None:
        failure.param = locate(content)
    return failure


async def keep(done: Done, id: str, plan: Plan, save: Save, reason: Stop | None) -> tuple[Done, bool]:
    """The end that is told, and whether the run is somebody else's now."""
    try:
        # What was lost must not even try: whoever took it over may not have written yet.
        saved = None if reason == "lost" else await save(done, plan)
    except Exception as error:
        known = isinstance(error, IsthmusError)
        tell(log, "error", "response.save.failed", id=id, reason=error, trace=None if known else error)
        code, why = (error.code, str(error)) if isinstance(error, IsthmusError) else ("internal_error", "a bug")
        return done.unkept(code, f"the response could not be stored: {why}"), False
    if saved is None:
        return done.unkept("server_error", _ELSEWHERE), True
    return saved, False
