"""The table that `serve` shows: within the width, plain, with where each key comes from and never the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from isthmus.cli.serve_table import Row, look_at_providers, table
from isthmus.config.load import load_config
from isthmus.testing import ScriptedUpstream
from isthmus.wiring import running_gateway

ROWS = [
    Row("deepseek", "2", "$DEEPSEEK_API_KEY", "✓ yes"),
    Row(
        "a-provider-with-a-long-name",
        "120",
        "missing: set $A_RATHER_LONG_VARIABLE",
        "✗ cannot be reached: " + "x " * 60,
    ),
    Row("demo", "3", "none needed", "✓ built in"),
]


@pytest.mark.parametrize("width", [80, 140])
def test_it_fits_the_width_and_only_the_last_column_is_broken(width: int) -> None:
    short = [ROWS[0], ROWS[2], Row("vertex", "1", "a Google account", "✗ cannot be reached: " + "word " * 40)]
    lines = table(short, width)
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines[:3]] == ["provider", "deepseek", "demo"]
    start = lines[0].index("reachable")
    assert all(line[:start].strip() == "" for line in lines[4:]), "what follows stands below its column"
    assert all(line == line.rstrip() for line in lines)


def test_no_word_is_lost_where_there_is_no_room() -> None:
    shown = " ".join(" ".join(table(ROWS, 80)).split())
    assert shown.count("x") >= 60
    assert "missing: set $A_RATHER_LONG_VARIABLE" in shown


async def rows(folder: Path, text: str, environ: Mapping[str, str]) -> dict[str, Row]:
    (folder / "isthmus.toml").write_text(f"[store]\nurl = 'memory:'\n{text}")
    config = load_config(folder / "isthmus.toml", environ={"HOME": str(folder), **environ}).config
    async with running_gateway(config) as gateway:
        return {row.provider: row for row in await look_at_providers(gateway, config, {"found": ("a", "b")})}


async def test_each_key_is_told_by_its_place_and_each_provider_by_a_connection(tmp_path: Path) -> None:
    secret = "sk-table-0123456789"
    async with ScriptedUpstream() as upstream:
        there = f"base_url = '{upstream.base_url}'"
        text = "".join(
            f"[providers.{name}]\n{said}\n"
            for name, said in {
                "deepseek": "",
                "zhipu": there,
                "mistral": "base_url = 'http://127.0.0.1:1/v1'\napi_key = '${MINE}'",
                "groq": f"{there}\napi_key = '{secret}'",
                "xai": f"{there}\napi_keys = ['{secret}', '{secret}2']",
                "ollama": there,
                "own": f"uses = 'openai-compatible'\n{there}\nheaders = {{ Authorization = 'Bearer {secret}' }}",
                "found": "uses = 'ollama'",
            }.items()
        )
        found = await rows(tmp_path, text, {"ZHIPU_API_KEY": secret, "MINE": secret})
        assert upstream.requests == [], "nothing is asked for"
    keys = {name: row.key for name, row in found.items()}
    assert keys == {
        "deepseek": "missing: set $DEEPSEEK_API_KEY",
        "zhipu": "$ZHIPU_API_KEY withheld",
        "mistral": "$MINE",
        "groq": "providers.groq.api_key",
        "xai": "2 keys",
        "ollama": "none needed",
        "own": "in headers",
        "found": "none needed",
        "demo": "none needed",
    }
    assert found["zhipu"].reachable == "✓ yes"
    assert found["mistral"].reachable.startswith("✗ cannot be reached")
    assert found["demo"].reachable == "✓ built in"
    assert (found["found"].models, found["found"].reachable) == ("2", "✓ found at localhost:11434")
    assert secret not in str(found)
