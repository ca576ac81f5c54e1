"""What operators do over HTTP and on the page leaves a deed, and what cannot be noted is not done."""

from __future__ import annotations

from isthmus.errors import StoreUnavailable
from isthmus.ports.keys import Deed
from keyed_gateway import CHIEF, keyed_gateway


def test_capture_is_noted_and_where_it_cannot_be_it_is_not_switched() -> None:
    with keyed_gateway() as keyed:
        store, tracing = keyed.server.gateway.store, keyed.server.gateway.tracing
        assert tracing is not None
        assert keyed.chief.post("/v1/isthmus/traces/capture", {"seconds": 60}).status == 200
        (deed,) = keyed.chief.get("/v1/isthmus/audit").json["data"]
        assert (deed["action"], deed["details"]["seconds"]) == ("trace.capture", "60")
        assert deed["actor"] != CHIEF

        async def fail(deed: Deed, *, most: int = 0) -> None:
            raise StoreUnavailable("it is full")

        until = tracing.capturing().full_until
        store.note_deed = fail  # type: ignore[method-assign]
        assert keyed.chief.code("POST", "/v1/isthmus/traces/capture", {"seconds": 900}) == (503, "store_unavailable")
        assert tracing.capturing().full_until == until
