"""The full-screen Claude Code beside its gateway, as a person uses it: an order, a file, another model of the list."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from real.claude.rig import BINARY, isolated, real
from real.codex.full_screen import FullScreen, full_screen

pytestmark = [*real, pytest.mark.timeout(600)]


def order(screen: FullScreen, words: str) -> None:
    screen.press(words)
    screen.press("\r")


def answered(log: Path, model: str) -> bool:
    rows = log.read_text().splitlines()
    return any("path=/v1/messages status=200" in row and f"model={model} " in row for row in rows)


def test_a_person_makes_a_file_and_goes_on_with_a_model_from_the_gateways_list(tmp_path: Path) -> None:
    home, work, log = tmp_path / ".claude", tmp_path / "work", tmp_path / "gateway.log"
    home.mkdir()
    work.mkdir()
    seen = {"hasCompletedOnboarding": True, "theme": "dark"}
    (home / ".claude.json").write_text(json.dumps({**seen, "projects": {str(work): {"hasTrustDialogAccepted": True}}}))
    started = [sys.executable, "-m", "isthmus", "claude", "run", "--log", str(log)]
    line = [*started, "--", "--permission-mode", "acceptEdits"]
    path = f"{BINARY.parent}{os.pathsep}{os.environ['PATH']}"
    with full_screen(line, work, {**isolated(home), "PATH": path, "TERM": "xterm-256color"}) as screen:
        assert screen.see("accept edits on"), screen.screen
        order(screen, "create hello.txt with hello world")
        assert screen.wait(lambda: (work / "hello.txt").exists()), screen.screen
        assert screen.see("Done. Write answered"), screen.screen
        order(screen, "/model")
        assert screen.see("8.demo/demo-thinking"), screen.screen
        screen.press("8")
        assert screen.see("Yes, switch to demo/demo-thinking"), screen.screen
        screen.press("\r")
        order(screen, "count to 3")
        assert screen.wait(lambda: answered(log, "demo-thinking")), screen.screen
    assert (work / "hello.txt").read_text() == "hello world"
