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
    final_code: str = ""
    """The code under which a failure is told that no repetition cures, where the client would repeat its own; empty:
    every failure keeps its code."""


ANY_CLIENT: Final = ClientProfile()
# After a failed stream Codex asks five times more, unless the code is one of four that it takes as final; the message
# of `invalid_prompt` is the one that it shows as it is, without the JSON around it (seen with 0.163 and 0.166).
CODEX: Final = ClientProfile("codex", leaves_cut_items_open=True, final_code="invalid_prompt")
