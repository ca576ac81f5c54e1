"""Limits, from a key in the store to the head of the answer."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI, RateLimitError

from isthmus.ports.keys import Grant, Rates
from isthmus.testing import HANG, chat_chunks, chat_reply, error, reply, stream
from keyed import secret_of, stored_key
from limited import TOKENS, Limited, bearer, limited
from socketing import open_socket

CLIENTS = 64


def key(name: str = "ann", team: str = "", **rates: int) -> Any:
    return stored_key(name, team=team, grant=Grant(rates=Rates(**rates)))


def storm(house: Limited, name: str, count: int, body: dict[str, Any] | None = None) -> list[int]:
    """So many requests from 64 clients at once; their statuses."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda _: house.ask(name, body or {}).status, range(count)))


def test_64_clients_at_once_get_exactly_their_requests(tmp_path: Path) -> None:
    with limited(tmp_path, key(requests_per_minute=100), key("bob")) as house:
        standing_still(house)
        statuses = storm(house, "ann", 256)
        assert (statuses.count(200), statuses.count(429)) == (100, 156)
        assert len(house.upstream.requests) == 100, "what is refused is not sent"
        assert house.ask("bob").status == 200
        assert sum(use.requests for use in house.uses(key=key().id)) == 100


def test_64_clients_at_once_get_their_tokens_within_one_percent(tmp_path: Path) -> None:
    """Each is counted as more than it takes, and in the end as what it took."""
    most = 150 * TOKENS
    with limited(tmp_path, key(tokens_per_minute=most)) as house:
        standing_still(house)
        served = 0
        for _ in range(20):  # whoever was refused for an estimate may ask again
            served += storm(house, "ann", CLIENTS, {"max_output_tokens": 16}).count(200)
        used = sum(use.input_tokens + use.output_tokens for use in house.uses())
        assert used == served * TOKENS
        assert most - 16 - 200 <= used <= most * 1.01
        refused = house.ask("ann", {"max_output_tokens": 2000})
        assert refused.status == 429
        assert f"{most:,} tokens per minute: {used:,} are used" in refused.error["message"]


def test_no_more_run_at_a_time_than_may_and_a_place_is_free_at_the_end(tmp_path: Path) -> None:
    gate = threading.Event()

    async def slow(request: Any) -> Any:
        assert await asyncio.to_thread(gate.wait, 60)
        return chat_reply("Hello.")

    with limited(tmp_path, key(concurrent_requests=2), upstream=slow) as house:
        with ThreadPoolExecutor(8) as clients:
            first = [clients.submit(house.ask, "ann") for _ in range(2)]
            house.upstream.wait_received(2)
            refused = house.ask("ann")
            assert refused.status == 429
            assert "2 requests at the same time" in refused.error["message"]
            gate.set()
            assert [each.result().status for each in first] == [200, 200]
        assert [house.ask("ann").status for _ in range(10)] == [200] * 10


def test_streams_have_places_of_their_own(tmp_path: Path) -> None:
    slow = stream([*chat_chunks("Hello.", pieces=3)[:2], HANG])
    with limited(tmp_path, key(concurrent_streams=1)) as house:
        house.upstream.push(slow)
        with house.talk.streaming("/v1/responses", {"input": "hi", "stream": True}, headers=bearer("ann")) as told:
            told.until("response.in_progress")
            assert told.headers.get("x-ratelimit-limit-requests") is None
            assert house.ask("ann", {"stream": True}).status == 429
            assert house.ask("ann").status == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_served_and_refused_answers_say_how_the_limits_stand(tmp_path: Path, streamed: bool) -> None:
    theirs = {"x-ratelimit-remaining-requests": "9999", "x-ratelimit-limit-images": "3"}

    def answer(request: Any) -> Any:
        told = {"headers": theirs}
        return stream(chat_chunks("Hello."), **told) if streamed else reply(chat_reply("Hello."), **told)

    with limited(tmp_path, key(requests_per_minute=2, tokens_per_minute=1000), upstream=answer) as house:
        first, second, third = (house.ask("ann", {"stream": streamed}) for _ in range(3))
        assert [each.status for each in (first, second, third)] == [200, 200, 429]
        assert [each.headers["x-ratelimit-remaining-requests"] for each in (first, second, third)] == ["1", "0", "0"]
        assert first.headers["x-ratelimit-limit-requests"] == "2"
        assert first.headers["x-ratelimit-limit-tokens"] == "1000"
        assert first.headers["x-ratelimit-limit-images"] == "3", "what we say nothing of is the provider's to say"
        assert third.error["code"] == "rate_limit_exceeded"
        assert third.error["type"] == "rate_limit_error"
        assert 1 <= int(third.headers["retry-after"]) <= 121
        assert "x-should-retry" not in third.headers


def test_every_door_has_the_same_limit_and_tells_it_as_its_clients_read_it(tmp_path: Path) -> None:
    user = [{"role": "user", "content": "hi"}]
    doors = {
        "/v1/chat/completions": {"messages": user},
        "/v1/messages": {"messages": user, "max_tokens": 16, "model": "main/some-model"},
        "/v1/messages/count_tokens": {"messages": user, "model": "main/some-model"},
        "/v1/responses/input_tokens": {"input": "hi"},
        "/v1/responses/compact": {"input": "hi", "model": "main/some-model"},
        "/v1/responses": {"input": "hi"},
    }
    with limited(tmp_path, key(requests_per_minute=len(doors))) as house:
        for left, (path, body) in zip(reversed(range(len(doors))), doors.items(), strict=True):
            told = house.ask("ann", body, path)
            assert told.status == 200, (path, told.body)
            assert told.headers["x-ratelimit-remaining-requests"] == str(left), path
            if "/messages" in path:
                assert told.headers["anthropic-ratelimit-requests-remaining"] == str(left)
                assert told.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
            else:
                assert not [name for name in told.headers if name.startswith("anthropic-")]
        for path, body in doors.items():
            refused = house.ask("ann", body, path)
            assert refused.status == 429, path
            assert refused.headers["retry-after"]
            if "/messages" in path:
                assert refused.json["error"]["type"] == "rate_limit_error"
                assert refused.headers["anthropic-ratelimit-requests-remaining"] == "0"


def test_what_is_refused_for_another_reason_does_not_count(tmp_path: Path) -> None:
    with limited(tmp_path, key(requests_per_minute=1)) as house:
        assert house.ask("ann", {"temperature": "hot"}).status == 400
        assert house.ask("ann", {"previous_response_id": "resp_none"}).status == 400
        assert house.ask("ann").status == 200
        assert house.ask("ann").status == 429


def test_a_socket_gets_an_error_event_and_goes_on(tmp_path: Path) -> None:
    with (
        limited(tmp_path, key(requests_per_minute=1, concurrent_requests=1)) as house,
        open_socket(house.gateway.url, headers=bearer("ann")) as socket,
    ):
        assert socket.answer({"input": "hi"})["status"] == "completed"
        socket.ask({"input": "hi"})
        refusal = socket.refusal()
        assert (refusal["status"], refusal["code"]) == (429, "rate_limit_exceeded")
        assert refusal["error"]["headers"]["x-ratelimit-remaining-requests"] == "0"
        assert int(refusal["error"]["headers"]["retry-after"]) >= 1


def test_teams_and_models_have_limits_for_all_together(tmp_path: Path) -> None:
    toml = """
[teams.t]
requests_per_minute = 3
[limits]
requests_per_minute = 50
[limits.models."*/big"]
requests_per_minute = 1
"""
    with limited(tmp_path, key("ann", "t"), key("bob", "t"), key("cid"), toml=toml) as house:
        assert [house.ask(name).status for name in ("ann", "bob", "ann", "bob", "cid")] == [200, 200, 200, 429, 200]
        assert "team `t`" in house.ask("ann").error["message"]
        big = {"model": "main/big"}
        assert [house.ask("cid", big).status for _ in range(2)] == [200, 429]
        assert "all callers of `*/big`" in house.ask("cid", big).error["message"]
        told = house.ask("cid")
        assert told.headers["x-ratelimit-limit-requests"] == "50"


def test_a_fallback_and_a_failure_count_as_the_one_request_that_they_are(tmp_path: Path) -> None:
    with limited(tmp_path, key(requests_per_minute=2)) as house:
        house.upstream.push(error(500, "broken"))
        assert [house.ask("ann").status for _ in range(3)] == [502, 200, 429]


def test_background_runs_are_counted_when_they_begin(tmp_path: Path) -> None:
    with limited(tmp_path, key(requests_per_minute=1)) as house:
        made = [house.ask("ann", {"background": True, "store": True}).json["id"] for _ in range(2)]
        ended = []
        for id in made:
            with house.talk.streaming(f"/v1/responses/{id}?stream=true", headers=bearer("ann"), method="GET") as told:
                ended.append(list(told)[-1]["response"])
        assert sorted(each["status"] for each in ended) == ["completed", "failed"]
        (failed,) = [each for each in ended if each["status"] == "failed"]
        assert failed["error"]["code"] == "rate_limit_exceeded"


def standing_still(house: Limited) -> None:
    """The library's minute does not pass while a slow machine runs a storm."""
    from types import SimpleNamespace

    from limits.aio.storage import memory

    memory.time = SimpleNamespace(time=lambda: 1_200_000_000.0)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what `standing_still` has changed."""
    from limits.aio.storage import memory

    monkeypatch.setattr(memory, "time", memory.time)


def test_openais_sdk_reads_them_and_gives_up_as_it_should(tmp_path: Path) -> None:
    with limited(tmp_path, key(requests_per_minute=1)) as house:
        client = OpenAI(base_url=f"{house.gateway.url}/v1", api_key=secret_of("ann"), max_retries=0)
        told = client.responses.with_raw_response.create(model="main/some-model", input="hi", store=False)
        assert told.headers["x-ratelimit-remaining-requests"] == "0"
        assert told.parse().output_text == "Hello."
        with pytest.raises(RateLimitError) as caught:
            client.responses.create(model="main/some-model", input="hi", store=False)
        assert caught.value.code == "rate_limit_exceeded"
        assert int(caught.value.response.headers["retry-after"]) >= 1
