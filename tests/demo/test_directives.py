from __future__ import annotations

from typing import Any

import pytest

from isthmus.demo.directives import BadDirective, Directives, read_directives


@pytest.mark.parametrize(
    ("order", "fields"),
    [
        ("error 429", {"error": 429}),
        ("CUT", {"breaks": "cut"}),
        ("slow 0.5", {"wait": 0.5}),
        ("pace 20", {"pace": 20.0}),
        ("length", {"length": True}),
        ("refuse", {"refuse": True}),
        ("bad json", {"bad_json": True}),
        ('call f {"a": [[1]]}', {"calls": (("f", '{"a": [[1]]}'),)}),
        ("call f", {"calls": (("f", "{}"),)}),
    ],
)
def test_an_order_is_taken_out_of_the_text(order: str, fields: dict[str, Any]) -> None:
    assert read_directives(f"before [[demo: {order}]] after") == ("before  after", Directives(**fields))


def test_orders_add_up() -> None:
    text, found = read_directives("[[demo: slow 2]] [[ demo:call a ]][[demo: call b]] hi")
    assert (text, found.wait, [name for name, _ in found.calls]) == ("hi", 2.0, ["a", "b"])


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("eror 429", "does not know the directive `eror 429`; it knows: error N"),
        ("error 200", "needs a number from 400 to 599"),
        ("slow nan", "needs a number from 0 to 600"),
        ("pace", "needs a number"),
        ("cut now", "does not know"),
    ],
)
def test_a_typing_error_does_not_look_like_an_answer(order: str, words: str) -> None:
    with pytest.raises(BadDirective, match=words):
        read_directives(f"[[demo: {order}]]")
