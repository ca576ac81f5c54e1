"""The line of every key."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.values.locate import locate_keys
from isthmus.values.toml_text import toml_key, toml_value

TEXT = '''\
# a comment
top = 1

[server]          # with a comment
port = 8484
"quoted key" = """
[not.a.table]
port = 1
"""
[models.aliases]
"gpt-5.5" = "a/b"
list = [
  1,
  # inside
  2,
]
dotted.key = 3
inline = { a = 1, b = { c = 2 } }

[[places]]
url = "x"
[[places]]
other = "y"
[providers."a.b"]
'''


def test_every_key_is_found_on_its_line() -> None:
    lines = locate_keys(TEXT)
    assert lines == {
        ("top",): 2,
        ("server",): 4,
        ("server", "port"): 5,
        ("server", "quoted key"): 6,
        ("models",): 10,
        ("models", "aliases"): 10,
        ("models", "aliases", "gpt-5.5"): 11,
        ("models", "aliases", "list"): 12,
        ("models", "aliases", "dotted"): 17,
        ("models", "aliases", "dotted", "key"): 17,
        ("models", "aliases", "inline"): 18,
        ("models", "aliases", "inline", "a"): 18,
        ("models", "aliases", "inline", "b"): 18,
        ("models", "aliases", "inline", "b", "c"): 18,
        ("places",): 20,
        ("places", "url"): 21,
        ("places", "other"): 23,
        ("providers",): 24,
        ("providers", "a.b"): 24,
    }


_SCALARS = st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=12)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(max_size=6), _VALUES, max_size=4))
def test_written_values_are_read_back_equal_and_each_on_its_line(table: dict[str, Any]) -> None:
    text = "".join(f"{toml_key(key)} = {toml_value(value)}\n" for key, value in table.items())
    assert tomllib.loads(text) == table
    lines = locate_keys(text)
    assert [lines[(key,)] for key in table] == list(range(1, len(table) + 1))
