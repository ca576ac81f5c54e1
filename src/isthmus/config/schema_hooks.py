"""What a configuration may say of the operator's own code (`isthmus.hooks`)."""

from __future__ import annotations

from typing import Literal

from isthmus.config.section import Count, Section, Text, Timeout


class Hooks(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Code of your own that sees requests before they are planned, bodies before they are sent, and answers before they
    are told."""

    uses: list[Text] = []
    """Hooks in the order in which they are asked: `my_company.hooks:Redact`, or `guard.py:Guard` for a file."""
    folder: str = ""
    """Where files, and modules that are not installed, are looked for. A relative path starts where that of `store.url`
    does. Default: the config file's folder."""
    timeout: Timeout = 5.0
    """How long one call of a hook may take, the wait for its turn included."""
    at_once: Count = 64
    """Calls of hooks under way at the same time; more wait for their turn. One that hangs keeps its place."""
    on_failure: Literal["refuse", "skip"] = "refuse"
    """What becomes of a request whose hook raises, gives back what cannot be used, or is too slow: `refuse`, it fails
    (`hook_failed`); `skip`, it goes on as if the hook were not there, and the answer says so."""
