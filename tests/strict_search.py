"""The search engines, as strict as they are: real HTTP that refuses a wrong key, an unknown field, a wrong value.

Shapes and refusals as their pages say (the files in `providers/data/search` name them; read on 2026-11-17).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from isthmus.testing import Answer, Step, reply
from isthmus.testing.requests import RecordedRequest

Json = dict[str, Any]
KEY: Final = "the-very-secret-search-key-0123456789"
PATHS: Final = {
    "brave": "/res/v1/web/search",
    "exa": "/search",
    "searxng": "/search",
    "tavily": "/search",
    "zhipu": "/web_search",
}
PAGES: Final = [
    {"url": "https://otters.example/play", "title": "Otters at play", "words": "They slide down banks.", "day": 3},
    {"url": "https://rivers.example/otters", "title": "Rivers & otters", "words": "Where they live.", "day": 5},
    {"url": "https://docs.otters.example/food", "title": "What they eat", "words": "Fish, mostly.", "day": 9},
]


def answer_of(engine: str, pages: Iterable[Mapping[str, Any]] = PAGES) -> Json:
    """What the engine answers with these pages."""
    found = list(pages)
    match engine:
        case "brave":
            results = [
                {
                    "type": "search_result",
                    "url": each["url"],
                    "title": each["title"].replace("&", "&amp;"),
                    "description": f"<strong>{each['words']}</strong>",
                    "page_age": f"2026-11-{each['day']:02}T00:00:00",
                }
                for each in found
            ]
            return {"type": "search", "query": {"original": "?"}, **({"web": {"results": results}} if found else {})}
        case "exa":
            results = [
                {
                    "id": each["url"],
                    "url": each["url"],
                    "title": each["title"],
                    "highlights": [each["words"]],
                    "publishedDate": f"2026-11-{each['day']:02}T00:00:00.000Z",
                }
                for each in found
            ]
            return {"requestId": "r", "results": results, "costDollars": {"total": 0.005}}
        case "searxng":
            results = [
                {
                    "url": each["url"],
                    "title": each["title"],
                    "content": each["words"],
                    "publishedDate": f"2026-11-{each['day']:02}T00:00:00",
                    "engine": "dummy",
                }
                for each in found
            ]
            return {"query": "?", "number_of_results": 0, "results": results, "answers": [], "infoboxes": []}
        case "tavily":
            results = [
                {"url": each["url"], "title": each["title"], "content": each["words"], "score": 0.9} for each in found
            ]
            return {"query": "?", "answer": None, "images": [], "results": results, "response_time": 0.4}
    results = [
        {
            "link": each["url"],
            "title": each["title"],
            "content": each["words"],
            "media": "",
            "publish_date": f"2026-11-{each['day']:02}",
        }
        for each in found
    ]
    return {"id": "i", "created": 1, "request_id": "r", "search_intent": [], "search_result": results}


def strict(engine: str, pages: Iterable[Mapping[str, Any]] = PAGES) -> Callable[[RecordedRequest], Step]:
    """Its server, for one request after another."""
    check = _CHECKS[engine]

    def handle(request: RecordedRequest) -> Step:
        if request.path != PATHS[engine]:
            return reply({"detail": "Not Found"}, status=404)
        return check(request) or reply(answer_of(engine, pages))

    return handle


def _brave(request: RecordedRequest) -> Answer | None:
    def refuse(code: str, detail: str) -> Answer:
        error = {"id": "e", "status": 422, "code": code, "detail": detail}
        return reply({"type": "ErrorResponse", "error": error, "time": 1}, status=422)

    if request.method != "GET":
        return reply({}, status=405)
    if request.headers.get("x-subscription-token") != KEY:
        return refuse("SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
    said = {name: values[0] for name, values in request.query.items()}
    known = {"q", "count", "freshness", "result_filter", "text_decorations", "offset", "country", "search_lang"}
    for name in said.keys() - known:
        return refuse("VALIDATION", f"Unable to validate request parameter(s): {name}")
    if not 0 < len(said.get("q", "")) <= 400 or len(said["q"].split()) > 50:
        return refuse("VALIDATION", "Unable to validate request parameter(s): q")
    if not 1 <= int(said.get("count", "20")) <= 20:
        return refuse("VALIDATION", "Unable to validate request parameter(s): count")
    if said.get("freshness", "pd") not in ("pd", "pw", "pm", "py"):
        return refuse("VALIDATION", "Unable to validate request parameter(s): freshness")
    return None


def _tavily(request: RecordedRequest) -> Answer | None:
    def refuse(status: int, words: str) -> Answer:
        return reply({"detail": {"error": words}}, status=status)

    if request.headers.get("authorization") != f"Bearer {KEY}":
        return refuse(401, "Unauthorized: missing or invalid API key.")
    body = request.json
    known = {
        *("query", "max_results", "include_domains", "exclude_domains", "start_date", "end_date", "country"),
        *("search_depth", "topic", "time_range"),
    }
    for name in body.keys() - known:
        return refuse(422, f"extra fields not permitted: {name}")
    if not 0 < len(body.get("query", "")) <= 400:
        return refuse(400, "Query is too long. Max query length is 400 characters.")
    if not 0 <= body.get("max_results", 5) <= 20:
        return refuse(400, "Invalid max results.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", body.get("start_date", "2026-01-01")):
        return refuse(400, "Invalid start date.")
    if body.get("country", "germany") not in ("germany", "united states", "france"):
        return refuse(400, "Invalid country.")
    return None


def _exa(request: RecordedRequest) -> Answer | None:
    def refuse(status: int, tag: str, words: str) -> Answer:
        return reply({"requestId": "r", "error": words, "tag": tag}, status=status)

    if request.headers.get("x-api-key") != KEY:
        return refuse(401, "INVALID_API_KEY", "Invalid API key")
    body = request.json
    known = {"query", "numResults", "includeDomains", "excludeDomains", "startPublishedDate", "userLocation"}
    for name in body.keys() - known - {"contents", "type", "category"}:
        return refuse(400, "INVALID_REQUEST_BODY", f"Unrecognized key: {name}")
    if not body.get("query") or not 1 <= body.get("numResults", 10) <= 100:
        return refuse(400, "INVALID_REQUEST_BODY", "Invalid request body")
    if not re.fullmatch(r"[A-Z]{2}", body.get("userLocation", "US")):
        return refuse(400, "INVALID_REQUEST_BODY", "userLocation must be a two-letter code")
    return None


def _zhipu(request: RecordedRequest) -> Answer | None:
    def refuse(status: int, code: str, words: str) -> Answer:
        return reply({"error": {"code": code, "message": words}}, status=status)

    if request.headers.get("authorization") != f"Bearer {KEY}":
        return refuse(401, "1000", "Authentication Failed")
    body = request.json
    known = {
        *("search_query", "search_engine", "search_intent", "count", "search_domain_filter", "search_recency_filter"),
        *("content_size", "request_id", "user_id"),
    }
    for name in body.keys() - known:
        return refuse(400, "1210", f"unknown parameter {name}")
    if not 0 < len(body.get("search_query", "")) <= 70:
        return refuse(400, "1210", "search_query is longer than 70 characters")
    if body.get("search_engine") not in ("search_std", "search_pro", "search_pro_sogou", "search_pro_quark"):
        return refuse(400, "1701", "search_engine is missing")
    if not isinstance(body.get("search_domain_filter", ""), str) or not 1 <= body.get("count", 10) <= 50:
        return refuse(400, "1210", "invalid parameter")
    if body.get("search_recency_filter", "noLimit") not in ("oneDay", "oneWeek", "oneMonth", "oneYear", "noLimit"):
        return refuse(400, "1210", "search_recency_filter is wrong")
    return None


def _searxng(request: RecordedRequest) -> Answer | None:
    said = {name: values[0] for name, values in request.query.items()}
    if said.get("format") != "json":
        return Answer((b"<h1>Forbidden</h1>",), 403, {"content-type": "text/html"})
    if not said.get("q"):
        return reply({"error": "No query"}, status=400)
    if said.keys() - {"q", "format", "time_range", "language", "pageno", "categories", "engines", "safesearch"}:
        return reply({"error": "Invalid settings"}, status=400)
    if said.get("time_range", "day") not in ("day", "week", "month", "year"):
        return reply({"error": "Invalid settings"}, status=400)
    return None


_CHECKS: Final = {"brave": _brave, "exa": _exa, "searxng": _searxng, "tavily": _tavily, "zhipu": _zhipu}
