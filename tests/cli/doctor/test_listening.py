"""Places to listen at: files, addresses that are not ours; ports are asked about in `test_doctor_command`."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path

import msgspec

from isthmus.cli.doctor.finding import Finding
from isthmus.cli.doctor.listening import look_at_port
from isthmus.config.schema import Server


def look(**settings: object) -> Finding:
    found = asyncio.run(look_at_port(msgspec.structs.replace(Server(), **settings), 1.0, offline=True))
    return found[0]


def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    found = look(host="192.0.2.1", port=8484)
    assert (found.state, found.remedy) == ("problem", "choose another `server.host` or `server.port`")
    assert look(host="no-such-host.invalid", port=8484).state == "problem"


def test_a_file_is_free_used_or_left_behind() -> None:
    with tempfile.TemporaryDirectory(prefix="cx") as folder:
        path = Path(folder) / "s.sock"
        assert look(unix_socket=str(path)).told == f"`{path}` is free: no gateway runs there now"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(1)
            assert look(unix_socket=str(path)).told == f"somebody listens at `{path}`"
        assert "left behind" in look(unix_socket=str(path)).told
        assert look(unix_socket=f"{folder}/none/s.sock").state == "problem"
