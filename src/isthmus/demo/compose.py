"""The demo model's reply, composed where it can stop nobody.

In: the body of a request, and how large its schemas may be. Out: a `Reply` or a `Refused`. A request with schemas in
it (tools, a JSON format) is a job for a worker process: making a value for a schema means compiling it, many times
over. One without is answered right here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds, check_bounds, check_bytes
from isthmus.demo.model import Reply, answer
from isthmus.demo.question import Refused
from isthmus.errors import RequestRefused, WorkNotDone
from isthmus.ports import Workers
from isthmus.protocol.json import JsonObject

KIND: Final = "demo"


class Composer:
    """Without `workers` everything is composed on the spot."""

    def __init__(self, workers: Workers | None, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        self._workers = workers
        self._bounds = bounds

    async def compose(self, body: JsonObject) -> Reply:
        """What the model replies; raises `Refused` for an HTTP error."""
        schemas = list(_schemas(body))
        _refuse_large(schemas, self._bounds)
        if self._workers is None or not (schemas or body.get("tools")):
            return answer(body)
        try:
            data = await self._workers.run(KIND, msgspec.json.encode(body))
        except WorkNotDone as error:
            if error.code == "workers_busy":
                raise Refused(503, error.message, "server_is_overloaded") from error
            if error.code == "work_failed":
                raise Refused(500, error.message, "server_error") from error
            words = f"the schemas of this request are more than the demo model can work on: {error.message}"
            raise Refused(400, words, "schema_too_large") from error
        told = msgspec.msgpack.decode(data, type=_Told)
        if told.reply is not None:
            return told.reply
        raise Refused(told.status, told.message, told.code)


def run_encoded(payload: bytes) -> bytes:
    """What a worker process calls."""
    try:
        return msgspec.msgpack.encode(_Told(reply=answer(msgspec.json.decode(payload))))
    except Refused as refused:
        return msgspec.msgpack.encode(_Told(status=refused.status, message=refused.message, code=refused.code))


class _Told(msgspec.Struct):
    reply: Reply | None = None
    status: int = 500
    message: str = ""
    code: str | None = None


def _schemas(body: JsonObject) -> Iterator[tuple[str, Any]]:
    """Every schema in a request, with its place."""
    tools = body.get("tools")
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        function = tool.get("function") if isinstance(tool, dict) else None
        parameters = function.get("parameters") if isinstance(function, dict) else None
        if isinstance(parameters, dict):
            yield f"tools[{at}].function.parameters", parameters
    given = body.get("response_format")
    wanted = given.get("json_schema") if isinstance(given, dict) else None
    if isinstance(wanted, dict) and "schema" in wanted:
        yield "response_format.json_schema.schema", wanted["schema"]


def _refuse_large(schemas: list[tuple[str, Any]], bounds: Bounds) -> None:
    try:
        for param, schema in schemas:
            check_bounds(schema, bounds, param)
            check_bytes(len(msgspec.json.encode(schema)), bounds, param)
    except RequestRefused as refused:
        raise Refused(400, refused.message, refused.code) from refused
