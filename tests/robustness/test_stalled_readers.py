"""A client that stays connected and does not read cannot keep a run alive for ever."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from isthmus.conduct.stopping import _LAST_WORDS
from isthmus.testing import PATIENCE, ScriptedUpstream, chat_chunks, stream
from serving import GatewayThread, running_gateway_server
from talking import Talk
from waiting import until

FLOOD = stream(chat_chunks("a word and a blank " * 300_000, pieces=60_000))


def config(upstream: ScriptedUpstream, folder: Path, more: str = "") -> str:
    return (
        '[server]\nport = 0\n[models]\ndemo = false\ndefault = "up/model"\n'
        f'[providers.up]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\n{more}\n'
        f'[store]\nurl = "sqlite:{folder / "x.db"}"\n[log]\nlevel = "error"\n'
    )


def ask_and_stall(gateway: GatewayThread) -> tuple[socket.socket, str]:
    """A connection on which a stream has begun, and the response's id."""
    parts = urlsplit(gateway.url)
    client = socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE)
    body = json.dumps({"input": "go", "stream": True}).encode()
    client.sendall(b"POST /v1/responses HTTP/1.1\r\nhost: [::1]\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    seen = b""
    while b'"id":"resp_' not in seen:
        came = client.recv(4096)
        assert came, seen
        seen += came
    return client, "resp_" + seen.partition(b'"id":"resp_')[2].split(b'"', 1)[0].decode()


def wait_until_over(gateway: GatewayThread) -> None:
    until(lambda: not len(gateway.gateway.runs), "the run goes on for ever")


def test_a_run_past_its_time_is_taken_from_a_reader_that_does_not_read(tmp_path: Path) -> None:
    with ScriptedUpstream.running([FLOOD]) as upstream:
        toml = config(upstream, tmp_path, "[providers.up.timeouts]\ntotal = 200")
        with running_gateway_server(toml) as gateway:
            client, response_id = ask_and_stall(gateway)
            with closing(client):
                running = gateway.wait_until_stuck(response_id)
                gateway.skip(200)
                assert not running.abandoned, "its reader is given time for the last words"
                gateway.skip(_LAST_WORDS)
                wait_until_over(gateway)
                assert running.abandoned
                response = Talk(gateway.url).get(f"/v1/responses/{response_id}").json
            assert (response["status"], response["error"]["code"]) == ("failed", "upstream_timeout")
            upstream.requests[0].closed.wait()


def test_a_stopped_run_whose_reader_leaves_before_its_terminal_event_is_saved_as_stopped(tmp_path: Path) -> None:
    with ScriptedUpstream.running([FLOOD]) as upstream, running_gateway_server(config(upstream, tmp_path)) as gateway:
        client, response_id = ask_and_stall(gateway)
        with closing(client):
            gateway.wait_until_stuck(response_id).stop("shutdown")
        wait_until_over(gateway)
        response = Talk(gateway.url).get(f"/v1/responses/{response_id}").json
        assert (response["status"], response["error"]["code"]) == ("failed", "server_is_overloaded")
