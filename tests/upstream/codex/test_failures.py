from __future__ import annotations

import pytest

from isthmus.upstream.codex.failures import CodexGone, RpcRefused


def test_the_end_of_a_process_is_a_passing_failure_with_its_last_words() -> None:
    gone = CodexGone("it ended", stderr="out of memory")
    assert (gone.code, gone.status, gone.metadata) == ("server_error", 502, {"stderr": "out of memory"})
    assert gone.retryable
    assert CodexGone("it ended").metadata == {}


@pytest.mark.parametrize(
    ("code", "message", "unknown"),
    [
        (-32601, "no", True),
        (-32600, "Invalid request: unknown variant `x`, expected one of `y`", True),
        (-32600, "dynamic tool name is reserved", False),
    ],
)
def test_a_method_that_nobody_knows_is_told_apart_from_a_refusal(code: int, message: str, unknown: bool) -> None:
    refused = RpcRefused("thread/start", code, message)
    assert refused.unknown_method == unknown
    assert "`thread/start`" in refused.message
