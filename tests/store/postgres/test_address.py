"""Where the server is, and what of that is said."""

from __future__ import annotations

import pytest

from isthmus.errors import ConfigError
from isthmus.store.postgres.address import Address


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://ann:hush@db.example:5433/kept?sslmode=require", "postgresql://db.example:5433/kept"),
        ("postgres://db/kept?password=hush", "postgres://db/kept"),
        ("postgresql://a:hu%40sh@one:1,two:2/kept?target_session_attrs=read-write", "postgresql://one:1,two:2/kept"),
        ("postgresql:///kept?host=/run/postgresql", "postgresql:///kept"),
    ],
)
def test_a_name_has_neither_password_nor_parameters(url: str, name: str) -> None:
    assert Address(url).name == name


@pytest.mark.parametrize(
    "url", ["postgresql://ann:hush@db/kept?no_such=1", "postgresql://ann:hush@[db/kept", "postgresql://a%zz:hush@db/x"]
)
def test_what_libpq_does_not_understand_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(ConfigError, match="no URL that PostgreSQL understands") as refused:
        Address(url)
    assert refused.value.param == "store.url"
    assert "hush" not in str(refused.value)
