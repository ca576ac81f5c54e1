"""Who could reach a gateway without a key: that must be wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import load_config
from isthmus.config.schema import Server
from isthmus.errors import ConfigError
from isthmus.server.open import check_open, is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "gateway.example"])
def test_beyond_the_loopback_it_does_not_start_without_keys(tmp_path: Path, host: str) -> None:
    def reading(more: str, *, kept: bool = False) -> None:
        file = tmp_path / "isthmus.toml"
        file.write_text(f'[server]\nhost = "{host}"\n{more}')
        check_open(load_config(file, environ={}).config.server, kept=kept)

    with pytest.raises(ConfigError, match="open = true"):
        reading("")
    reading('admin_key = "sk-chief"')
    reading('api_keys = ["sk-one"]')
    reading("open = true")
    reading("", kept=True)
    reading(f'unix_socket = "{tmp_path}/x.sock"')  # its file has permissions of its own


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_on_the_loopback_it_does(tmp_path: Path, host: str) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(f'[server]\nhost = "{host}"\n')
    check_open(load_config(file, environ={}).config.server, kept=False)


def test_a_file_is_local_whatever_the_host_says() -> None:
    assert is_local(Server(host="0.0.0.0", unix_socket="/x"))
    assert not is_local(Server(host="0.0.0.0"))
