"""Input items → turns: any history a client sends becomes a valid conversation, and says what was changed."""

from __future__ import annotations

from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.history.turns import Acted, History, PastCall, PastResult, Said, Thought, Turn

__all__ = ["Acted", "History", "PastCall", "PastResult", "Said", "Thought", "Turn", "normalise_history"]
