"""`scripts/package_readme.py`: on PyPI every link and picture of the readme leads somewhere."""

from __future__ import annotations

import re

import pytest

from doc_pages import ROOT
from scripted import load_script

absolute_links = load_script("package_readme").absolute_links
BASE = "https://git.example/us/isthmus"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](docs/a.md)", f"[a]({BASE}/blob/v1.0.0/docs/a.md)"),
        ("[a](./docs/a.md#part)", f"[a]({BASE}/blob/v1.0.0/docs/a.md#part)"),
        ("[`isthmus`](docs/a.md)", f"[`isthmus`]({BASE}/blob/v1.0.0/docs/a.md)"),
        ("![a](docs/a.png)", f"![a]({BASE}/raw/v1.0.0/docs/a.png)"),
        ("[![a](docs/a.png)](docs/a.md)", f"[![a]({BASE}/raw/v1.0.0/docs/a.png)]({BASE}/blob/v1.0.0/docs/a.md)"),
        ('<img width="9" src="docs/a.png" alt="a">', f'<img width="9" src="{BASE}/raw/v1.0.0/docs/a.png" alt="a">'),
        ('<a href="docs/a.md">a</a>', f'<a href="{BASE}/blob/v1.0.0/docs/a.md">a</a>'),
        ("[two\nlines](LICENSE)", f"[two\nlines]({BASE}/blob/v1.0.0/LICENSE)"),
    ],
)
def test_links_to_files_are_made_absolute(written: str, shown: str) -> None:
    assert absolute_links(f"See {written}.", BASE, "v1.0.0") == f"See {shown}."


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://a.example/b)",
        "[a](#part)",
        "[a](mailto:a@b.example)",
        "`[a](docs/a.md)`",
        "```python\nrows[0](docs)\n```",
    ],
)
def test_whatever_else_stays_as_it_is(text: str) -> None:
    assert absolute_links(text, BASE, "v1.0.0") == text


def test_no_link_of_the_readme_is_left_behind() -> None:
    shown = absolute_links((ROOT / "README.md").read_text(), BASE, "v1.0.0")
    shown = re.sub(r"^```.*?^```$", "", shown, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert len(targets) > 20
    assert [target for target in targets if not re.match(r"https?:|#", target)] == []
    assert shown.count(f"{BASE}/raw/v1.0.0/") >= 1
