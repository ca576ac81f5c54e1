"""The check of the replicas finds what it is there to find. It runs against real ones in `tests/real/replicas`."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest


def reply(status: int, body: Any) -> Any:
    from bench.robustness.client import Reply

    return Reply(status, {}, json.dumps(body).encode())


def test_an_end_that_is_told_otherwise_is_found() -> None:
    from bench.replicas.told import Told

    told = Told()
    told.end("resp_1", b"one")
    told.end("resp_1", b"one")
    assert told.wrong == []
    told.end("resp_1", b"two")
    assert len(told.wrong) == 1


@pytest.mark.parametrize(
    ("status", "code", "wrong"),
    [(503, "store_unavailable", 0), (400, "conversation_locked", 0), (500, "server_error", 1), (404, "not_found", 1)],
)
def test_only_not_now_may_be_told_instead_of_an_answer(status: int, code: str, wrong: int) -> None:
    from bench.replicas.told import Told

    told = Told()
    told.refuse(reply(status, {"error": {"code": code}}), "a look")
    assert len(told.wrong) == wrong
    assert told.errors == {f"{status} {code}": 1}


def test_what_was_lost_or_changed_is_found_and_what_was_never_kept_is_not_looked_for() -> None:
    from bench.replicas.check import _same

    told = json.dumps({"id": "resp_1", "error": None}).encode()
    away = json.dumps({"id": "resp_1", "error": {"code": "store_unavailable"}}).encode()
    assert _same(reply(200, json.loads(told)), told)
    assert not _same(reply(200, {"id": "resp_1"}), told)
    assert not _same(reply(404, {}), told)
    assert _same(reply(404, {}), away)


def test_an_answer_with_missing_words_or_turns_is_found() -> None:
    from bench.replicas.deeds import User, _judge, answer_to
    from bench.replicas.told import Told

    def said(text: str, status: str = "completed", error: Any = None) -> Any:
        return {"status": status, "error": error, "output": [{"type": "message", "content": [{"text": text}]}]}

    user = User(1, [], Told(), random.Random(1))
    _judge(user, said(answer_to("say 1", 2)), "say 1", before=2)
    _judge(user, said("", "failed", {"code": "server_error"}), "say 1", orphan=True)
    assert user.told.wrong == []
    _judge(user, said(answer_to("say 1", 0)), "say 1", before=2)
    _judge(user, said("an answer to say"), "say 1")
    _judge(user, said("", "incomplete"), "say 1")
    assert len(user.told.wrong) == 3
