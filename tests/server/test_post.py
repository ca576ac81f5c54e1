"""What a worker gets from its supervisor."""

from __future__ import annotations

from isthmus.server.post import VARIABLE, Post, take_post


def test_a_post_is_taken_once() -> None:
    environ = {VARIABLE: Post(2, 7, 9).spell(), "HOME": "/x"}
    assert take_post(environ) == Post(2, 7, 9)
    assert environ == {"HOME": "/x"}, "what a worker starts is no worker"
    assert take_post(environ) is None
