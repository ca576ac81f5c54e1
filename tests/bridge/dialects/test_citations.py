"""Web citations, whatever a vendor leaves out of them."""

from __future__ import annotations

from isthmus.bridge.dialects.citations import read_citation


def test_every_field_is_there() -> None:
    empty = {"type": "url_citation", "url": "", "title": "", "start_index": 0, "end_index": 0}
    assert read_citation({}) == empty
    assert read_citation({"url": None, "start_index": -1, "end_index": "2", "more": 1}) == empty
    assert read_citation({"url": "u", "title": "t", "end_index": 3}) == {
        **empty,
        "url": "u",
        "title": "t",
        "end_index": 3,
    }
