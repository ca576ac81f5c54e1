"""What was sent for a request: kept, proven by its hashes, or only planned again."""

from __future__ import annotations

from typing import Any

import msgspec

from isthmus.observe.sent import answered_body, content_of, origin_of, sent_bytes
from isthmus.observe.traces.bodies import Bodies
from isthmus.ports.traced import Trace, TracedBody, TracedCall, TracedError, TraceSummary

KEY = b"the key of one installation"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
FAILED = TracedError("server_error", "no")


def trace(*calls: TracedCall) -> Trace:
    return Trace(summary=TraceSummary(id="req_1", at=0.0, ended_at=1.0), calls=calls)


def call(body: dict[str, Any], *, full: bool = False, error: TracedError | None = None) -> TracedCall:
    made = Bodies.of(KEY).read(body)
    if full:
        made = msgspec.structs.replace(made, content=msgspec.Raw(msgspec.json.encode(body)))
    return TracedCall("p", "m", 1, "first", 0.0, made, error=error)


def test_what_was_kept_is_given_back_byte_by_byte() -> None:
    kept = trace(call(BODY, full=True))
    assert sent_bytes(kept) == msgspec.json.encode(BODY)
    assert content_of(kept.calls[0].body) == BODY
    assert sent_bytes(trace(call(BODY))) is None
    assert sent_bytes(trace()) is None
    assert content_of(TracedBody()) is None


def test_of_several_the_first_that_was_answered_counts() -> None:
    other = call({"model": "n"}, error=FAILED)
    assert answered_body(trace(other, call(BODY), call({"model": "later"}))) == call(BODY).body
    assert answered_body(trace(other)) == other.body


def test_the_same_hashes_prove_that_it_was_sent() -> None:
    assert origin_of(trace(call(BODY)), BODY, KEY) == "proven"


def test_nothing_is_proven_by_another_body_another_key_or_no_trace() -> None:
    kept = trace(call(BODY))
    for changed in ({**BODY, "model": "n"}, {**BODY, "messages": BODY["messages"][:1]}, {**BODY, "seed": 1}):
        assert origin_of(kept, changed, KEY) == "planned"
    assert origin_of(kept, BODY, b"the key of another one") == "planned"
    assert origin_of(kept, BODY, None) == "planned"
    assert origin_of(None, BODY, KEY) == "planned"
    assert origin_of(trace(), BODY, KEY) == "planned"
