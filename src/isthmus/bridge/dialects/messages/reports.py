"""What a Messages server reports beside its words (usage, citations, searches, errors) → one shape. Odd values never
raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.bridge.deltas import Failed, Usage
from isthmus.bridge.dialects import reports
from isthmus.bridge.dialects.chat.failures import read_error
from isthmus.bridge.dialects.reports import count_of, objects, text_of
from isthmus.protocol.items import Annotation
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub

_STATUS: Final[Mapping[Any, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""What the type of an error would have been as an HTTP status: inside a stream there is no other."""


def read_failure(error: Any, scrub: Scrub) -> Failed:
    status = _STATUS.get(error.get("type")) if isinstance(error, dict) else None
    return read_error(error if status is None else {**error, "code": status}, scrub)


def read_usage(usage: JsonObject) -> Usage | None:
    """`input_tokens` counts only what no cache had to do with; the whole input is the sum of all three."""
    fresh, written, known, made = (
        count_of(usage.get(name)) or 0
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    )
    given = fresh + written + known
    if not given and not made:
        return None
    details = usage.get("output_tokens_details")
    thought = count_of(details.get("thinking_tokens")) if isinstance(details, dict) else None
    return Usage(given, made, given + made, known, thought or 0, written)


def read_citation(citation: Any) -> Annotation | None:
    if not isinstance(citation, dict):
        return None
    if url := text_of(citation.get("url")):
        return reports.read_citation({"url": url, "title": text_of(citation.get("title"))})
    return {
        "type": "file_citation",
        "file_id": text_of(citation.get("file_id")),
        "filename": text_of(citation.get("document_title")),
        "index": count_of(citation.get("document_index")) or 0,
    }


def web_search_call(asked: JsonObject, found: JsonObject) -> JsonObject:
    """A search that the provider ran, with what it found; an object in place of the list says that it failed."""
    given, content = asked.get("input"), found.get("content")
    query = text_of(given.get("query")) if isinstance(given, dict) else ""
    sources = [{"type": "url", "url": text_of(one.get("url"))} for one in objects(content)]
    return {
        "type": "web_search_call",
        "status": "completed" if isinstance(content, list) else "failed",
        "action": {"type": "search", "query": query, "sources": sources},
    }
