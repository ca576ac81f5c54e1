"""What was really sent for a request, as far as its trace knows it.

In: a trace, and a body that was planned again where its own was not kept. Out: the body, and where it comes from.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from isthmus.observe.traces.bodies import Bodies
from isthmus.ports.traced import Trace, TracedBody
from isthmus.protocol.json import JsonObject

Origin = Literal["sent", "proven", "planned"]
"""Where a body comes from: it was kept as it was sent; it was planned again, and every hash is that of what was sent;
it was planned again, and nobody knows whether it is the same."""


def content_of(body: TracedBody) -> Any:
    """What was captured of a body; `None`: nothing."""
    raw = bytes(body.content)
    return msgspec.json.decode(raw) if raw else None


def answered_body(trace: Trace) -> TracedBody | None:
    """The first body that was answered; of those that nobody answered, the first. `None`: nothing was sent."""
    calls = [call for call in trace.calls if call.error is None] or list(trace.calls)
    return calls[0].body if calls else None


def sent_bytes(trace: Trace) -> bytes | None:
    """That body as it went out, where it was kept."""
    body = answered_body(trace)
    return None if body is None else bytes(body.content) or None


def origin_of(trace: Trace | None, planned: JsonObject, installation: bytes | None) -> Origin:
    """Whether a body that was planned again is the one that was sent: if so, every piece of it has the same hash. Only
    who has the key of the installation can tell."""
    sent = None if trace is None else answered_body(trace)
    if sent is None or not sent.pieces or installation is None:
        return "planned"
    again = Bodies.of(installation).read(planned)
    return "proven" if (again.pieces, again.more) == (sent.pieces, sent.more) else "planned"
