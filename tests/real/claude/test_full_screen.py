"""The full-screen Claude Code and its gateway, as a person uses them: an order, a file, another model, a title."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.claude_keys import Settings
from isthmus.testing import RecordedRequest, chat
from real.claude.rig import BINARY, MODELS, isolated, real, rig
from real.claude.vendors import DEEPSEEK, GLM, LLAMA, MISTRAL
from real.codex.full_screen import FullScreen, full_screen

pytestmark = [*real, pytest.mark.timeout(600)]


SMALL = {
    DEEPSEEK: "deepseek/deepseek-v4-flash",
    GLM: "zhipu/glm-4.7-flash",
    MISTRAL: "mistral/mistral-small-4",
    LLAMA: "vllm/meta-llama/Llama-4-Small",
}
"""The model for the short jobs beside the one that works."""


def settle_in(home: Path, work: Path) -> None:
    """What Claude Code would ask a person once."""
    seen = {"hasCompletedOnboarding": True, "theme": "dark"}
    (home / ".claude.json").write_text(json.dumps({**seen, "projects": {str(work): {"hasTrustDialogAccepted": True}}}))


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
    settle_in(home, work)
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
        assert screen.see("a window of 1,000,000 tokens"), screen.screen
        screen.press("8")
        assert screen.see("Yes, switch to demo/demo-thinking"), screen.screen
        screen.press("\r")
        assert screen.see("Set model to demo/demo-thinking"), screen.screen  # what is typed before that is lost
        order(screen, "count to 3")
        assert screen.wait(lambda: answered(log, "demo-thinking")), screen.screen
    assert (work / "hello.txt").read_text() == "hello world"


@pytest.mark.parametrize("target", MODELS)
def test_a_session_gets_its_title_from_the_small_model(tmp_path: Path, target: str) -> None:
    """Beside the first turn, with a format and `tools: []`; where the title shows is the window's own."""
    with rig(tmp_path, answer_or_name, answer_or_name, target=target) as it:
        settle_in(it.home, it.work)
        told = Settings(it.gateway.url, "any key", target, SMALL[target], 200_000, 8_192).variables
        del told["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]  # a title is one of the things that it means
        line = [str(BINARY), "--permission-mode", "acceptEdits"]
        with full_screen(line, it.work, {**isolated(it.home), **told, **QUIET}) as screen:
            assert screen.see("accept edits on"), screen.screen
            order(screen, "say hello to the harbour")
            assert screen.see("Hello, harbour."), screen.screen
            assert screen.wait(lambda: "Harbour greeting" in screen.titles[-1]), (screen.titles, it.refusals)
        assert it.refusals == []
        (named,) = [body for body in it.bodies if "tools" not in body]
        assert named["model"] == SMALL[target].partition("/")[2]
        assert "say hello to the harbour" in named["messages"][-1]["content"]
        assert '"title"' in json.dumps(named["response_format"]) or "JSON Schema" in named["messages"][0]["content"]


QUIET = {"DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1"}


def answer_or_name(request: RecordedRequest) -> Any:
    """The answer of a model that works, or the title by one that is asked for it; in a fence, unless a schema binds."""
    body = request.json
    if "tools" in body:
        return chat("Hello, harbour.")(request)
    title = '{"title": "Harbour greeting"}'
    fenced = body["response_format"]["type"] != "json_schema"
    return chat(f"Here it is:\n```json\n{title}\n```" if fenced else title)(request)
