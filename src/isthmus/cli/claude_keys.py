"""What Claude Code is told about a gateway: the variables that it reads, and what they are set to.

Seen with Claude Code 2.1.325 on 2026-11-17: the `env` of its settings file wins over the variables that it was started
with, `--settings` wins over that file, and an empty value is as good as none. A window that it is not told of is taken
for 1,000,000 tokens, so that it would compact a conversation too late.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from isthmus.providers.codex_catalog import DEFAULT_CONTEXT

FILE: Final = "settings.json"
RECORD: Final = "isthmus-setup.json"
BASE_URL: Final = "ANTHROPIC_BASE_URL"
NO_KEY: Final = "isthmus"
"""The token for a gateway that wants none: without any, Claude Code asks for a login."""

MODELS: Final = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_FABLE_MODEL",
)
SMALL_MODELS: Final = ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL")
"""For the short jobs beside a conversation, such as its title."""
ELSEWHERE: Final = (
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
"""What leads past the gateway, or would show it a key that is for somebody else."""

NARROW: Final = 32_000
"""Tokens of a window in which Claude Code's own prompt and tools leave too little room to work."""
_MOST_OUTPUT: Final = 64_000
_USUAL_OUTPUT: Final = 32_000


@dataclass(frozen=True, slots=True)
class Settings:
    base_url: str
    """Without `/v1`."""
    token: str = field(repr=False)
    model: str
    small: str
    window: int = DEFAULT_CONTEXT
    output: int = _USUAL_OUTPUT

    @property
    def variables(self) -> dict[str, str]:
        return {
            BASE_URL: self.base_url,
            "ANTHROPIC_AUTH_TOKEN": self.token,
            **dict.fromkeys(MODELS, self.model),
            **dict.fromkeys(SMALL_MODELS, self.small),
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(self.window),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self.output),
            "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # A line in the system prompt that differs from session to session: it would keep prompt caches cold.
            "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        }

    def blanks(self, present: Collection[str]) -> dict[str, str]:
        """The variables that lead elsewhere, of those that are there, without their values."""
        return {name: "" for name in ELSEWHERE if name in present}


def room(window: int | None, output: int | None) -> tuple[int, int]:
    """Window and longest answer for a model of these facts; most of the window is left to the conversation."""
    known = window or DEFAULT_CONTEXT
    return known, max(min(output or _USUAL_OUTPUT, known // 4, _MOST_OUTPUT), 1)
