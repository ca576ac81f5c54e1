"""A section shows what it says, and no secret."""

from __future__ import annotations

from isthmus.config.section import Section


class Sample(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    api_key: str = ""
    host: str = "here"


def test_it_prints_itself_without_secrets() -> None:
    sample = Sample(api_key="sk-very-secret")
    for shown in (repr(sample), str(sample), f"{sample!r}", str(sample.__rich_repr__())):
        assert "sk-very-secret" not in shown
        assert "here" in shown
