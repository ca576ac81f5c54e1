"""`/metrics`: everything that is counted, as Prometheus reads it; and what the gateway knows of itself.

It is a look, not work: it takes no place, and is answered while everything else is refused. Where several workers
serve, whichever is asked answers for all of them, and waits a moment for those that do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.types import Receive, Scope, Send

from isthmus import __version__
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.observe.metrics.exposition import CONTENT_TYPES, choose_format, render
from isthmus.observe.metrics.meters import Labels, Reading
from isthmus.observe.metrics.process import process_probe
from isthmus.observe.outlet import lost_lines
from isthmus.server.http import header, send_bytes
from isthmus.server.options import ServerOptions

Seen = Iterator[tuple[str, Labels, float]]


class MetricsApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._meters = options.meters
        self._reporting = options.reporting

    async def show(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._meters is None:
            raise RequestRefused("there are no metrics here: `metrics.enabled` is false", code="not_found")
        format = choose_format(header(scope, b"accept"))
        up = await self._store_is_up()
        readings = self._meters.read(lambda: [("isthmus_store_up", (), up)])
        answering, silent = 1, 0
        if self._reporting is not None:
            told = await self._reporting.collect(readings)
            readings, answering, silent = told.readings, told.answering, told.silent
        workers: list[tuple[Labels, float]] = [(("answering",), answering), (("silent",), silent)]
        readings = [*readings, Reading("isthmus_workers", workers)]
        body = render(readings, format)
        await send_bytes(send, 200, body, kind=CONTENT_TYPES[format], headers={"cache-control": "no-store"})

    async def _store_is_up(self) -> bool:
        try:
            await self._gateway.store.check()
        except IsthmusError:
            return False
        return True


def look_at(gateway: Gateway) -> Seen:
    """What a process and its gateway know of themselves."""
    yield from process_probe()
    yield "isthmus_info", (__version__,), 1
    yield "isthmus_draining", (), gateway.draining
    yield "isthmus_log_lines_lost_total", (), lost_lines()
    running, waiting = gateway.runs.in_background
    yield "isthmus_background_runs", ("running",), running
    yield "isthmus_background_runs", ("queued",), waiting
    yield "isthmus_queue_length", ("aside",), gateway.aside.waiting
    for name, served in gateway.directory.served.items():
        load = served.load()
        yield "isthmus_upstream_connections", (name,), load.sent
        yield "isthmus_upstream_queue_length", (name,), load.waiting
        yield "isthmus_upstream_resting", (name,), load.resting
    for name, backlog in (gateway.deliveries.backlogs() if gateway.deliveries is not None else {}).items():
        yield "isthmus_webhook_backlog", (name, "waiting"), backlog.waiting
        yield "isthmus_webhook_backlog", (name, "given_up"), backlog.given_up
