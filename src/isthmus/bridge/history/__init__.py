"""Input items → turns: any history a client sends becomes a valid conversation, and says what was changed."""

from __future__ import annotations

from isthmus.bridge.history.normalise import normalise_history

__all__ = ["normalise_history"]
