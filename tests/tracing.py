"""Reading traces of a running gateway: they are written a moment after their client has its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowing import Flow
from talking import Reply
from waiting import until

Json = dict[str, Any]
TRACES = "/v1/isthmus/traces"


def trace_of(flow: Flow, id: str, headers: Mapping[str, str] | None = None) -> Json:
    """The trace of a request, or of its response."""
    found: list[Json] = []

    def look() -> bool:
        answer = flow.request("GET", f"{TRACES}/{id}", None, headers or {})
        if answer.status == 200:
            found.append(answer.json)
        return answer.status == 200

    until(look, f"{id} was not traced")
    return found[-1]


def traces(flow: Flow, query: str = "", headers: Mapping[str, str] | None = None) -> list[Json]:
    answer = flow.request("GET", f"{TRACES}?{query}", None, headers or {})
    assert answer.status == 200, answer.body
    listed: list[Json] = answer.json["data"]
    return listed


def request_id(answer: Reply) -> str:
    return answer.headers["x-request-id"]


def words(value: Any) -> str:
    """Every text of a trace in one."""
    match value:
        case str():
            return value + "\n"
        case list():
            return "".join(map(words, value))
        case dict():
            return "".join(f"{name}\n{words(inner)}" for name, inner in value.items())
    return ""
