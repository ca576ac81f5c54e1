"""Upstream errors → codes that Responses clients understand.

In: an error object or a non-2xx body. Out: `Failed`, or `UpstreamFailed` with the wait that was asked for. What each
code means stands in `errors.FAILURES`. The one thing worth knowing: a status outranks words. A 400 that speaks of a
property `capacity` is a 400, not an overloaded server; words only say which 400 it is, or speak where no status does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.deltas import Failed
from isthmus.bridge.dialects.reports import objects
from isthmus.bridge.types.history import THINKING
from isthmus.errors import FAILURES, UpstreamFailed, code_of_status
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, unscrubbed


class _Words:
    """A pattern that is compiled when words are first looked for (`re` remembers it): most gateways start without."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern

    def search(self, words: str) -> re.Match[str] | None:
        return re.search(self.pattern, words, re.IGNORECASE)


# As the servers word it: OpenAI and vLLM ("maximum context length is"), llama.cpp ("exceeds the available context
# size"), LM Studio ("context length of only"), Gemini ("exceeds the maximum number of tokens"), xAI ("maximum prompt
# length"), Kimi ("exceeded model token limit"), Qwen ("range of input length should be"), Anthropic ("prompt is too
# long"). The bare name of a field (`context_length`) is not among them.
_CONTEXT: Final = _Words(
    r"context.?length.?exceeded|max(imum)? (context|prompt)"
    r"|context.?(length|window|size).{0,40}(exceed|limit|too|(is|of) (only )?\d)"
    r"|exceed.{0,60}(context|max_model_len|n_ctx|model token limit|maximum number of (input )?tokens)"
    r"|too many (input )?tokens|(prompt|input).{0,20}too long|range of input length"
)
_QUOTA: Final = _Words(
    r"insufficient.{0,3}(quota|balance|credit)|quota.{0,12}exceeded|exceeded.{0,20}quota|out of credit"
)
# Google calls its rate limits quotas: `GenerateRequestsPerMinutePerProjectPerModel-FreeTier`. Only a spent day, or a
# limit of none at all, is like money that is gone (ai.google.dev/gemini-api/docs/rate-limits, 2026-11-16).
_PER_MINUTE: Final = _Words(r"per.?(minute|second)")
_SPENT: Final = _Words(r"per.?(day|month)|\blimit: 0\b")
_RATE: Final = _Words(r"rate.?limit|too many requests|throttl")
_OVERLOAD: Final = _Words(r"overload|server.?busy|capacity")
# Content that the model does not take, as the servers word it (2026-11-16): llama.cpp "image input is not supported"
# with a 500 (ggml-org/llama.cpp#12947, #13566), Mistral "Image input is not enabled for this model", vLLM "At most 0
# image(s) may be provided" and "is not a multimodal model", Ollama "missing data required for image input", LM Studio
# "Model does not support images", OpenAI "image_url is only supported by certain models", serde servers such as
# DeepSeek "unknown variant `image_url`", OpenRouter "No endpoints found that support image input" with a 404.
_KIND: Final = r"(?:input_)?(image|audio|video|file)"
_CONTENT: Final = _Words(
    rf"{_KIND}s? inputs? (?:is|are) not (?:supported|enabled)|(?:not|n't) (?:support|accept|take)s? {_KIND}"
    rf"|at most 0 {_KIND}|missing data required for {_KIND}|{_KIND}(?:_url)? is only supported by"
    rf"|unknown variant `{_KIND}|unsupported content (?:part )?type\W{{1,4}}{_KIND}|that support {_KIND}"
    r"|not a multimodal model"
)
# A name that the provider does not have, where its status is a 400: DeepSeek "Model Not Exist", Mistral "Invalid model:
# x", OpenRouter "x is not a valid model ID" (2026-11-17).
_MODEL: Final = _Words(r"^model not exist\b|^invalid model: |is not a valid model id\b")
# The request is wrong here, too, although llama.cpp says so with a 500 (#15377): asking again changes nothing.
_OUR_REQUEST: Final = _Words(rf"{_CONTENT.pattern}|unsupported content part type|param requires --jinja")
# What real servers say, gathered on 2026-11-16; `tests/bridge/dialects/chat/test_refused.py` has the words.
_NAMED: Final = (
    # OpenAI's words, which most gateways and hosts copy: "Unsupported parameter: 'parallel_tool_calls' is not supported
    # with this model." (evalstate/fast-agent#279). Pydantic's `loc` in vLLM, SGLang, Mistral (langgenius/dify#11795).
    ("parallel_tool_calls", _Words(r"\bparallel[_ ]tool[_ ](calls|use)\b")),
    # vLLM writes "tool choice" as two words (vllm-project/vllm#9986, #30613), LM Studio "Invalid tool_choice type"
    # (lmstudio-ai/lmstudio-bug-tracker#670), llama.cpp "tool_choice param requires --jinja flag".
    ("tool_choice", _Words(r"\btool[_ ]choice\b")),
    # LM Studio "'response_format.type' must be 'json_schema' or 'text'" (lmstudio-bug-tracker#169), llama.cpp
    # "response_format type must be one of", serde servers such as TGI "response_format: unknown variant". llama.cpp
    # calls it a grammar where tools are there too.
    (
        "response_format",
        _Words(
            r"\bresponse[_ ]format\b|\bjson[_ ](schema|object|mode)\b.{0,40}\b(not|un)[ -]?(supported|available)"
            r"|custom grammar constraints with tools"
        ),
    ),
)
_NOT_TAKEN: Final = _Words(
    r"\bnot (\w+ ){0,2}(support|permit|allow|availab|implement|recogni[sz]|enabl|accept|valid)"
    r"|n't (support|allow|accept)|unsupported|unavailable|unknown|unexpected|unrecogni[sz]ed|extra (inputs|fields)"
    r"|forbidden|must (be|either)|should be|only|requires?\b|invalid|cannot|expected|disabled"
)
# Anthropic of a block that was signed elsewhere, or changed: "messages.1.content.0: Invalid `signature` in `thinking`
# block", "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified".
_SIGNATURE: Final = _Words(r"invalid `?signature`? in `?thinking|thinking`? blocks? .{0,80}cannot be modified")
# "Invalid schema for response_format 'answer': …" (OpenAI, Groq), "response_format.json_schema.schema: …".
_INSIDE: Final = _Words(
    r"schema for (the )?response_format|invalid (json )?schema|json_schema\.(schema|name)|\bproperties\b"
    r"|required property|no tool|unknown tool|not (found|present|among|in the|one of the)"
    r"|tools? (is|are|must|cannot be) (empty|provided|set)"
)
_BY_WORDS: Final[Mapping[str, Sequence[tuple[str, _Words]]]] = {
    "rate_limit_exceeded": [("insufficient_quota", _QUOTA)],
    "invalid_prompt": [("model_not_found", _MODEL), ("context_length_exceeded", _CONTEXT)],
    "model_not_found": [("invalid_prompt", _CONTENT)],
    "server_error": [
        ("context_length_exceeded", _CONTEXT),
        ("invalid_prompt", _OUR_REQUEST),
        ("insufficient_quota", _QUOTA),
        ("rate_limit_exceeded", _RATE),
        ("server_is_overloaded", _OVERLOAD),
    ],
}
"""What words may make of the code that the status gives."""
_READ: Final = 8 * 1024  # so much of an error's text is looked at; what is cut off here is never shown
_SHOWN: Final = 2000
_EXCERPT: Final = 120
_WAIT: Final = _Words(r"(?:try again|retry) in (\d{1,9}(?:\.\d{1,9})?) ?(ms|s)\b")
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


def read_error(error: Any, scrub: Scrub = unscrubbed) -> Failed:
    """An error object (or text) inside a reply or stream; `scrub` takes our secrets out of its words."""
    message, words, said = _read_words(error, scrub)
    inside = error.get("code") if isinstance(error, dict) else None
    status = inside if isinstance(inside, int) and 400 <= inside < 600 else None
    return Failed(message or "the upstream reported an error", classify(words, status, said))


def upstream_failure(
    status: int,
    body: bytes,
    *,
    provider: str,
    retry_after: float | None = None,
    scrub: Scrub = unscrubbed,
    credential: str = "",
) -> UpstreamFailed:
    """A non-2xx answer as our typed error. 401 and 403 are about our key: its text is never repeated. `credential` says
    in words what the provider was sent, for whoever has to put it right."""
    error = _error_of(body)
    message, words, said = _read_words(error, scrub)
    code = classify(words, status, said)
    if code == "upstream_unauthorized":
        sent = f"it was sent {credential}" if credential else f"check `providers.{provider}.api_key`"
        message = f"provider `{provider}` refused our credentials (HTTP {status}); {sent}"
    elif not message:
        message = f"provider `{provider}` answered HTTP {status}"
    if retry_after is None and FAILURES[code].retry:
        retry_after = _told_delay(error) or told_wait(message)
    metadata = {"provider": provider}
    if code == "invalid_prompt":
        if (field := _refused_field(error)) is not None:
            metadata["refused"] = field  # the one who sent it on trust may ask again without it
        if (content := _refused_content(words)) is not None:
            metadata["content"] = content  # the one who knows the request can say where it stands
    return UpstreamFailed(message, code=code, status=status, retry_after=retry_after, metadata=metadata)


def classify(words: str, status: int | None, said: str | None = None) -> str:
    """The code that says what a client can do about it; `said` is the vendor's own code, where it is one of ours."""
    by_status = code_of_status(status)
    if by_status == "upstream_unauthorized":
        return by_status
    known = FAILURES.get(said) if said is not None else None
    if said is not None and known is not None and known.upstream and (FAILURES[by_status].retry or not known.retry):
        code = said
    else:
        code = next((code for code, pattern in _BY_WORDS.get(by_status, ()) if pattern.search(words)), "")
    passing = code == "insufficient_quota" and _PER_MINUTE.search(words) and not _SPENT.search(words)
    return "rate_limit_exceeded" if passing else code or by_status


def told_wait(message: str) -> float | None:
    """Seconds to wait, as some vendors only write them into their words."""
    found = _WAIT.search(message)
    return None if found is None else float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


def excerpt(data: bytes, scrub: Scrub) -> str:
    """The beginning of bytes that nobody can read. Scrubbed first: a cut would hide a key from the scrubber."""
    return repr(scrub(data[:_READ].decode("utf-8", "backslashreplace"))[:_EXCERPT])


def _refused_field(error: Any) -> str | None:
    """The field of our request that the error is about, if it says that the server does not take it. A complaint about
    what a client wrote inside it (a schema that is no schema) is the client's to hear: leaving it out would hide it."""
    words = error if isinstance(error, str) else _describe(error) if isinstance(error, dict) else ""
    if _SIGNATURE.search(words):
        return THINKING
    if not _NOT_TAKEN.search(words) or _INSIDE.search(words):
        return None
    param = error.get("param") if isinstance(error, dict) else None
    named = [field for field, pattern in _NAMED if pattern.search(str(param) if isinstance(param, str) else words)]
    return named[0] if len(named) == 1 else None


def _refused_content(words: str) -> str | None:
    """The kind of content that the model does not take."""
    found = _CONTENT.search(words)
    return None if found is None else next((kind.lower() for kind in found.groups() if kind), "image")


def _describe(error: JsonObject) -> str:
    """The words of an error object, also where they are a list of Pydantic's: `body.tool_choice: Extra inputs …`."""
    for field in ("message", "msg", "detail", "error"):
        value = error.get(field)
        if isinstance(value, str) and value:
            return value
        if told := [_spell(each) for each in objects(value)[:5] if isinstance(each.get("msg"), str)]:
            return "; ".join(told)
    return ""


def _spell(problem: JsonObject) -> str:
    place = problem.get("loc")
    path = ".".join(str(part) for part in place[:10]) if isinstance(place, list) else ""
    return f"{path}: {problem['msg']}" if path else str(problem["msg"])


def _error_of(body: bytes) -> Any:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body[:_SHOWN].decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else text  # a page of a proxy says nothing that its status does not
    if isinstance(decoded, list) and decoded:
        decoded = decoded[0]
    return decoded.get("error", decoded) if isinstance(decoded, dict) else decoded


def _read_words(error: Any, scrub: Scrub) -> tuple[str, str, str | None]:
    """A message to show, all words to classify by, and the vendor's code (or type) where it is one of ours, too."""
    if isinstance(error, str):
        message = scrub(error[:_READ])[:_SHOWN]
        return message, message, None
    if not isinstance(error, dict):
        return "", "", None
    message = scrub(_describe(error)[:_READ])
    names = [error.get("code"), error.get("type")]
    violations = (violated for detail in _details(error) for violated in objects(detail.get("violations"))[:20])
    # The names of violated quotas say over which time each one counts.
    quotas = [str(violated.get("quotaId", "")) for violated in violations]
    words = " ".join(str(part) for part in (message, *names, *quotas) if part is not None)[:4000]
    return message[:_SHOWN], words, next((name for name in names if isinstance(name, str) and name in FAILURES), None)


def _details(error: Any) -> list[JsonObject]:
    """The `google.rpc` details of an error: typed objects beside its message."""
    return objects(error.get("details"))[:20] if isinstance(error, dict) else []


def _told_delay(error: Any) -> float | None:
    """The `retryDelay` of a `google.rpc.RetryInfo`: `"11s"`, `"11.102306822s"`."""
    found = (_SECONDS.fullmatch(str(detail.get("retryDelay", ""))) for detail in _details(error))
    return next((float(delay[1]) for delay in found if delay is not None), None)
