"""`/v1/isthmus/usage`: what was used and what it cost, for its owners; of everybody, for the operator."""

from __future__ import annotations

import time
from typing import Final

from starlette.types import Receive, Scope, Send

from isthmus.access.report import MOST_ROWS, as_csv, read_question, row_of, total_of
from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.server.callers import ADMIN, caller_of
from isthmus.server.http import raw_headers, send_json
from isthmus.server.options import ServerOptions, query

FORMATS: Final = ("json", "csv")


class UsageApi:
    def __init__(self, gateway: Gateway, options: ServerOptions) -> None:
        self._gateway = gateway
        self._options = options

    async def show(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = query(scope)
        form = asked.get("format", "json")
        if form not in FORMATS:
            raise RequestRefused("`format` must be `json` or `csv`", code="invalid_value", param="format")
        question, owner = read_question(asked, time.time()), self._owner(scope)
        await self._gateway.gates.written()
        uses = await self._gateway.store.uses(**question.asked(), owner=owner, most=MOST_ROWS)
        if form == "csv":
            await send_csv(send, as_csv(uses, question.by))
            return
        rows = [row_of(use, question.by) for use in uses]
        answer = {"object": "list", "since": question.since, "until": question.until, "by": list(question.by)}
        total = row_of(total_of(uses), ())
        await send_json(send, 200, {**answer, "data": rows, "total": total, "has_more": len(uses) >= MOST_ROWS})

    def _owner(self, scope: Scope) -> str | None:
        caller = caller_of(scope)
        alone = self._options.local_only and not self._options.keys.needed
        return None if alone or caller.scopes >= ADMIN else caller.owner


async def send_csv(send: Send, text: str) -> None:
    headers = {"content-type": "text/csv; charset=utf-8", "content-disposition": 'attachment; filename="usage.csv"'}
    await send({"type": "http.response.start", "status": 200, "headers": raw_headers(headers)})
    await send({"type": "http.response.body", "body": text.encode()})
