"""The real nginx and the real Caddy, with our settings, in front of a real gateway."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, stream
from real.deploy.conftest import DEPLOY, program, run
from serving import GatewayThread, running_gateway_server
from socketing import open_socket
from talking import Talk
from waiting import until

pytestmark = pytest.mark.real
SILENCE = 65.0
"""Seconds: both programs give up after 60 where nobody tells them otherwise."""
NAMES = ("nginx", "caddy")
every_proxy = pytest.mark.parametrize("name", NAMES)


@contextmanager
def gateway(upstream: ScriptedUpstream) -> Iterator[GatewayThread]:
    toml = f"""
[models]
demo = false
default = "main/some-model"
[store]
url = "memory:"
[server]
port = 0
heartbeat = 0
ping = 0
trusted_proxies = ["127.0.0.1"]
[providers.main]
uses = "openai-compatible"
base_url = "{upstream.base_url}"
"""
    with running_gateway_server(toml) as running:
        yield running


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def nginx_conf(folder: Path, port: int, address: str) -> Path:
    """Our file, where it may listen and whom it asks changed; nothing else."""
    text = (DEPLOY / "proxies" / "nginx.conf").read_text()
    text = text.replace("listen 443 ssl http2;", f"listen 127.0.0.1:{port};")
    text = re.sub(r"\n\s*(listen \[::\]|ssl_certificate).*;", "", text)
    text = text.replace("server 127.0.0.1:8484", f"server {address}")
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}\n{text}\n}}\n"
    )
    return file


@contextmanager
def proxy(name: str, folder: Path, running: GatewayThread) -> Iterator[str]:
    port, address = free_port(), urlsplit(running.url).netloc
    if name == "nginx":
        file = nginx_conf(folder, port, address)
        command, environ = [program("nginx"), "-p", str(folder), "-c", str(file)], {}
    else:
        file = DEPLOY / "proxies" / "Caddyfile"
        command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(file)]
        environ = {"SITE": f"http://127.0.0.1:{port}", "GATEWAY": address}
    home = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **environ}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=home, stdout=log, stderr=log)
    try:
        until(lambda: answers(port) or process.poll() is not None)
        assert process.poll() is None, (folder / f"{name}.log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    try:
        return Talk(f"http://127.0.0.1:{port}", timeout=2).get("/health").status == 200
    except OSError:
        return False


@every_proxy
def test_events_come_one_by_one(name: str, tmp_path: Path) -> None:
    gate, chunks = Gate(), chat_chunks("one two", pieces=2)
    with (
        ScriptedUpstream.running([stream([*chunks[:2], gate, *chunks[2:]])]) as upstream,
        gateway(upstream) as running,
        proxy(name, tmp_path, running) as url,
        Talk(url).streaming("/v1/responses", {"input": "hi", "stream": True}) as told,
    ):
        first = told.until("response.output_text.delta")  # the rest is not even made yet
        assert first["delta"]
        gate.open()
        assert list(told)[-1]["response"]["output_text"] == "one two"


@every_proxy
def test_a_websocket_passes(name: str, tmp_path: Path) -> None:
    with (
        ScriptedUpstream.running(default=chat("over a socket")) as upstream,
        gateway(upstream) as running,
        proxy(name, tmp_path, running) as url,
        open_socket(url) as socket,
    ):
        socket.ask({"model": "main/some-model", "input": "hi"})
        assert socket.rest()[-1]["response"]["output_text"] == "over a socket"


@every_proxy
def test_a_large_body_passes_and_one_that_is_too_large_is_refused_by_the_gateway(name: str, tmp_path: Path) -> None:
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        gateway(upstream) as running,
        proxy(name, tmp_path, running) as url,
    ):
        assert Talk(url).create({"input": "x" * 8_000_000})["status"] == "completed"
        if name == "caddy":  # it closes while the client still writes, and not every client reads the answer then
            return
        refused = Talk(url).post("/v1/responses", {"input": "x" * 55_000_000})
        assert (refused.status, refused.json["error"]["code"]) == (413, "payload_too_large")


def test_a_silent_model_is_waited_for(tmp_path: Path) -> None:
    """In real time, for both at once: longer than either waits by itself."""
    gate = Gate()
    with (
        ScriptedUpstream.running([stream([gate, *chat_chunks("late")]) for _ in NAMES]) as upstream,
        gateway(upstream) as running,
    ):
        folders = [tmp_path / name for name in NAMES]
        for folder in folders:
            folder.mkdir()
        with (
            proxy("nginx", folders[0], running) as one,
            proxy("caddy", folders[1], running) as two,
            Talk(one, timeout=120).streaming("/v1/responses", {"input": "hi", "stream": True}) as first,
            Talk(two, timeout=120).streaming("/v1/responses", {"input": "hi", "stream": True}) as second,
        ):
            time.sleep(SILENCE)  # it is time itself that is tested here
            first._deadline = second._deadline = time.monotonic() + 60  # tests are not patient otherwise
            gate.open()
            said = [list(each)[-1]["response"]["output_text"] for each in (first, second)]
            assert said == ["late", "late"]


def test_five_minutes_are_allowed() -> None:
    text = (DEPLOY / "proxies" / "nginx.conf").read_text()
    waits = [int(minutes) * 60 for minutes in re.findall(r"proxy_(?:read|send)_timeout\s+(\d+)m;", text)]
    text = (DEPLOY / "proxies" / "Caddyfile").read_text()
    waits += [int(minutes) * 60 for minutes in re.findall(r"_(?:header|read|write)?_?timeout (\d+)m", text)]
    assert len(waits) == 5
    assert min(waits) >= 300


@pytest.mark.parametrize("file", ["proxies/Caddyfile", "docker/Caddyfile"])
def test_caddy_takes_its_files(file: str, tmp_path: Path) -> None:
    assert "Valid configuration" in run(
        "caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / file, HOME=str(tmp_path)
    )


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    assert "syntax is ok" in run("nginx", "-t", "-p", tmp_path, "-c", nginx_conf(tmp_path, free_port(), "127.0.0.1:1"))
