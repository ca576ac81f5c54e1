"""What must hold whatever comes: the judge of every case.

No failure of ours, no hang, work that is bounded by what came in, one terminal event, and what was told is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from bench.fuzz.bounds import exceeded_by_answer, exceeded_by_request
from bench.fuzz.case import Case
from bench.fuzz.house import MAX_BODY, Seen

from isthmus.errors import FAILURES, LONGEST_WAIT

BASE_LINES: Final = 40_000
LINES_PER_BYTE: Final = 4
"""Lines of Python for a byte that came in, from either side; an ordinary request takes about one."""
MOST_LINES: Final = 3_000_000
"""And never more than this: about half a second of the loop that everybody shares."""
BASE_CPU: Final = 20.0
"""Seconds: only what works outside of Python's own lines is caught by this, so a slow machine may have its time."""
SWELL: Final = 60
"""How many times larger than all that came in an answer may be, beside a fixed part."""
LONGEST_MESSAGE: Final = 5_000
TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")


def judge(case: Case, seen: Seen, limits: Mapping[str, int]) -> list[str]:
    """What is wrong with it; nothing: all is well."""
    found = [*_judge_work(seen), *(f"a bug in the log: {trace}" for trace in seen.traces)]
    if seen.sent:
        found += [f"{what} was let in" for what in exceeded_by_request(case, limits)]
    if seen.problem:
        return [seen.problem, *found]
    try:
        found += _judge_answer(case, seen)
        if seen.sent == 1:
            found += [f"{what} was taken whole" for what in _taken(case, seen, limits)]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        found.append(f"the answer has not the shape that it should: {error!r} in {seen.body[:300]!r}")
    return found


def _judge_work(seen: Seen) -> list[str]:
    found = []
    size = seen.asked + seen.answered
    allowed = min(BASE_LINES + LINES_PER_BYTE * size, MOST_LINES)
    if seen.lines > allowed:
        found.append(f"work: {seen.lines:,} lines for {size:,} bytes, where {allowed:,} are allowed")
    if seen.cpu > BASE_CPU:
        found.append(f"work: {seen.cpu:.1f} s of CPU time for {size:,} bytes")
    if len(seen.body) > 100_000 + SWELL * size:
        found.append(f"an answer of {len(seen.body):,} bytes to {size:,}")
    return found


def _judge_answer(case: Case, seen: Seen) -> list[str]:
    wait = seen.headers.get("retry-after", "1")
    found = [] if wait.isdigit() and int(wait) <= LONGEST_WAIT else [f"retry-after: {wait[:60]}"]
    if seen.asked > MAX_BODY and seen.status != 413:
        found.append(f"a body of {seen.asked:,} bytes was let in, where {MAX_BODY:,} are allowed")
    if seen.status >= 400:
        error = json.loads(seen.body)["error"]
        if len(error["message"]) > LONGEST_MESSAGE:
            found.append(f"an error of {len(error['message']):,} characters")
        if seen.status >= 500 and not _is_theirs(error["code"]):
            found.append(f"a failure of ours: {seen.status} {error}")
    elif "text/event-stream" in seen.headers.get("content-type", ""):
        found += _judge_stream(case, seen)
    elif not case.chat:
        found += _judge_response(json.loads(seen.body), seen)
    return found


def _taken(case: Case, seen: Seen, limits: Mapping[str, int]) -> list[str]:
    """Bounds of an answer that the response knows nothing of."""
    if seen.status != 200 or "text/event-stream" not in seen.headers.get("content-type", ""):
        return []
    ended = b'"finish_reason":"stop"' if case.chat else b'"type":"response.completed"'
    return exceeded_by_answer(case, limits) if ended in seen.body else []


def _is_theirs(code: str) -> bool:
    """Whether the provider (or a limit that was set on purpose) is to blame: everything else is ours."""
    return code in FAILURES and code not in ("work_failed", "store_unavailable")


def _judge_stream(case: Case, seen: Seen) -> list[str]:
    frames = [line[6:] for line in seen.body.split(b"\n") if line.startswith(b"data: ")]
    if case.chat:
        ended = bool(frames) and (frames[-1] == b"[DONE]" or "error" in json.loads(frames[-1]))
        return [] if ended else ["a chat stream without an end"]
    events = [json.loads(frame) for frame in frames if frame != b"[DONE]"]
    ends = [event for event in events if event["type"] in TERMINAL]
    if len(ends) != 1 or ends[0] is not events[-1]:
        return [f"{len(ends)} terminal events, the last event is `{events[-1]['type']}`"]
    found = []
    if [event["sequence_number"] for event in events] != list(range(len(events))):
        found.append("events are not numbered one by one")
    return found + _judge_response(ends[0]["response"], seen)


def _judge_response(response: dict[str, Any], seen: Seen) -> list[str]:
    found = []
    if response["status"] not in ("completed", "incomplete", "failed", "queued", "in_progress"):
        found.append(f"status `{response['status']}`")
    if (error := response.get("error")) is not None and not _is_theirs(error["code"]):
        found.append(f"a failure of ours: {error}")
    usage = response.get("usage")
    if usage and usage["total_tokens"] < usage["input_tokens"] + usage["output_tokens"]:
        found.append(f"usage does not add up: {usage}")
    if (
        response.get("store", True)
        and not response.get("background")
        and json.loads(seen.stored or b"null") != response
    ):
        found.append(f"told is not kept: {str(response)[:300]} but {(seen.stored or b'nothing')[:300]!r}")
    return found
