"""What is wrong with a configuration, said so that it can be put right: the key, the place, the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from isthmus.errors import ConfigError

KeyPath = tuple[str, ...]
"""Where a value stands: `("models", "aliases", "gpt-5.5")`; in a list: `("providers", "groq", "api_keys[0]")`."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+(?:\[\d+\])?")


@dataclass(frozen=True, slots=True)
class Problem:
    key: KeyPath
    message: str
    fix: str
    severity: Literal["error", "warning"] = "error"
    place: str = ""
    """`isthmus.toml:12`, `$ISTHMUS_PORT`, `flag`; empty where the value was not given at all."""

    @property
    def text(self) -> str:
        place = f"{self.place}: " if self.place else ""
        key = f"`{dotted(self.key)}` " if self.key else ""
        stop = "" if self.message.endswith("?") else "."
        return f"{place}{key}{self.message}{stop} Fix: {self.fix}"


def dotted(path: KeyPath) -> str:
    """The path as TOML would write it, and an entry of a list as everybody does."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in path)


def as_error(problems: Iterable[Problem]) -> ConfigError:
    """All problems in one error: a single one as a sentence, several as a list."""
    found = tuple(problems)
    if len(found) == 1:
        message = found[0].text
    else:
        message = "\n".join([f"the configuration has {len(found)} problems:", *(f"- {p.text}" for p in found)])
    return ConfigError(message, metadata={"problems": found})
