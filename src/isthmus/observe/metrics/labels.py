"""Which words may become label values: those that we know, and no word of a client's.

A model is known by name where somebody other than a client names it: its provider's file, the snapshot, its server's
own list, or the configuration. All others are `other` together, and so are those above the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from isthmus.errors import FAILURES

OTHER: Final = "other"
MAX_MODELS: Final = 100


class Models:
    """The models that have series of their own; the first `most` that are used."""

    def __init__(self, known: Callable[[str], Collection[str]], most: int = MAX_MODELS) -> None:
        """`known`: the names of a provider's models, in small letters. It is asked again for a name that it did not
        know: a server may have been heard meanwhile."""
        self._known = known
        self._most = most
        self._labels: dict[tuple[str, str], str] = {}

    def label(self, provider: str, model: str) -> str:
        found = self._labels.get((provider, model))
        if found is not None:
            return found
        name = model.lower()
        if name not in self._known(provider):
            return OTHER
        if name != model:  # as it is spelled by those who know it
            return self.label(provider, name)
        if len(self._labels) >= self._most:
            return OTHER
        self._labels[provider, model] = model
        return model


def code_label(code: str) -> str:
    """A failure's code, if it is one of ours: vendors have their own."""
    return code if code in FAILURES else OTHER
