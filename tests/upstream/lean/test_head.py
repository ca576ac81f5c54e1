"""The head of a request: what is shared is written once, and nothing ends a line early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.upstream.lean.address import take_apart
from isthmus.upstream.lean.head import Head
from isthmus.upstream.trouble import Trouble

ADDRESS = take_apart("http://h:8080/v1?a=b", {})


def lines(said: bytes) -> list[bytes]:
    assert said.endswith(b"\r\n\r\n")
    return said[:-4].split(b"\r\n")


def test_a_request_as_it_is_sent() -> None:
    head = Head("POST", ADDRESS, {"content-type": "application/json"})
    assert lines(head.write({"traceparent": "00-1"}, 2)) == [
        b"POST /v1?a=b HTTP/1.1",
        b"host: h:8080",
        b"accept: */*",
        b"accept-encoding: gzip, deflate, zstd",
        b"content-type: application/json",
        b"traceparent: 00-1",
        b"content-length: 2",
    ]


@pytest.mark.parametrize(("method", "told"), [("GET", False), ("HEAD", False), ("DELETE", False), ("POST", True)])
def test_only_where_a_body_is_expected_its_absence_is_told(method: str, told: bool) -> None:
    assert (b"content-length: 0\r\n" in Head(method, ADDRESS, {}).write(None, None)) == told


def test_headers_of_one_request_replace_the_shared_ones_whatever_their_case() -> None:
    head = Head("POST", ADDRESS, {"Accept": "text/plain", "X-A": "1"})
    said = lines(head.write({"x-a": "2", "HOST": "other"}, 0))
    assert [line for line in said if line.lower().startswith((b"x-a", b"host", b"accept:"))] == [
        b"Accept: text/plain",
        b"x-a: 2",
        b"HOST: other",
    ]
    assert b"X-A: 1" in lines(head.write(None, 0))  # of that one alone


def test_nobody_else_frames_a_request() -> None:
    said = Head("POST", ADDRESS, {"Content-Length": "9"}).write({"transfer-encoding": "chunked"}, 2)
    assert said.lower().count(b"content-length") == 1
    assert b"chunked" not in said


def test_a_user_in_the_address_is_shown_unless_a_header_shows_somebody() -> None:
    address = take_apart("http://joe:hush@h/", {})
    assert b"authorization: Basic" in Head("GET", address, {}).write(None, None)
    said = Head("GET", address, {"Authorization": "Bearer k"}).write(None, None)
    assert said.lower().count(b"authorization") == 1
    assert b"Bearer k" in said


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\n", "\r", "a\0b", "\x7f", "\x1b[0m"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_value_that_would_end_its_line_is_refused_and_not_repeated(value: str, shared: bool) -> None:
    headers = {"x-evil": value}
    with pytest.raises(Trouble, match="its header `x-evil` holds") as refused:
        Head("POST", ADDRESS, headers if shared else {}).write(None if shared else headers, 2)
    assert value not in refused.value.words


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ü", "a\0"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(Trouble, match="its header `\\?` holds"):
        Head("POST", ADDRESS, {name: "x"})


@pytest.mark.parametrize("method", ["", "GET /", "G\r\nT"])
def test_a_method_that_is_none_is_refused(method: str) -> None:
    with pytest.raises(Trouble, match="its method is not one"):
        Head(method, ADDRESS, {})


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=4))
def test_law_what_leaves_has_one_line_for_each_header(headers: dict[str, str]) -> None:
    try:
        said = Head("POST", ADDRESS, {}).write(headers, 2)
    except Trouble:
        return
    body_told = [name for name in headers if name.lower() in ("content-length", "transfer-encoding")]
    replaced = {name.lower() for name in headers} & {"host", "accept", "accept-encoding"}
    assert len(lines(said)) == 5 + len(headers) - len(body_told) - len(replaced)
    assert said.count(b"\r") == said.count(b"\n") == said.count(b"\r\n")
