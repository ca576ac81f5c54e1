"""The house keeps its own rules: tests stand where the files stand that they test."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ("bridge", "protocol", "config", "values")
SHELL = ("demo", "upstream", "upstream/codex", "upstream/probe")
"""Rooms of the shell whose own files, without those of rooms inside, keep to the same."""


def test_every_file_has_its_tests_in_the_same_place() -> None:
    source = ROOT / "src" / "isthmus"
    files = [source / "errors.py", *(path for room in CORE for path in (source / room).rglob("*.py"))]
    files += [path for room in SHELL for path in (source / room).glob("*.py")]
    names = [path.relative_to(source).with_suffix("") for path in files if path.name != "__init__.py"]
    alone = {str(name) for name in names if not (ROOT / "tests" / name.parent / f"test_{name.name}.py").exists()}
    assert alone == set(), "give these files tests of their own, in the same place below `tests/`"


CLIENTS = ("aiohttp", "urllib.request", "http.client", "httpx", "httpx2", "requests")
WIRE = {
    "upstream/wire.py": "the wire",
    "upstream/connections.py": "the wire's connections",
    "upstream/trouble.py": "the wire's errors",
    "upstream/proxies.py": "reads the environment's proxies, connects to nothing",
    "tools/mcp.py": "hands headers to the official SDK, which brings its own client",
}


def test_only_the_wire_speaks_http() -> None:
    source = ROOT / "src" / "isthmus"
    found: set[str] = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            serving = isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} == {"web"}
            if not serving and any(name == each or name.startswith(f"{each}.") for name in names for each in CLIENTS):
                found.add(path.relative_to(source).as_posix())
    assert found == set(WIRE), "ask over `isthmus.upstream.wire`: it knows the limits, the proxies and the words"
