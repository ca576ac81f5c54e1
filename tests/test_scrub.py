"""What we know to be secret is taken out of foreign words, however it is spelled; everything else stays."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.scrub import HIDDEN, Scrubber, Secret, header_secrets, query_secrets, url_secrets

KEY = "sk-live-0Zq7Kd81mXw4Tn92"
ODD = "a/b+c=d e\"f\\g&h%i'ü"

ENCODINGS = {
    "plain": lambda text: text,
    "in a URL": lambda text: quote(text, safe=""),
    "in a URL, in small letters": lambda text: quote(text, safe="").lower() if text.islower() else quote(text, safe=""),
    "in a path": quote,
    "in a query": quote_plus,
    "in a URL in a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "in JSON": lambda text: json.dumps(text)[1:-1],
    "in JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "in JSON as it is": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "in bytes": lambda text: repr(text.encode())[2:-1],
}


def scrub(text: str, *values: str, name: str = "key") -> str:
    return Scrubber(Secret(value, name) for value in values).text(text)


@pytest.mark.parametrize("spell", ENCODINGS.values(), ids=list(ENCODINGS))
@pytest.mark.parametrize("value", [KEY, ODD])
def test_a_secret_is_found_in_every_spelling(value: str, spell: object) -> None:
    assert callable(spell)
    assert scrub(f"no {spell(value)} here, nor <{spell(value)}>", value) == f"no {HIDDEN} here, nor <{HIDDEN}>"


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=8, max_size=40),
    st.sampled_from(sorted(ENCODINGS)),
)
def test_no_secret_survives_any_spelling(value: str, encoding: str) -> None:
    if encoding == "in bytes" or HIDDEN in value or any(part in HIDDEN for part in (value, quote(value, safe=""))):
        return
    spelled = ENCODINGS[encoding](value)
    assert spelled not in scrub(f"[{spelled}]", value)


@pytest.mark.parametrize("kept", range(8, len(KEY)))
def test_what_is_left_of_a_cut_secret_is_found(kept: int) -> None:
    assert scrub(f"key: {KEY[:kept]}", KEY) == f"key: {HIDDEN}"
    for around in ("{}…", "{}*** is wrong", "'{}'", "({}...)"):
        assert scrub(around.format(KEY[:kept]), KEY) == around.format(HIDDEN)
    assert scrub(f"***{KEY[-kept:]} is wrong", KEY) == f"***{HIDDEN} is wrong"


def test_words_that_only_begin_like_a_secret_stay() -> None:
    assert scrub("gpt-4o-preview is not gpt-4o-p", "gpt-4o-production") == f"gpt-4o-preview is not {HIDDEN}"


@pytest.mark.parametrize("value", ["test", "ollama", "EMPTY", "none", "hush"])
def test_a_short_secret_is_hidden_only_where_it_stands_as_one(value: str) -> None:
    words = f"{value}: the {value} model is no {value}-key, see http://{value}/x and user={value}"
    assert scrub(words, value) == words
    for told in ("key={}", "API key provided: {}", "Bearer {}", '"api_key": "{}"', "x-key: {}.", "http://joe:{}@host/"):
        assert scrub(told.format(value), value) == told.format(HIDDEN), told
    assert scrub(f"/v1?code={value}&x=1", value, name="code") == f"/v1?code={HIDDEN}&x=1"
    assert scrub(f"http://{value}:x@host/", value) == f"http://{HIDDEN}:x@host/"


def test_overlapping_secrets_leave_nothing_of_each_other() -> None:
    assert scrub(f"{KEY}-more {KEY}", KEY, f"{KEY}-more") == f"{HIDDEN} {HIDDEN}"


def test_the_secrets_of_headers_are_their_values_without_the_scheme() -> None:
    basic = base64.b64encode(b"joe:pass-word-1").decode()
    given = {"Authorization": f"Bearer {KEY}", "X-Other": "other-secret", "User-Agent": "isthmus/1", "Cookie": "a=bcd"}
    assert {secret.value for secret in header_secrets(given)} == {KEY, "other-secret", "a=bcd", "bcd"}
    assert {secret.value for secret in header_secrets({"X": f"Basic {basic}"})} == {basic, "joe", "pass-word-1"}


def test_the_secrets_of_a_query_are_its_values_but_for_versions() -> None:
    assert [secret.value for secret in query_secrets({"api-version": "2024-10-21", "code": "x"})] == ["x"]


def test_the_secrets_of_an_address_are_found() -> None:
    found = {secret.value for secret in url_secrets("https://joe:p%40ss@host/v1?key=abc&api-version=1")}
    assert found == {"joe", "p@ss", base64.b64encode(b"joe:p@ss").decode(), "abc", ""} - {""}
    assert not [secret for secret in url_secrets("http://[") if secret.value]


def test_a_json_value_is_scrubbed_all_through() -> None:
    given = {"error": [{"message": f"no {KEY}"}, 7, None, True]}
    assert Scrubber([Secret(KEY)]).json(given) == {"error": [{"message": f"no {HIDDEN}"}, 7, None, True]}


def test_a_scrubber_prints_no_secret() -> None:
    scrubber = Scrubber([Secret(KEY, "key")])
    assert KEY not in f"{scrubber!r} {scrubber.secrets!r}"
    assert scrubber.and_also([]) is scrubber
    assert Scrubber().text(KEY) == KEY
