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
    Gateway,
    Shown,
    check_output,
    environment,
    read_blocks,
    read_commands,
    read_programs,
)
from isthmus import __version__
from isthmus.config.known import find_known, known_names

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


def test_there_are_two_curl_lines_and_a_short_program_for_the_sdk() -> None:
    sync, stream = (shown.source for shown in COMMANDS[:2])
    assert sync.startswith(f"curl -s {ADDRESS}/v1/responses")
    assert stream.startswith(f"curl -sN {ADDRESS}/v1/responses")
    assert '"stream": true' in stream
    lines = [line for line in PROGRAMS[0].source.splitlines() if line.strip()]
    assert len(lines) == 5
    assert lines[0] == "from openai import OpenAI"


def test_the_diagnostics_shown_are_those_of_the_request_above_them(gateway: Gateway) -> None:
    shown = next(json.loads(block.text) for block in read_blocks(README) if block.language == "json")
    asked = next(shown.source for shown in COMMANDS if "apply_patch" in shown.source)
    response = json.loads(gateway.run_command(asked.replace("curl -si", "curl -s")))
    assert response["isthmus"] == shown
    refused = gateway.run_command(asked.replace(" -d ", " -H 'Isthmus-Strict: true' -d "))
    assert refused.startswith("HTTP/1.1 400")
    assert all(f"`{said['path']}`" in refused for said in shown["diagnostics"])


def test_the_first_command_comes_within_the_first_25_lines() -> None:
    first = next(block for block in read_blocks(README) if block.language in ("sh", "console"))
    assert first.line <= 25
    assert first.text.startswith("make run")


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
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|$", README.read_text().split("## Providers")[1], re.MULTILINE)
    listed = {name: (key, model) for names, key, model in rows for name in re.findall(r"`(.*?)`", names)}
    assert set(listed) == set(known_names())
    for name, (key, model) in listed.items():
        known = find_known(name)
        if known.needs_key:
            assert f"`{known.key_variables[0]}`" in key, name
        assert (f"`{known.default_model}`" == model) if known.default_model else ("that you serve" in model), name


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
