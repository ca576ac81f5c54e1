"""The house keeps its own rules: the tests of the core stand where its files stand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ("bridge", "protocol")


def test_every_file_of_the_core_has_its_tests_in_the_same_place() -> None:
    source = ROOT / "src" / "isthmus"
    files = [source / "errors.py", *(path for room in CORE for path in (source / room).rglob("*.py"))]
    names = [path.relative_to(source).with_suffix("") for path in files if path.name != "__init__.py"]
    alone = {str(name) for name in names if not (ROOT / "tests" / name.parent / f"test_{name.name}.py").exists()}
    assert alone == set(), "give these files tests of their own, in the same place below `tests/`"
