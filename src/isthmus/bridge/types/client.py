"""What a client is known to need beyond its protocol: told to the planner once, never guessed afterwards.

A door recognises its client by its headers. Everything that is done differently for one client is a field here, so
that the plan says it, and the assembler carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ClientProfile:
    name: str = ""
    leaves_cut_items_open: bool = False
    """Whether items that a failure cut off stay open: the client keeps every closed one as whole, and would send
    half an answer back."""


ANY_CLIENT: Final = ClientProfile()
CODEX: Final = ClientProfile("codex", leaves_cut_items_open=True)
