"""The README tells the truth: its commands and its programs are run against a gateway started as it says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from doc_pages import (
    ADDRESS,
    ROOT,
    WIDTH,
    Gateway,
    Shown,
    check_output,
    environment,
    read_blocks,
    read_commands,
    read_programs,
)
from isthmus import __version__
from isthmus.config.known import find_known, known_names, usable_names

README = ROOT / "README.md"
COMMANDS = list(read_commands(README))
PROGRAMS = list(read_programs(README))


@pytest.mark.parametrize("shown", COMMANDS, ids=str)
def test_a_command_prints_what_the_readme_shows(shown: Shown, gateway: Gateway) -> None:
    check_output(shown, gateway.run_command(shown.source))


@pytest.mark.parametrize("shown", PROGRAMS, ids=str)
def test_a_program_prints_what_the_readme_shows(shown: Shown, gateway: Gateway) -> None:
    assert shown.output, "every program of the README shows its output"
    check_output(shown, gateway.run_program(shown.source))


def test_the_first_screen_says_what_and_why_shows_a_picture_and_two_commands() -> None:
    first = next(block for block in read_blocks(README) if block.language in ("sh", "console"))
    assert first.line <= 20
    run, chat = first.text.splitlines()
    assert run.startswith("make run")
    assert chat.startswith('.venv/bin/isthmus chat "hello"')
    before = README.read_text().partition(first.text)[0]
    assert before.count("![") == 1
    assert before.index("## Try it") > before.index("![")


def test_it_asks_by_command_by_curl_and_with_a_short_program_for_the_sdk() -> None:
    chat, curl = (shown.source for shown in COMMANDS[:2])
    assert chat.startswith("isthmus chat ")
    assert curl.startswith(f"curl -s {ADDRESS}/v1/responses")
    lines = [line for line in PROGRAMS[0].source.splitlines() if line.strip()]
    assert len(lines) == 5
    assert lines[0] == "from openai import OpenAI"


def test_it_is_read_in_five_minutes() -> None:
    assert len(README.read_text().split()) < 1_400


def test_it_says_how_wide_the_terminal_is_that_it_shows() -> None:
    assert any(shown.source.startswith("isthmus explain") for shown in COMMANDS)
    assert f"a terminal of {WIDTH} columns" in " ".join(README.read_text().split())


def test_strict_mode_refuses_what_it_shows_as_changed(gateway: Gateway) -> None:
    asked = next(shown.source for shown in COMMANDS if "apply_patch" in shown.source)
    refused = gateway.run_command(asked.replace(" -d ", " -H 'Isthmus-Strict: true' -d "))
    assert refused.startswith("HTTP/1.1 400")
    assert all(f"`{path}`" in refused for path in ("max_tool_calls", "tools[0]"))


def test_make_run_starts_the_gateway() -> None:
    recipe = re.search(r"^run:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert "isthmus serve" in recipe[1]


def test_the_gateway_says_where_it_is_and_that_the_demo_model_answers(gateway: Gateway) -> None:
    assert gateway.banner.startswith(f"Isthmus {__version__} is listening on http://127.0.0.1:")
    assert "default model   demo/demo" in gateway.banner


def test_a_key_in_the_environment_is_all_that_a_provider_needs(tmp_path: Path) -> None:
    printed = subprocess.run(
        ["isthmus", "config", "print", "--json"],
        cwd=tmp_path,
        env={**environment(tmp_path), "DEEPSEEK_API_KEY": "sk-readme"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(printed)["models"]["default"] == "deepseek/deepseek-v4-pro"
    assert "sk-readme" not in printed


def test_the_provider_table_agrees_with_the_provider_files() -> None:
    rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \|$", README.read_text(), re.MULTILINE)
    assert len(rows) > 5
    for name, key, model in rows:
        known = find_known(name)
        assert (known.key_variables[0], known.default_model) == (key, model), name


def test_its_counts_of_providers_hold() -> None:
    assert "more than thirty providers" in README.read_text()
    assert len(known_names()) > 30
    assert "more than a hundred others" in " ".join(README.read_text().split())
    assert len(set(usable_names()) - set(known_names())) > 100


def test_the_status_names_the_version() -> None:
    assert f"Version {__version__}" in README.read_text()


@pytest.mark.real
def test_codex_makes_the_file_that_the_readme_promises(tmp_path: Path) -> None:
    shown = next(block.text for block in read_blocks(README) if "codex run" in block.text)
    command = shown.split("#")[0].strip()
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=110,
    )
    assert (folder / "hello.txt").read_text() == "hello world\n"
