"""Log probabilities as vendors report them → the shape that Responses clients read. Odd entries never raise."""

from __future__ import annotations

from typing import Any

from isthmus.protocol.items import Logprob, TopLogprob


def read_logprobs(entries: Any) -> list[Logprob] | None:
    """One object for each token, with its alternatives; `None` where there is nothing of the kind."""
    if not isinstance(entries, list):
        return None
    return [
        {**_token(entry), "top_logprobs": [_token(top) for top in _list(entry.get("top_logprobs"))]}
        for entry in entries
        if isinstance(entry, dict)
    ]


def _token(entry: dict[str, Any]) -> TopLogprob:
    return {
        "token": entry.get("token", ""),
        "bytes": entry.get("bytes") or [],
        "logprob": entry.get("logprob", 0.0),
    }


def _list(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
