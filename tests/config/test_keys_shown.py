"""Where a provider's key comes from is told; the key never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import read_config
from isthmus.config.keys_shown import key_words

KEY = "sk-very-secret-0123456789"


@pytest.mark.parametrize(
    ("lines", "environ", "words"),
    [
        (f'api_key = "{KEY}"', {}, "in the file"),
        ('api_key = "${MINE}"', {"MINE": KEY}, "${MINE}"),
        ("", {"DEEPSEEK_API_KEY": KEY}, "${DEEPSEEK_API_KEY}"),
        ('api_key_file = "key.txt"', {}, "key.txt"),
        (f'api_keys = ["{KEY}", "{KEY}2"]', {}, "2 keys"),
        ("", {}, "missing"),
    ],
)
def test_where_a_key_comes_from(tmp_path: Path, lines: str, environ: dict[str, str], words: str) -> None:
    (tmp_path / "key.txt").write_text(KEY)
    (tmp_path / "key.txt").chmod(0o600)
    file = tmp_path / "isthmus.toml"
    file.write_text(f"[providers.deepseek]\n{lines}\n")
    said = key_words(read_config(file, environ=environ), "deepseek")
    assert words in said
    assert KEY not in said


def test_a_provider_that_is_not_there_has_none(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text("")
    assert key_words(read_config(file, environ={}), "nobody") == "none"
