"""Which pages are within a domain, however either of them is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.search import Scope
from isthmus.tools.search.domains import bare_domains, is_within


@pytest.mark.parametrize(
    ("url", "entry", "within"),
    [
        ("https://example.org/x", "example.org", True),
        ("https://EXAMPLE.org./x", "Example.ORG", True),
        ("https://docs.example.org/x", "example.org", True),
        ("https://docs.example.org/x", "*.example.org", True),
        ("https://docs.example.org/x", "https://example.org/", True),
        ("https://badexample.org/x", "example.org", False),
        ("https://example.org.evil.test/x", "example.org", False),
        ("https://evil.test/?u=example.org", "example.org", False),
        ("https://example.org@evil.test/", "example.org", False),
        ("https://example.org/docs/a", "example.org/docs", True),
        ("https://example.org/docs", "example.org/docs/", True),
        ("https://example.org/docsx", "example.org/docs", False),
        ("https://münchen.example/", "xn--mnchen-3ya.example", True),
        ("https://xn--mnchen-3ya.example/", "münchen.example", True),
        ("https://example.org:8443/", "example.org", True),
        ("https://example.org/", "", False),
    ],
)
def test_an_entry_means_its_domain_and_all_below_it(url: str, entry: str, within: bool) -> None:
    assert is_within(url, Scope(allowed=(entry,))) is within
    assert is_within(url, Scope(blocked=(entry,))) is not within


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org/", "javascript:1", "https://[", "//example.org"])
def test_what_is_no_page_of_the_web_is_never_allowed(url: str) -> None:
    assert not is_within(url, Scope())


@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_can_be_asked_about(url: str, entries: list[str]) -> None:
    assert is_within(url, Scope(tuple(entries))) in (True, False)


def test_engines_are_given_hosts() -> None:
    assert bare_domains(["https://A.example/docs", "*.a.example", "b.example:443", " "]) == ("a.example", "b.example")
