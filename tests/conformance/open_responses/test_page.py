"""The page and the tests say the same: each demand has its test, and no test is left out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "open-responses.md"


def test_every_demand_on_the_page_has_its_test_and_every_test_its_line() -> None:
    listed = re.findall(r"`(test_\w+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len({*listed})
    assert sorted(listed) == sorted([*_written("test_musts*.py"), *_written("test_suite*.py")])


def _written(files: str) -> list[str]:
    return [
        node.name
        for path in HERE.glob(files)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
