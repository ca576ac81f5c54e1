"""The types of output items say what the wire says: the same kinds, the same fields, the same of them required."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from isthmus.protocol import items
from protocol.typed import fields_of
from wire.samples import ITEMS

FOREIGN = {"compaction"}
"""What other servers send and we do not."""


def shapes() -> dict[str, Any]:
    return {kind: shape for shape in get_args(items.OutputItem) for kind in get_args(get_type_hints(shape)["type"])}


def test_every_kind_that_we_send_has_a_type() -> None:
    assert set(ITEMS) - FOREIGN <= set(shapes())


@pytest.mark.parametrize("kind", sorted(set(ITEMS) - FOREIGN))
def test_a_sample_of_the_wire_fits_its_type(kind: str) -> None:
    known, required = fields_of(shapes()[kind])
    assert required <= set(ITEMS[kind]) <= known
