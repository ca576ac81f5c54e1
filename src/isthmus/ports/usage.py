"""What a response used, as numbers: for everybody who counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Used = tuple[int, int, int, int]
"""Tokens of the input and the output; and of these, what was cached, and what was thought."""


def used_tokens(usage: Mapping[str, Any] | None) -> Used:
    if not usage:
        return 0, 0, 0, 0
    ins, outs = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    return (
        usage.get("input_tokens") or 0,
        usage.get("output_tokens") or 0,
        (ins.get("cached_tokens") or 0) if ins else 0,
        (outs.get("reasoning_tokens") or 0) if outs else 0,
    )
