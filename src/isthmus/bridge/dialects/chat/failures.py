"""Upstream errors → codes that Responses clients understand.

In: an error object or a non-2xx body. Out: `Failed`, or `UpstreamFailed` with the wait that was asked for. What each
code means stands in `errors.FAILURES`. The one thing worth knowing: a status outranks words. A 400 that speaks of a
property `capacity` is a 400, not an overloaded server; words only say which 400 it is, or speak where no status does.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from isthmus.bridge.deltas import Failed
from isthmus.bridge.dialects.chat.refused import describe, refused_field
from isthmus.errors import FAILURES, UpstreamFailed, code_of_status
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, unscrubbed

# As the servers word it: OpenAI and vLLM ("maximum context length is"), llama.cpp ("exceeds the available context
# size"), LM Studio ("context length of only"), Gemini ("exceeds the maximum number of tokens"), xAI ("maximum prompt
# length"), Kimi ("exceeded model token limit"), Qwen ("range of input length should be"), Anthropic ("prompt is too
# long"). The bare name of a field (`context_length`) is not among them.
_CONTEXT: Final = re.compile(
    r"context.?length.?exceeded|max(imum)? (context|prompt)"
    r"|context.?(length|window|size).{0,40}(exceed|limit|too|(is|of) (only )?\d)"
    r"|exceed.{0,60}(context|max_model_len|n_ctx|model token limit|maximum number of (input )?tokens)"
    r"|too many (input )?tokens|(prompt|input).{0,20}too long|range of input length",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    r"insufficient.{0,3}(quota|balance|credit)|quota.{0,12}exceeded|exceeded.{0,20}quota|out of credit", re.IGNORECASE
)
# Google calls its rate limits quotas: `GenerateRequestsPerMinutePerProjectPerModel-FreeTier`. Only a spent day, or a
# limit of none at all, is like money that is gone (ai.google.dev/gemini-api/docs/rate-limits, 2026-11-16).
_PER_MINUTE: Final = re.compile(r"per.?(minute|second)", re.IGNORECASE)
_SPENT: Final = re.compile(r"per.?(day|month)|\blimit: 0\b", re.IGNORECASE)
_RATE: Final = re.compile(r"rate.?limit|too many requests|throttl", re.IGNORECASE)
_READ: Final = 8 * 1024
"""So much of an error's text is looked at; what is cut off here is never shown."""
_SHOWN: Final = 2000
_EXCERPT: Final = 120
_OVERLOAD: Final = re.compile(r"overload|server.?busy|capacity", re.IGNORECASE)
# llama.cpp says with a 500 that the model takes no images, or that a flag is missing (ggml-org/llama.cpp#12947,
# #13566, #15377): the request is wrong there, and asking again changes nothing.
_OUR_REQUEST: Final = re.compile(
    r"(image|audio|video|file) input is not supported|unsupported content part type|param requires --jinja",
    re.IGNORECASE,
)
_MOST_TEXT: Final = 2000
_WAIT: Final = re.compile(r"(?:try again|retry) in (\d{1,9}(?:\.\d{1,9})?) ?(ms|s)\b", re.IGNORECASE)
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


def read_error(error: Any, scrub: Scrub = unscrubbed) -> Failed:
    """An error object (or text) inside a reply or stream; `scrub` takes our secrets out of its words."""
    message, words, status = _words(error, scrub)
    return Failed(message or "the upstream reported an error", classify(words, status, _code(error)))


def upstream_failure(
    status: int, body: bytes, *, provider: str, retry_after: float | None = None, scrub: Scrub = unscrubbed
) -> UpstreamFailed:
    """A non-2xx answer as our typed error. 401 and 403 are about our key: its text is never repeated."""
    error = _error_of(body)
    message, words, _ = _words(error, scrub)
    code = classify(words, status, _code(error))
    if code == "upstream_unauthorized":
        message = f"provider `{provider}` refused our credentials (HTTP {status}); check `providers.{provider}.api_key`"
    elif not message:
        message = f"provider `{provider}` answered HTTP {status}"
    if retry_after is None and FAILURES[code].retry:
        retry_after = _told_delay(error) or told_wait(message)
    metadata = {"provider": provider}
    if code == "invalid_prompt" and (field := refused_field(error)) is not None:
        metadata["refused"] = field  # the one who sent it on trust may ask again without it
    return UpstreamFailed(message, code=code, status=status, retry_after=retry_after, metadata=metadata)


def classify(words: str, status: int | None, said: str | None = None) -> str:
    """The code that says what a client can do about it; `said` is the vendor's own code, where it is one of ours."""
    by_status = code_of_status(status)
    meaning = FAILURES[by_status]
    if by_status == "upstream_unauthorized":
        return by_status
    known = FAILURES.get(said) if said is not None else None
    if said is not None and known is not None and known.upstream and (meaning.retry or not known.retry):
        return _quota_or_rate(words) if said == "insufficient_quota" else said
    if by_status == "rate_limit_exceeded":
        return _quota_or_rate(words) if _QUOTA.search(words) else by_status
    if by_status in ("invalid_prompt", "server_error") and _CONTEXT.search(words):
        return "context_length_exceeded"
    if by_status != "server_error":
        return by_status
    if _OUR_REQUEST.search(words):
        return "invalid_prompt"
    if _QUOTA.search(words):
        return _quota_or_rate(words)
    if _RATE.search(words):
        return "rate_limit_exceeded"
    return "server_is_overloaded" if _OVERLOAD.search(words) else "server_error"


def told_wait(message: str) -> float | None:
    """Seconds to wait, as some vendors only write them into their words."""
    found = _WAIT.search(message)
    return None if found is None else float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


def _quota_or_rate(words: str) -> str:
    passing = _PER_MINUTE.search(words) and not _SPENT.search(words)
    return "rate_limit_exceeded" if passing else "insufficient_quota"


def _error_of(body: bytes) -> Any:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body[:_MOST_TEXT].decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else text  # a page of a proxy says nothing that its status does not
    if isinstance(decoded, list) and decoded:
        decoded = decoded[0]
    if isinstance(decoded, dict):
        return decoded.get("error", decoded)
    return decoded


def excerpt(data: bytes, scrub: Scrub) -> str:
    """The beginning of bytes that nobody can read. Scrubbed first: a cut would hide a key from the scrubber."""
    return repr(scrub(data[:_READ].decode("utf-8", "backslashreplace"))[:_EXCERPT])


def _words(error: Any, scrub: Scrub) -> tuple[str, str, int | None]:
    """A message to show, all words to classify by, and a status if the vendor put one inside."""
    if isinstance(error, str):
        message = scrub(error[:_READ])[:_SHOWN]
        return message, message, None
    if not isinstance(error, dict):
        return "", "", None
    message = scrub(describe(error)[:_READ])
    code = error.get("code")
    quotas = [quota for detail in _details(error) for quota in _violated(detail)]
    words = " ".join(str(part) for part in (message, code, error.get("type"), *quotas) if part is not None)[:4000]
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    return message[:_SHOWN], words, status


def _code(error: Any) -> str | None:
    """The vendor's code, or its type, where it is one that we know as well."""
    if not isinstance(error, dict):
        return None
    return next(
        (said for name in ("code", "type") if isinstance(said := error.get(name), str) and said in FAILURES), None
    )


def _details(error: Any) -> list[JsonObject]:
    """The `google.rpc` details of an error: typed objects beside its message."""
    details = error.get("details") if isinstance(error, dict) else None
    return [detail for detail in details[:20] if isinstance(detail, dict)] if isinstance(details, list) else []


def _violated(detail: JsonObject) -> list[str]:
    """The names of the quotas that a `QuotaFailure` lists; they say over which time each one counts."""
    violations = detail.get("violations")
    found = violations[:20] if isinstance(violations, list) else []
    return [str(each.get("quotaId", "")) for each in found if isinstance(each, dict)]


def _told_delay(error: Any) -> float | None:
    """The `retryDelay` of a `google.rpc.RetryInfo`: `"11s"`, `"11.102306822s"`."""
    for detail in _details(error):
        found = _SECONDS.fullmatch(str(detail.get("retryDelay", "")))
        if found is not None:
            return float(found[1])
    return None
