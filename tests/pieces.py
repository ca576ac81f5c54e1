"""The pieces of a body, as a trace has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.observe.traces.bodies import Bodies
from isthmus.ports.traced import Piece

BODIES: Final = Bodies.of(b"the key of an installation for tests")


def pieces_of(body: Mapping[str, Any]) -> tuple[Piece, ...]:
    return BODIES.read(body).pieces
