"""Where we listen: ports, files, certificates. All over real sockets."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.config.schema import Server
from isthmus.errors import ConfigError
from isthmus.server.listen import listen, load_certificate, public_url, tls_context
from serving import running_gateway_server

ROOT = Path(__file__).parents[2]
CERTIFICATE = Path(__file__).parents[1] / "upstream" / "self_signed.pem"
STORE = '[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'


# ── ports ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_port_that_is_taken_is_told_with_a_way_out() -> None:
    first = listen(Server(port=0))
    try:
        port = int(first.address.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"choose another with `--port {port + 1}`") as refused:
            listen(Server(port=port))
        assert refused.value.param == "server.port"
    finally:
        first.close()


def test_whoever_was_started_by_make_is_told_what_make_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STARTED_BY", "make run")
    first = listen(Server(port=0))
    try:
        port = int(first.address.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"choose another with `make run PORT={port + 1}`"):
            listen(Server(port=port))
    finally:
        first.close()
    shown = subprocess.run(["make", "-n", "run", "PORT=8485"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 'STARTED_BY="make run"' in shown.stdout
    assert "isthmus serve --port 8485" in shown.stdout


def test_an_address_of_the_newer_kind_is_written_in_brackets() -> None:
    try:
        listening = listen(Server(host="::1", port=0))
    except ConfigError:
        pytest.skip("this machine has no IPv6")
    listening.close()
    assert listening.address.startswith("http://[::1]:")


# ── files ──────────────────────────────────────────────────────────────────────────────────────────────


class OverFile(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


@pytest.mark.parametrize("host", ["300.1.2.3", "192.0.2.1"])
def test_an_address_of_somebody_else_is_no_trouble_with_the_port(host: str) -> None:
    with pytest.raises(ConfigError, match="`--host` must be an address of this machine") as refused:
        listen(Server(host=host, port=0))
    assert refused.value.param == "server.host"
    assert "--port" not in refused.value.message


def test_it_listens_on_a_file_that_only_its_user_and_group_may_use(tmp_path: Path) -> None:
    path = tmp_path / "isthmus.sock"
    with running_gateway_server(f'[server]\nunix_socket = "{path}"\n{STORE}') as gateway:
        assert gateway.url == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with closing(OverFile(path)) as client:
            client.request("POST", "/v1/responses", b'{"input": "Say hello"}', {"host": "whatever"})
            answer = client.getresponse()
            assert answer.status == 200
            assert json.loads(answer.read())["status"] == "completed"
    assert not path.exists()


def test_the_file_of_one_that_is_gone_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "isthmus.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    listening = listen(Server(unix_socket=str(path)))
    listening.close()
    assert not path.exists()


def test_the_file_of_one_that_lives_is_not(tmp_path: Path) -> None:
    path = tmp_path / "isthmus.sock"
    first = listen(Server(unix_socket=str(path)))
    with pytest.raises(ConfigError, match="another gateway listens there"):
        listen(Server(unix_socket=str(path)))
    assert path.exists()
    first.close()


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="no socket"):
        listen(Server(unix_socket=str(path)))
    assert path.read_text() == "mine"


def test_a_file_that_another_one_has_put_there_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "isthmus.sock"
    first = listen(Server(unix_socket=str(path)))
    os.rename(path, tmp_path / "kept")  # else its number might be given out again
    second = listen(Server(unix_socket=str(path)))
    first.close()
    assert path.exists()
    second.close()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        listen(Server(unix_socket=str(tmp_path / "no" / "isthmus.sock")))
    assert refused.value.param == "server.unix_socket"


# ── certificates ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    shutil.copy(CERTIFICATE, certificate)
    shutil.copy(CERTIFICATE, key)
    return certificate, key


def test_it_speaks_https(pair: tuple[Path, Path]) -> None:
    certificate, key = pair
    toml = f'[server]\nport = 0\ntls_cert = "{certificate}"\ntls_key = "{key}"\n{STORE}'
    trusting = ssl.create_default_context(cafile=str(certificate))
    with running_gateway_server(toml) as gateway:
        assert gateway.url.startswith("https://127.0.0.1:")
        port = int(gateway.url.rpartition(":")[2])
        with closing(http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=60)) as client:
            client.request("POST", "/v1/responses", b'{"input": "Say hello", "stream": true}')
            answer = client.getresponse()
            assert answer.status == 200
            assert answer.read().endswith(b"data: [DONE]\n\n")
            client.request("GET", "/api/v1/responses")
            assert f"https://127.0.0.1:{port}/v1/responses".encode() in client.getresponse().read()


def test_it_takes_both_files(pair: tuple[Path, Path]) -> None:
    for settings in (Server(tls_cert=str(pair[0])), Server(tls_key=str(pair[1]))):
        with pytest.raises(ConfigError, match="both"):
            tls_context(settings)
    assert tls_context(Server()) is None


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_files_that_cannot_be_used_are_told_before_anything_is_begun(pair: tuple[Path, Path], text: str | None) -> None:
    certificate, key = pair
    if text is None:
        certificate.unlink()
    else:
        certificate.write_text(text)
    with pytest.raises(ConfigError, match="cannot be used") as refused:
        tls_context(Server(tls_cert=str(certificate), tls_key=str(key)))
    assert refused.value.param == "server.tls_cert"


def test_what_is_read_again_and_is_broken_changes_nothing(pair: tuple[Path, Path]) -> None:
    certificate, key = pair
    settings = Server(tls_cert=str(certificate), tls_key=str(key))
    context = tls_context(settings)
    assert context is not None
    certificate.write_text("no certificate")
    with pytest.raises(ConfigError):
        load_certificate(context, settings)


# ── what clients are told ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (Server(), "http://127.0.0.1:8484"),
        (Server(host="0.0.0.0"), "http://127.0.0.1:8484"),
        (Server(host="::"), "http://[::1]:8484"),
        (Server(host="ai.example", tls_cert="x", tls_key="x", path_prefix="a/"), "https://ai.example:8484/a"),
        (Server(unix_socket="/run/x.sock"), "unix:/run/x.sock"),
    ],
)
def test_the_settings_say_where_clients_find_it(server: Server, url: str) -> None:
    assert public_url(server) == url
