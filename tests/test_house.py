"""The house keeps its own rules: the tests of a file stand where the file stands."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "isthmus"
ROOMS: Final = (
    *("bridge", "protocol", "config", "values", "conduct", "hooks", "gateway", "store", "upstream", "demo", "server"),
    "access",
)
FILES: Final = ("errors",)
"""Of rooms that are not mirrored as a whole."""
DECLARATIONS: Final = {
    "gateway/settings": "what each of them does is shown by the tests of the settings",
    "config/schema_background": "likewise",
    "config/schema_bounds": "likewise",
    "config/schema_providers": "likewise",
    "config/schema_limits": "likewise",
    "config/schema_hooks": "likewise",
    "config/schema_mcp": "likewise",
    "config/schema_watch": "likewise",
    "config/schema_search": "likewise",
    "config/schema_tools": "likewise",
    "bridge/types/managed": "what is done with it is shown by the tests of `bridge/tools/managed` and of the turn",
    "conduct/attempt": "four fields; what is done with them is shown by the tests of `ways` and `run`",
}
"""Files that do nothing which a test could break."""


def mirrored() -> list[str]:
    files = [path for room in ROOMS for path in (SOURCE / room).rglob("*.py")]
    names = {path.relative_to(SOURCE).with_suffix("").as_posix() for path in files if path.name != "__init__.py"}
    return sorted({*FILES, *names})


def test_every_file_has_its_tests_in_the_same_place() -> None:
    alone = [name for name in mirrored() if name not in DECLARATIONS and not _holds_tests(_place(name))]
    assert alone == [], "give these files tests of their own, in the same place below `tests/`"


def test_what_is_called_a_declaration_is_one() -> None:
    for name in DECLARATIONS:
        tree = ast.parse((SOURCE / f"{name}.py").read_text(encoding="utf-8"))
        does = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert does == [], f"`{name}` does something by now: test it, and take it off the list"
        assert not _place(name).exists(), f"`{name}` has tests of its own: take it off the list"


def _place(name: str) -> Path:
    folder, _, file = name.rpartition("/")
    return ROOT / "tests" / folder / f"test_{file}.py"


def _holds_tests(path: Path) -> bool:
    """Whether it is there, and no empty shell."""
    if not path.exists():
        return False
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _tests(node) for node in nodes)


def _tests(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return function.name.startswith("test_") and any(
        isinstance(node, ast.Assert) or (isinstance(node, ast.Attribute) and node.attr == "raises")
        for node in ast.walk(function)
    )


CLIENTS = ("aiohttp", "urllib.request", "http.client", "httpx", "httpx2", "requests")
WIRE = {
    "upstream/proxied/client.py": "the wire's other client, for ways through a proxy",
    "upstream/proxied/connections.py": "its connections",
    "upstream/proxied/trouble.py": "its errors",
    "upstream/proxies.py": "reads the environment's proxies, connects to nothing",
    "tools/mcp_session.py": "hands headers to the official SDK, which brings its own client",
    "upstream/mcp/over_wire.py": "has that client send over the wire",
    "upstream/mcp/sessions.py": "makes that client",
}


def test_only_the_wire_speaks_http() -> None:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            serving = isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} == {"web"}
            if not serving and any(name == each or name.startswith(f"{each}.") for name in names for each in CLIENTS):
                found.add(path.relative_to(SOURCE).as_posix())
    assert found == set(WIRE), "ask over `isthmus.upstream.wire`: it knows the limits, the proxies and the words"
