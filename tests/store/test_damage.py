"""What is left is sound once everything that is not was set aside."""

from __future__ import annotations

from isthmus.store.damage import Damage, Examined


def test_only_what_was_not_set_aside_is_still_damage() -> None:
    told, moved = Damage("response", "r", "why"), Damage("response", "s", "why", set_aside=True)
    assert Examined(2, 0, ()).sound
    assert Examined(2, 0, (moved,)).sound
    assert not Examined(2, 0, (moved, told)).sound
