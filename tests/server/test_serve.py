"""The process: what it refuses to begin, what it asks of the system, and its end in good order."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from isthmus.cli.serve_command import banner, waiting_words
from isthmus.config.schema import Server
from isthmus.server.listen import tls_context
from isthmus.server.serve import _hang_up, raise_file_limit
from isthmus.testing import Gate, ScriptedUpstream, reply
from isthmus.testing.replies import chat_reply
from one_provider import HELLO, one_provider
from own_time import clock
from serving import running_gateway_process, running_gateway_server
from talking import Reply, Talk

CERTIFICATE = Path(__file__).parents[1] / "upstream" / "self_signed.pem"


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_it_takes_as_many_files_as_it_may() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(hard if hard > 0 else 65_536, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_hangup_reads_the_certificate_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "both.pem"
    shutil.copy(CERTIFICATE, file)
    server = Server(tls_cert=str(file), tls_key=str(file))
    context = tls_context(server)
    assert isinstance(context, ssl.SSLContext)
    asked = Mock()
    with caplog.at_level(logging.INFO, "isthmus.server"):
        _hang_up(server, context, asked)  # type: ignore[arg-type]
        file.write_text("broken")
        _hang_up(server, context, asked)  # type: ignore[arg-type]
        _hang_up(Server(), None, asked)  # type: ignore[arg-type]
    assert [record.levelname for record in caplog.records] == ["INFO", "ERROR", "INFO"]
    assert "the old certificate stays" in caplog.records[1].getMessage()
    assert asked.ask.call_count == 3, "whatever became of the certificate, the configuration is read again"


def test_what_runs_may_finish_after_the_stop() -> None:
    gate, replies = Gate(), list[Reply]()
    script = [reply(chat_reply("held"), after=gate)]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream) as (talk, gateway):
        asking = threading.Thread(target=lambda: replies.append(talk.post("/v1/responses", HELLO)))
        asking.start()
        upstream.wait_received(1)
        stopping = threading.Thread(target=gateway.stop)
        stopping.start()
        gate.open()
        stopping.join()
        asking.join()
    assert replies[0].json["output_text"] == "held"


def test_it_ends_at_once_and_waits_for_no_clock_where_nothing_runs() -> None:
    """Also beside a connection that is kept for the next question."""

    async def stop_the_clock() -> None:
        clock().stop_clock()

    script = [reply(chat_reply("well"))]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream) as (talk, gateway):
        host, _, port = gateway.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as kept:
            kept.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert kept.recv(100).startswith(b"HTTP/1.1 200")
            assert talk.post("/v1/responses", HELLO).json["output_text"] == "well"
            gateway.do(stop_the_clock())
            gateway.stop()
            while kept.recv(1000):
                pass


@pytest.mark.parametrize(("running", "words"), [(1, "1 response to end"), (3, "3 responses to end")])
def test_the_words_for_it(running: int, words: str) -> None:
    assert words in waiting_words(running, 30.0)
    assert "Ctrl-C again" in waiting_words(running, 30.0)


def test_the_banner_shows_how_to_ask_over_a_file() -> None:
    shown = banner("unix:/run/x.sock", "demo/demo", ["demo"], "memory:")
    assert "curl --unix-socket /run/x.sock http://localhost/v1/responses" in shown


def test_a_trusted_proxy_is_believed_and_nobody_else() -> None:
    toml = '[server]\nport = 0\n{}\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
    for setting, scheme in (
        ("", "http:"),
        ('trusted_proxies = ["10.0.0.0/8"]', "http:"),
        ('trusted_proxies = ["127.0.0.1"]', "https:"),
        ('trusted_proxies = ["*"]', "https:"),
    ):
        with running_gateway_server(toml.format(setting)) as gateway:
            message = Talk(gateway.url).request("GET", "/nowhere", None, told).error["message"]
            assert gateway.url.replace("http:", scheme) in message


@pytest.mark.parametrize("workers", [1, 2])
def test_where_its_database_is_away_it_does_not_start_and_says_what_to_do(tmp_path: Path, workers: int) -> None:
    """As with a file that cannot be opened: whoever started it tries again, or hears of it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    toml = f'[server]\nworkers = {workers}\n[store]\nurl = "postgresql://me:a-password@{address}/isthmus"\n'
    with pytest.raises(RuntimeError) as ended, running_gateway_process(toml, tmp_path):
        pass
    said = str(ended.value)
    assert "the gateway ended with 1" in said
    assert f"error: the store `postgresql://{address}/isthmus` cannot be used" in said
    assert "check that the server runs and can be reached from here" in said
    assert "a-password" not in said
    assert "Traceback" not in said
