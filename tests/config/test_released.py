"""The configuration of a released version is read as it was. The file names every key that 0.1.0 knew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT
from isthmus.config import load_config, read_config
from isthmus.config.load import Reading

RELEASED = Path(__file__).parent / "released" / "0.1.0.toml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = Path(shutil.copy(RELEASED, tmp_path / "isthmus.toml"))
    path.chmod(0o600)
    return path


def read(file: Path, text: str | None = None) -> Reading:
    if text is not None:
        file.write_text(text)
    return read_config(file, environ={"HOME": str(file.parent)}, cwd=file.parent)


def test_every_key_of_0_1_0_is_read_without_a_word(file: Path) -> None:
    assert read(file).problems == ()
    config = load_config(file, environ={"HOME": str(file.parent)}).config
    assert config.models.fallbacks == {"fast": ["demo/demo"]}
    assert [place.api_key for place in config.providers["places"].endpoints] == ["sk-four"]
    assert config.providers["deepseek"].timeouts.first_byte == 600
    assert config.providers["codex"].codex.approvals == "decline"
    assert config.store.max_chain == 10_000


def test_a_key_that_is_not_there_would_be_told(file: Path) -> None:
    assert read(file, RELEASED.read_text().replace("max_chain =", "max_chains =")).problems


def test_what_has_another_value_by_default_now_stands_in_the_notes(file: Path) -> None:
    old = load_config(file, environ={"HOME": str(file.parent)}).config
    file.write_text("[providers.deepseek]\napi_key = 'sk-one'\n[providers.codex]\nuses = 'codex'\n")
    new = load_config(file, environ={"HOME": str(file.parent)}).config
    changed = set()
    for section, names in {
        "server": "host port grace max_body heartbeat ping max_concurrent",
        "store": "keep_days max_bytes durability max_chain",
        "plan": "strict repair_budget",
        "log": "level format",
        "models": "default demo",
    }.items():
        changed |= differing(section, names, getattr(old, section), getattr(new, section))
    ours, theirs = old.providers["deepseek"], new.providers["deepseek"]
    changed |= differing("providers.NAME", "verify_tls max_connections retries", ours, theirs)
    changed |= differing("providers.NAME.timeouts", "connect first_byte idle total", ours.timeouts, theirs.timeouts)
    of_codex = "own_tools sandbox approvals max_threads handshake hold idle"
    codexes = (made.providers["codex"].codex for made in (old, new))
    changed |= differing("providers.NAME.codex", of_codex, *codexes)
    notes = (ROOT / "docs" / "upgrading.md").read_text().partition("## From 0.1.0")[2]
    assert changed == {"providers.NAME.max_connections"}
    assert all(f"`{name}`" in notes for name in changed)


def differing(section: str, names: str, old: Any, new: Any) -> set[str]:
    return {f"{section}.{name}" for name in names.split() if getattr(old, name) != getattr(new, name)}
