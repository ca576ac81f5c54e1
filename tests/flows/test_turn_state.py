"""A turn of Codex stays where it began: at one of several places, and with the word of an upstream that has its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from isthmus.ports.outgoing import LONGEST_STATE, NOWHERE, TURN_STATE, Kept, read_state, spell_state
from isthmus.testing import Answer, ScriptedUpstream, chat, reply
from serving import running_gateway_server
from speaking_responses import native
from talking import Talk

CODEX = {"originator": "codex_exec"}
WORD = "gAAAA-opaque_word=="


@contextmanager
def two_places() -> Iterator[tuple[Talk, list[ScriptedUpstream]]]:
    with (
        ScriptedUpstream.running(default=chat("hello"), strict=False) as one,
        ScriptedUpstream.running(default=chat("hello"), strict=False) as two,
        running_gateway_server(
            '[models]\ndemo = false\ndefault = "main/model"\n[store]\nurl = "memory:"\n'
            '[server]\nport = 0\n[providers.main]\nuses = "openai-compatible"\nretries = 0\n'
            f'endpoints = [{{ base_url = "{one.base_url}" }}, {{ base_url = "{two.base_url}" }}]\n'
        ) as gateway,
    ):
        yield Talk(gateway.url), [one, two]


def ask(talk: Talk, **headers: str) -> str:
    """The state that the answer gives."""
    with talk.streaming("/v1/responses", {"input": "hi", "stream": True}, {**CODEX, **headers}) as events:
        assert [event["type"] for event in events][-1] == "response.completed"
        return events.headers.get(TURN_STATE, "")


def counts(places: list[ScriptedUpstream]) -> list[int]:
    return [len(place.requests) for place in places]


def test_a_turn_stays_at_the_place_where_it_began() -> None:
    with two_places() as (talk, places):
        given = ask(talk)
        before = counts(places)
        for _ in range(6):
            assert ask(talk, **{TURN_STATE: given}) == given
        grown = sorted(after - first for after, first in zip(counts(places), before, strict=True))
        assert grown == [0, 6]
        for _ in range(6):
            ask(talk)
        assert min(counts(places)) >= 3, "turns that begin are spread over both"


def test_a_place_that_fails_does_not_keep_its_turn() -> None:
    with two_places() as (talk, places):
        given = ask(talk)
        (first,) = [place for place in places if place.requests]
        (second,) = [place for place in places if place is not first]
        first.push(reply({"error": {"message": "down"}}, status=503))
        moved = ask(talk, **{TURN_STATE: given})
        assert moved != given
        assert len(second.requests) == 1
        ask(talk, **{TURN_STATE: moved})
        assert len(second.requests) == 2


@pytest.mark.parametrize("word", ["abc", "ist1.", "ist1.!!!", "ist1.eyJ4IjoxfQ==", "x" * (LONGEST_STATE + 1)])
def test_a_word_that_is_not_ours_is_ignored(word: str) -> None:
    with two_places() as (talk, _):
        assert ask(talk, **{TURN_STATE: word}).startswith("ist1.")


def test_whoever_is_not_codex_is_given_none() -> None:
    with two_places() as (talk, _):
        assert TURN_STATE not in talk.post("/v1/responses", {"input": "hi"}).headers


def with_word(word: str) -> Any:
    def answer(request: Any) -> Answer:
        told: Any = native("hello")(request)
        assert isinstance(told, Answer)
        return replace(told, headers={**told.headers, TURN_STATE: word})

    return answer


def test_an_upstreams_own_word_is_shown_to_it_within_the_turn_and_to_nobody_else() -> None:
    own = 'uses = "openai"\napi_key = "sk-x"\ndialect = "responses"\n'
    with (
        ScriptedUpstream.running(default=native("hello"), strict=False) as upstream,
        ScriptedUpstream.running(default=native("hello"), strict=False) as other,
        running_gateway_server(
            '[models]\ndemo = false\ndefault = "main/model"\naliases = { other = "other/model" }\n'
            '[store]\nurl = "memory:"\n'
            f"[providers.main]\n{own}"
            f'base_url = "{upstream.base_url}"\n'
            f"[providers.other]\n{own}"
            f'base_url = "{other.base_url}"\n'
        ) as gateway,
    ):
        talk = Talk(gateway.url)
        assert ask(talk) == "", "there is nothing to keep to"
        upstream.push(with_word(WORD))
        given = ask(talk)
        assert read_state(given) == Kept("main", NOWHERE, WORD)
        again = ask(talk, **{TURN_STATE: given})
        assert upstream.requests[-1].headers[TURN_STATE] == WORD
        assert again == given, "it counts for as long as no other is given"
        talk.post("/v1/responses", {"model": "other", "input": "hi"}, {**CODEX, TURN_STATE: given})
        assert TURN_STATE not in other.requests[-1].headers
        ask(talk)
        assert TURN_STATE not in upstream.requests[-1].headers, "another turn"


def test_no_word_leaves_that_could_end_a_header() -> None:
    assert read_state(spell_state(Kept("main", 0, "a\r\nx-evil: 1"))) is None
    assert read_state(spell_state(Kept("main", 1, WORD))) == Kept("main", 1, WORD)
