from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.upstream.codex.options import CodexOptions, child_environment, command_line, find_binary


def test_the_command_line_is_quiet_and_valid_toml() -> None:
    config = {"model_provider": 'a "b"\\c', "model_providers": {"x": {"n": 1, "list": ["a", 2, True]}}, "empty": {}}
    line = command_line(CodexOptions(binary=Path("/bin/sh"), config=config), "app-server")
    assert line[0] == "/bin/sh"
    assert line[-1] == "app-server"
    parsed = [tomllib.loads(value) for flag, value in zip(line[1:-1:2], line[2:-1:2], strict=True) if flag == "-c"]
    assert {"analytics": {"enabled": False}} in parsed
    assert {"feedback": {"enabled": False}} in parsed
    assert {"features": {"plugins": False}} in parsed
    assert {"model_provider": 'a "b"\\c'} in parsed
    assert {"model_providers": {"x": {"list": ["a", 2, True]}}} in parsed
    assert {"empty": {}} in parsed


@pytest.mark.parametrize("text", ["two\nlines", "a\ttab", "\x7f", "\x00", "\r", 'say "\\n"', "é\u2028"], ids=ascii)
def test_a_value_with_control_characters_is_valid_toml(text: str) -> None:
    line = command_line(CodexOptions(binary="/bin/sh", config={"notes": {"said": text, "list": [text]}}))
    parsed = [tomllib.loads(value) for flag, value in zip(line[1::2], line[2::2], strict=True) if flag == "-c"]
    assert {"notes": {"said": text}} in parsed
    assert {"notes": {"list": [text]}} in parsed


def test_only_listed_and_given_variables_reach_the_child() -> None:
    ours = {"PATH": "/bin", "OPENAI_API_KEY": "sk", "DEEPSEEK_API_KEY": "x", "CODEX_HOME": "/user"}
    options = CodexOptions(binary=Path("/codex"), environment={"MY_KEY": "given"})
    assert child_environment(options, ours) == {"PATH": "/bin", "CODEX_HOME": "/user", "MY_KEY": "given"}
    own = CodexOptions(binary=Path("/codex"), home=Path("/own"))
    assert child_environment(own, ours)["CODEX_HOME"] == "/own"


def test_a_setting_that_is_no_program_is_the_operators_to_fix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set `binary`"):
        find_binary(str(tmp_path / "codex"))
    assert find_binary("/bin/sh") == Path("/bin/sh")


def test_a_value_that_no_config_can_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match="config value"):
        command_line(CodexOptions(binary=Path("/bin/sh"), config={"x": object()}))
