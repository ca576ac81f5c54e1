"""Reasoning and compaction items: what they hold in the clear, and what our own envelope keeps for us.

An envelope that does not open (another vendor's, or a forged one) is left out with a decision: sent
upstream it would be refused. One that we sealed for another provider gives its text, not its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.bridge.diagnostics import EMPTY, CompatibilityDecision
from isthmus.bridge.envelope import Sealed, unseal
from isthmus.bridge.history.parts import text_of, texts_of
from isthmus.bridge.types.history import Said, Thought, Words, join_texts
from isthmus.protocol.json import JsonObject

SUMMARY_NOTE: Final = "[summary of the conversation so far]"


def read_thought(
    item: JsonObject, path: str, envelope_key: bytes | None, provider: str, decisions: list[CompatibilityDecision]
) -> tuple[Thought, Mapping[str, Any]]:
    """The thought, and the vendor state of its turn's calls by the client's call id."""
    sealed = _open(item, path, envelope_key, decisions)
    text = join_texts(texts_of(item.get("content")))
    if not text and sealed is not None:
        text = sealed.text
    summarised = not text
    if summarised:
        text = join_texts(texts_of(item.get("summary")))
    if sealed is None:
        return Thought(path, text, summarised=summarised), EMPTY
    if sealed.provider != provider:
        if sealed.extras or sealed.calls:
            reason = f"the vendor state in it belongs to `{sealed.provider}`"
            decisions.append(_ignored(f"{path}.encrypted_content", reason))
        return Thought(path, text, summarised=summarised), EMPTY
    return Thought(path, text, sealed.extras, summarised), sealed.calls


def read_compaction(
    item: JsonObject, path: str, envelope_key: bytes | None, decisions: list[CompatibilityDecision]
) -> Said | None:
    """Our own compaction expands to its text; another's cannot be read by anyone here."""
    sealed = _open(item, path, envelope_key, decisions)
    text = sealed.text if sealed is not None else ""
    if text:
        return Said("user", (Words(f"{SUMMARY_NOTE}\n{text}"),), path)
    decisions.append(_ignored(path, "the compacted conversation in it cannot be read here"))
    return None


def _open(
    item: JsonObject, path: str, envelope_key: bytes | None, decisions: list[CompatibilityDecision]
) -> Sealed | None:
    envelope = text_of(item, "encrypted_content")
    if not envelope:
        return None
    sealed = unseal(envelope, envelope_key) if envelope_key is not None else None
    if sealed is None:
        decisions.append(_ignored(f"{path}.encrypted_content", "it was not sealed by this gateway, or was changed"))
    return sealed


def _ignored(path: str, reason: str) -> CompatibilityDecision:
    return CompatibilityDecision(path, "ignored", reason, code="bridge.item.ignored")
