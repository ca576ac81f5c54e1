"""Everything below us comes as a wheel, on systems and Pythons that this machine does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from real.package.conftest import WHOLE, Built, call, tool

pytestmark = pytest.mark.real

SYSTEMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14") if WHOLE else ("3.14",)
"""Those that are installed for real elsewhere are only asked about in the whole matrix."""


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_extra_can_be_installed_without_a_compiler(
    system: str, python: str, built: Built, cache: Path, tmp_path: Path
) -> None:
    found = resolve(f"isthmus[all] @ {built.wheel.as_uri()}", system, python, cache, tmp_path)
    for name in ("aiohttp", "jsonschema-rs", "psycopg-binary", "lxml", "openai-codex-cli-bin"):
        assert f"\n{name}==" in found, found
    assert ("\nuvloop==" in found) is ("windows" not in system)
    assert ("\nbackports-zstd==" in found) is (python != "3.14")


def test_the_gateway_itself_can_on_windows_for_arm(built: Built, cache: Path, tmp_path: Path) -> None:
    """Without `postgres`: psycopg has no wheel for it (2026-11-17)."""
    assert "\naiohttp==" in resolve(str(built.wheel), "aarch64-pc-windows-msvc", "3.14", cache, tmp_path)


def resolve(wanted: str, system: str, python: str, cache: Path, folder: Path) -> str:
    (folder / "wanted.txt").write_text(wanted)
    how = ["--only-binary", ":all:", "--python-platform", system, "--python-version", python]
    command = [tool("uv"), "pip", "compile", "--no-header", "--no-annotate", *how, folder / "wanted.txt"]
    return call(command, folder, UV_CACHE_DIR=str(cache))
