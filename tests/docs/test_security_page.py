"""Every threat on the security page is held by a test that is there."""

from __future__ import annotations

import re

import pytest

from doc_pages import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[f"{path}::{name}" for path, name in NAMED])
def test_the_test_that_holds_it_is_there(path: str, name: str) -> None:
    file = ROOT / path
    assert file.is_file(), f"{path} is not there"
    assert re.search(rf"^(async )?def {name}\(", file.read_text(), re.MULTILINE), f"{path} has no {name}"


def test_no_threat_stands_there_without_one() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count("|") == 4]
    people = PAGE[PAGE.index("## Who is trusted") : PAGE.index("## Threats")]
    threats = [row for row in rows if row not in people and not row.startswith(("| threat", "|---"))]
    assert len(threats) > 25
    assert [row for row in threats if "::" not in row] == []
