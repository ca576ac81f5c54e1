"""Limits and budgets where an operator has hooks: what is refused is free, what is changed is paid as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.ports.keys import Budget, Grant, Rates
from keyed import stored_key
from limited import TOKEN, TOKENS, Limited, bearer, dollars, limited
from shared import shared
from tracing import trace_of

HOOK = """
import asyncio
from isthmus.hooks import Refuse

class Mine:
{method}
"""
STAGES = {
    "before_plan": "request, context",
    "before_send": "body, sending, context",
    "after_reply": "response, context",
}
SECRET_WORD = "a-word-of-the-content"


def hook(folder: Path, stage: str, does: str) -> str:
    """A hook that does this where the input says `now`, and its lines in the configuration."""
    first = STAGES[stage].split(",")[0]
    method = f"    def {stage}(self, {STAGES[stage]}):\n        if 'now' in str({first}): {does}\n"
    (folder / "mine.py").write_text(HOOK.format(method=method))
    return f'[hooks]\nuses = ["mine.py:Mine"]\nfolder = "{folder}"\n'


def key(budget: float = 1000, models: tuple[str, ...] = (), **rates: int) -> Any:
    return stored_key("ann", grant=Grant(rates=Rates(**rates), budget=Budget(dollars(budget), 0.0), models=models))


def nothing_is_left(house: Limited) -> bool:
    return house.held(f"key:{key().id}") == 0


@pytest.mark.parametrize("does", ["raise Refuse('no')", "raise ValueError('broken')"])
@pytest.mark.parametrize("stage", ["before_plan", "before_send"])
@pytest.mark.parametrize("streamed", [False, True])
def test_what_a_hook_refuses_before_it_is_sent_costs_nothing(
    tmp_path: Path, stage: str, does: str, streamed: bool
) -> None:
    rates = {"requests_per_minute": 2, "tokens_per_minute": 400, "concurrent_requests": 1, "concurrent_streams": 1}
    with limited(tmp_path, key(**rates), toml=hook(tmp_path, stage, does)) as house:
        for _ in range(4):
            refused = house.ask("ann", {"input": "now", "stream": streamed})
            assert refused.error["code"] == ("refused_by_hook" if "Refuse" in does else "hook_failed")
        assert (house.upstream.requests, house.uses()) == ([], [])
        assert nothing_is_left(house)
        first, second, third = (house.ask("ann", {"stream": streamed}) for _ in range(3))
        assert [each.status for each in (first, second, third)] == [200, 200, 429]
        assert first.headers["x-ratelimit-remaining-requests"] == "1", "none of the refused ones was counted"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_a_hook_refuses_was_made_and_is_paid_for(tmp_path: Path, streamed: bool) -> None:
    toml = hook(tmp_path, "after_reply", "raise Refuse('no')").replace("str(response)", "'now'")
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text().replace("str(response)", "'now'"))
    with limited(tmp_path, key(concurrent_requests=1, requests_per_minute=2), toml=toml) as house:
        told = [house.ask("ann", {"stream": streamed}) for _ in range(3)]
        assert b"refused_by_hook" in told[0].body
        assert told[2].status == 429, "it was sent: it counts"
        (use,) = house.uses()
        assert (use.requests, use.nanos) == (2, 2 * TOKENS * TOKEN)
        assert nothing_is_left(house)


DEAR = '[providers.main.models."dear"]\ncost = { input = 3.0, output = 3.0 }\n'
CHANGES = "request['model'] = 'main/dear'"


def test_a_model_that_a_hook_puts_in_place_is_paid_at_its_own_price(tmp_path: Path) -> None:
    toml = DEAR + hook(tmp_path, "before_plan", CHANGES) + "[limits.models.'main/dear']\nrequests_per_minute = 1\n"
    with limited(tmp_path, key(), toml=toml) as house:
        assert house.ask("ann", {"input": "now"}).json["model"] == "dear"
        assert house.ask("ann").status == 200
        refused, served = house.ask("ann", {"input": "now"}), 1
        if refused.status == 200:  # a minute began just now, and one more may pass
            refused, served = house.ask("ann", {"input": "now"}), 2
        assert (refused.status, "`main/dear`" in refused.error["message"]) == (429, True), "and has that model's limits"
        assert {use.model: use.nanos for use in house.uses()} == {
            "dear": 3 * TOKENS * TOKEN * served,
            "some-model": TOKENS * TOKEN,
        }


def test_and_only_where_the_key_may_use_it(tmp_path: Path) -> None:
    toml = DEAR + hook(tmp_path, "before_plan", CHANGES)
    with limited(tmp_path, key(models=("main/some-model",), requests_per_minute=1), toml=toml) as house:
        refused = house.ask("ann", {"input": "now"})
        assert (refused.status, refused.error["code"]) == (403, "not_allowed")
        assert "`main/dear`" in refused.error["message"]
        assert house.upstream.requests == []
        assert house.ask("ann").status == 200


USER = [{"role": "user", "content": SECRET_WORD}]
DOORS: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": SECRET_WORD},
    "/v1/chat/completions": {"messages": USER},
    "/v1/messages": {"messages": USER, "max_tokens": 16, "model": "main/some-model"},
    "/v1/embeddings": {"input": SECRET_WORD, "model": "main/vectors"},
}


@pytest.mark.skipif(sys.platform == "win32", reason="its log is read while it is written")
@pytest.mark.parametrize("limit", ["rate", "budget"])
def test_a_refusal_is_traced_logged_and_counted_at_every_door(tmp_path: Path, limit: str) -> None:
    ann = key(requests_per_minute=1) if limit == "rate" else key(budget=1)
    toml = hook(tmp_path, "before_plan", "request['metadata'] = {}") + '[trace]\ncapture = "metadata"\n'
    with shared(tmp_path, ann, toml=toml) as house:
        if limit == "rate":
            assert house.ask().status == 200
        for number, (path, body) in enumerate(DOORS.items()):
            refused = house.talk.post(path, body, bearer("ann"))
            code = "rate_limit_exceeded" if limit == "rate" else "insufficient_quota"
            assert refused.status == 429, (path, refused.body)
            assert int(refused.headers["retry-after"]) >= 1
            if limit == "rate":
                assert refused.headers["x-ratelimit-remaining-requests"] == "0", path
            if path == "/v1/messages":
                assert refused.json["error"]["type"] == "rate_limit_error"
            else:
                assert refused.error["code"] == code
            request = refused.headers["x-request-id"]
            trace = trace_of(house.talk, request, bearer("boss"))  # type: ignore[arg-type]
            summary = trace["summary"]
            assert (summary["status"], summary["code"], trace["error"]["code"]) == (429, code, code), path
            (line,) = [line for line in house.process.log.read_text().splitlines() if request in line and "429" in line]
            assert code in line, "by its code"
            assert "WARN" not in line.upper(), "nobody but the caller has to do something"
            assert house.refusals(limit) == [number + 1.0]
        assert len(house.upstream.requests) == (limit == "rate")
        assert SECRET_WORD not in house.process.log.read_text()
