"""A URL taken apart: the same as yarl would, without it where there is nothing to put right."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from isthmus.upstream.lean.address import take_apart
from isthmus.upstream.trouble import Trouble

PLAIN = [
    "http://127.0.0.1:8080/v1",
    "https://api.example.com/v1/chat/completions?api-version=2026-01-01",
    "http://[::1]:9/v1",
    "https://API.Example.com",
    "http://my_host:80/a//b/?q=a/b?c&d",
    "https://h:443/v1beta/models/x:generate;p=1,2(3)!$'*+@~",
]
ODD = [
    "http://h/a/../b/./c",
    "http://h/.hidden",
    "https://bücher.example/straße?q=ü ber",
    "http://h/a b%20c%7E?x=%2F+y",
    "http://h/v1#part",
]


@pytest.mark.parametrize("url", PLAIN + ODD)
@pytest.mark.parametrize("query", [{}, {"api-version": "1"}, {"k": "a/b +=&ü"}], ids=["none", "plain", "odd"])
def test_it_is_asked_for_as_yarl_would_ask(url: str, query: dict[str, str]) -> None:
    theirs = URL(url).extend_query(query) if query else URL(url)
    ours = take_apart(url, query)
    assert (ours.origin, ours.target) == ((theirs.scheme, theirs.raw_host, theirs.port), theirs.raw_path_qs)
    assert ours.host == theirs.host_port_subcomponent
    assert ours.url == f"{theirs.scheme}://{ours.host}{ours.target}"


@given(
    st.text("abzAZ09._~:@!$&'()*+,;=-/", max_size=30),
    st.text("abzAZ09._~:@!$&'()*+,;=-/?", max_size=30),
)
def test_law_plain_ones_are_left_as_they_are(path: str, query: str) -> None:
    url = f"http://h/{path}?{query}"
    assert take_apart(url, {}).target == URL(url).raw_path_qs


@pytest.mark.parametrize(
    "url",
    ["", "h/v1", "ftp://h/", "http://", "http:///v1", "http://h:0/", "http://h:70000/", "http://h:x/", "http://[x"],
)
def test_what_is_no_address_is_called_so(url: str) -> None:
    with pytest.raises(Trouble, match="its address is not one"):
        take_apart(url, {})


@pytest.mark.parametrize("end", ["\r\nx: y", " HTTP/1.1\r\n\r\n", "\n", "?a\r\nb", "\0", "#\r\n"])
def test_nothing_in_a_url_ends_the_line_of_the_request(end: str) -> None:
    found = take_apart(f"http://h/v1{end}", {"q": end})
    assert not set(found.target + found.host) & set("\r\n\0 ")


def test_user_and_password_become_a_header_and_are_no_part_of_the_address() -> None:
    found = take_apart("http://joe:h%75sh@h/v1", {})
    assert (found.authorization, found.url) == ("Basic am9lOmh1c2g=", "http://h/v1")


def test_a_dot_behind_a_host_is_no_part_of_its_name() -> None:
    found = take_apart("https://h.example./v1", {})
    assert (found.origin[1], found.host) == ("h.example.", "h.example")


def test_plain_ones_load_nothing() -> None:
    code = f"""
import sys
from isthmus.upstream.lean.address import take_apart
[take_apart(url, {{"a": "b"}}) for url in {PLAIN!r}]
print("yarl" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
