"""What vendors report beside their words (usage, log probabilities, citations) → one shape. Odd values never raise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Usage, VendorExtra
from isthmus.protocol.items import Annotation, Logprob, Phase, TopLogprob
from isthmus.protocol.json import JsonObject

_MOST: Final = 2**53
"""No count reaches this, and every reader of JSON can tell those below it apart."""


def read_usage(usage: Any, rules: ReplyRules) -> Usage | None:
    """One `Usage`, by the field paths of the model's data; what is missing of the totals is computed."""
    if not isinstance(usage, dict):
        return None
    given_input = count_of(usage.get("prompt_tokens", usage.get("input_tokens")))
    given_output = count_of(usage.get("completion_tokens", usage.get("output_tokens")))
    total = count_of(usage.get("total_tokens"))
    if not given_input and not given_output and not total:
        return None  # none at all, or zeros that a vendor puts on every chunk (MiniMax)
    output = given_output if given_output is not None else max((total or 0) - (given_input or 0), 0)
    input_ = given_input if given_input is not None else max((total or 0) - output, 0)
    # xAI and Gemini leave the tokens of thinking out of `completion_tokens`, but not out of the total
    # (vercel/ai#12425, any-llm#1290, read 2026-11-16); in Responses they are output. And a total is never below
    # its parts.
    total = max(total or 0, input_ + output)
    return Usage(
        input_tokens=input_,
        output_tokens=total - input_,
        total_tokens=total,
        cached_tokens=_first(usage, rules.cached_tokens, "input_tokens_details.cached_tokens"),
        reasoning_tokens=_first(usage, rules.reasoning_tokens, "output_tokens_details.reasoning_tokens"),
        cache_write_tokens=count_of(usage.get("cache_creation_input_tokens")) or 0,
    )


def _first(usage: JsonObject, paths: Iterable[str], usual: str) -> int:
    for name, inside in _places((*paths, usual)):
        value = usage.get(name)
        if value is None:
            continue
        for each in inside:
            value = value.get(each) if isinstance(value, dict) else None
        if value is not None and (count := count_of(value)) is not None:
            return count
    return 0


@lru_cache(256)
def _places(paths: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each path as its first name and those inside; the models' data has a few dozen of them."""
    return tuple((name, tuple(inner)) for name, *inner in (path.split(".") for path in paths))


def count_of(value: Any) -> int | None:
    if type(value) is not int and not isinstance(value, float):
        return None
    return int(value) if 0 <= value < _MOST else None


def logprobs_of(text: str, logprobs: list[Logprob]) -> list[Logprob]:
    """Those of a text at the end of what was sampled: where a server parts the thoughts from the text, it still lists
    the tokens of both (llama.cpp in whole replies, 2026-11-16)."""
    sampled = "".join(entry["token"] for entry in logprobs)
    before = len(sampled) - len(text)
    if before <= 0 or not sampled.endswith(text):
        return logprobs
    at = 0
    for index, entry in enumerate(logprobs):
        at += len(entry["token"])
        if at > before:
            return logprobs[index:]
    return logprobs


def read_logprobs(entries: Any) -> list[Logprob] | None:
    """One object for each token, with its alternatives; `None` where there is nothing of the kind."""
    if not isinstance(entries, list):
        return None
    return [
        {**_token(entry), "top_logprobs": [_token(top) for top in objects(entry.get("top_logprobs"))]}
        for entry in objects(entries)
    ]


def _token(entry: JsonObject) -> TopLogprob:
    return {"token": entry.get("token", ""), "bytes": entry.get("bytes") or [], "logprob": entry.get("logprob", 0.0)}


def read_annotations(given: Any) -> list[Annotation]:
    """Citations that clients can read; a web citation gets all of its fields, whatever the vendor left out."""
    return [
        read_citation(each) if each["type"] == "url_citation" else each
        for each in objects(given)
        if isinstance(each.get("type"), str)
    ]


def read_citation(source: JsonObject) -> JsonObject:
    return {
        "type": "url_citation",
        "url": str(source.get("url") or ""),
        "title": str(source.get("title") or ""),
        "start_index": count_of(source.get("start_index")) or 0,
        "end_index": count_of(source.get("end_index")) or 0,
    }


def seal(item: Mapping[str, Any]) -> VendorExtra:
    """An item's encrypted reasoning, as it is taken back: it travels with the item that it belongs to."""
    kept = {name: item[name] for name in ("type", "id", "summary", "encrypted_content") if name in item}
    return VendorExtra("encrypted_content", [{"summary": [], **kept}])


def read_phase(given: Any) -> Phase | None:
    """`commentary` or `final_answer`: what clients know."""
    return given if given in ("commentary", "final_answer") else None


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
