"""Which file is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config.find import config_folder, data_folder, find_config
from isthmus.errors import ConfigError


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_the_flag_comes_before_the_variable_the_folder_and_the_home(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    cwd = tmp_path / "work"
    cwd.mkdir()
    assert find_config(None, environ, cwd) is None
    home = _file(tmp_path / "home/.config/isthmus/isthmus.toml")
    assert find_config(None, environ, cwd) == home
    here = _file(cwd / "isthmus.toml")
    assert find_config(None, environ, cwd) == here
    named = _file(tmp_path / "named.toml")
    environ["ISTHMUS_CONFIG"] = str(named)
    assert find_config(None, environ, cwd) == named
    flag = _file(cwd / "flag.toml")
    assert find_config("flag.toml", environ, cwd) == flag


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    file = _file(tmp_path / "etc/isthmus.toml")
    assert find_config(tmp_path / "etc", {}, tmp_path) == file


@pytest.mark.parametrize("by", ["--config", "$ISTHMUS_CONFIG"])
def test_a_named_file_must_exist(tmp_path: Path, by: str) -> None:
    flag = "nope.toml" if by == "--config" else None
    with pytest.raises(ConfigError) as caught:
        find_config(flag, {"ISTHMUS_CONFIG": "nope.toml"}, tmp_path)
    assert f"named by `{by}` does not exist" in caught.value.message
    assert "isthmus init" in caught.value.message


@pytest.mark.parametrize(
    ("environ", "platform", "config", "data"),
    [
        pytest.param({"HOME": "/h"}, "linux", "/h/.config/isthmus", "/h/.local/share/isthmus", id="linux"),
        pytest.param({"HOME": "/h"}, "darwin", "/h/.config/isthmus", "/h/.local/share/isthmus", id="macos"),
        pytest.param(
            {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"},
            "linux",
            "/c/isthmus",
            "/d/isthmus",
            id="xdg",
        ),
        pytest.param(
            {"HOME": "/h", "XDG_CONFIG_HOME": "relative"},
            "linux",
            "/h/.config/isthmus",
            "/h/.local/share/isthmus",
            id="relative xdg is ignored",
        ),
        pytest.param({"APPDATA": "/r", "LOCALAPPDATA": "/l"}, "win32", "/r/isthmus", "/l/isthmus", id="windows"),
    ],
)
def test_the_users_folders(environ: dict[str, str], platform: str, config: str, data: str) -> None:
    assert config_folder(environ, platform) == Path(config)
    assert data_folder(environ, platform) == Path(data)
