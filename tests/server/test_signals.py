"""Signals to the real process: what ends it, what does not, and what it says meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest

from isthmus.testing import Gate, ScriptedUpstream, reply
from isthmus.testing.replies import chat_reply
from serving import PATIENCE, GatewayProcess, running_gateway_process
from talking import Talk
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")


def config(upstream: ScriptedUpstream, grace: int = 600) -> str:
    return (
        f'[server]\ngrace = {grace}\n[models]\ndemo = false\ndefault = "main/model"\n[store]\nurl = "memory:"\n'
        f'[providers.main]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\n'
    )


def said(gateway: GatewayProcess, words: str) -> None:
    until(lambda: words in gateway.log.read_text(), f"it never says: {words}\n{gateway.log.read_text()}")


def test_a_hangup_ends_nothing(tmp_path: Path) -> None:
    with ScriptedUpstream.running() as upstream, running_gateway_process(config(upstream), tmp_path) as gateway:
        gateway.process.send_signal(signal.SIGHUP)
        said(gateway, "server.hangup")
        assert Talk(gateway.url).get("/health").status == 200
        assert gateway.process.poll() is None


def test_ctrl_c_tells_what_it_waits_for_and_a_second_one_ends_it_at_once(tmp_path: Path) -> None:
    gate = Gate()
    script = [reply(chat_reply("held"), after=gate)]
    with (
        ScriptedUpstream.running(script, strict=False) as upstream,
        running_gateway_process(config(upstream), tmp_path) as gateway,
    ):
        asking = threading.Thread(target=lambda: Talk(gateway.url).post("/v1/responses", {"input": "hi"}))
        asking.start()
        upstream.wait_received(1)
        gateway.process.send_signal(signal.SIGINT)
        said(gateway, "Waiting for 1 response to end, 600 s at the longest. Press Ctrl-C again to end at once.")
        assert gateway.process.poll() is None
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.process.wait(PATIENCE) == 0, "it waits ten minutes otherwise"
        gate.open()
        asking.join()


def test_with_nothing_to_wait_for_it_says_nothing_and_ends(tmp_path: Path) -> None:
    with ScriptedUpstream.running() as upstream, running_gateway_process(config(upstream), tmp_path) as gateway:
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.process.wait(PATIENCE) == 0
        assert "Waiting" not in gateway.log.read_text()
