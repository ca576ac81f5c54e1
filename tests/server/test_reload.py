"""SIGHUP to the real process: what is written in the configuration now counts for whatever is asked next, and what was
begun before goes on as it began."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from isthmus.server.reload import Board
from isthmus.testing import Answer, Gate, ScriptedUpstream, chat, chat_chunks, error, stream
from serving import PATIENCE, GatewayProcess, running_gateway_process
from socketing import open_socket
from talking import Talk
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")

KEY, OTHER_KEY = "sk-a1b2c3d4e5f6", "sk-f6e5d4c3b2a1"


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream.running(default=chat("hello"), strict=False) as running:
        yield running


def toml(upstream: ScriptedUpstream, **settings: str) -> str:
    """One provider, `main`; `settings` are whole sections, as text."""
    texts = {
        "server": "",
        "store": 'url = "memory:"',
        "models": 'demo = false\ndefault = "main/one"\naliases = { mine = "main/one" }',
        "providers.main": main(upstream, KEY),
        **{name.replace("__", "."): text for name, text in settings.items()},
    }
    return "".join(f"[{name}]\n{text}\n" for name, text in texts.items() if text is not None)


def main(upstream: ScriptedUpstream, key: str) -> str:
    return f'uses = "openai-compatible"\nbase_url = "{upstream.base_url}"\napi_key = "{key}"\nretries = 0'


def reload(gateway: GatewayProcess, text: str, words: str = "config.reloaded") -> None:
    """Write the configuration, say so, and wait until the log says this once more."""
    before = gateway.log.read_text().count(words)
    (gateway.log.parent / "isthmus.toml").write_text(text)
    gateway.process.send_signal(signal.SIGHUP)
    until(lambda: gateway.log.read_text().count(words) > before, lambda: gateway.log.read_text())


def ask(gateway: GatewayProcess, key: str = "", **fields: Any) -> Any:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return Talk(gateway.url).post("/v1/responses", {"input": "hi", **fields}, headers)


def held_back(text: str, gate: Gate) -> Answer:
    """A streamed answer that stops in its middle until the gate is open."""
    first, *rest = chat_chunks(text)
    return stream([first, gate, *rest])


def shown(upstream: ScriptedUpstream) -> str:
    """The key that the last request showed."""
    return dict(upstream.requests[-1].headers)["authorization"].removeprefix("Bearer ")


def test_an_alias_changes_its_meaning_and_a_long_stream_goes_on(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    gate = Gate()
    with (
        running_gateway_process(toml(upstream), tmp_path) as gateway,
        ScriptedUpstream.running(default=chat("from the other"), strict=False) as other,
    ):
        upstream.push(held_back("told to its end", gate))
        with Talk(gateway.url).streaming("/v1/responses", {"model": "mine", "input": "hi", "stream": True}) as held:
            gate.reached.wait()
            pid = gateway.process.pid
            reload(
                gateway,
                toml(
                    upstream,
                    models='demo = false\ndefault = "other/two"\naliases = { mine = "other/two" }',
                    providers__main=None,  # type: ignore[arg-type]
                    providers__other=f'uses = "openai-compatible"\nbase_url = "{other.base_url}"',
                ),
            )
            assert ask(gateway, model="mine").json["output_text"] == "from the other"
            refused = ask(gateway, model="main/one")
            assert refused.error["code"] == "unknown_provider", (
                "a provider that was taken out is not there for new requests"
            )
            gate.open()
            events = [event["type"] for event in held]
        assert events[-1] == "response.completed"
        assert gateway.process.pid == pid
        assert gateway.process.poll() is None


def test_a_providers_key_is_the_new_one_and_neither_stands_in_the_log(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with running_gateway_process(toml(upstream), tmp_path, log_level="debug") as gateway:
        ask(gateway)
        assert shown(upstream) == KEY
        reload(gateway, toml(upstream, providers__main=main(upstream, OTHER_KEY)))
        upstream.push(error(500, f"no: {OTHER_KEY}"))
        assert OTHER_KEY not in ask(gateway).body.decode(), "an upstream that repeats it is not believed"
        assert shown(upstream) == OTHER_KEY
        log = gateway.log.read_text()
        assert KEY not in log
        assert OTHER_KEY not in log


def test_clients_keys_change_and_what_was_stored_is_still_there(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(toml(upstream, server='api_keys = ["sk-old"]'), tmp_path) as gateway:
        made = ask(gateway, "sk-old")
        assert made.status == 200
        reload(gateway, toml(upstream, server='api_keys = ["sk-new"]\nmax_concurrent = 7'))
        assert ask(gateway, "sk-old").status == 401
        path, headers = f"/v1/responses/{made.json['id']}", {"authorization": "Bearer sk-new"}
        found = Talk(gateway.url).request("GET", path, headers=headers)
        assert found.json["output_text"] == "hello"


def test_an_open_socket_serves_with_the_new_configuration_unless_its_key_is_gone(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    first = 'api_keys = ["sk-old", "sk-stays"]'
    with running_gateway_process(toml(upstream, server=first), tmp_path) as gateway, ExitStack() as stack:
        stays, goes = (
            stack.enter_context(open_socket(gateway.url, headers={"authorization": f"Bearer {key}"}))
            for key in ("sk-stays", "sk-old")
        )
        for socket in (stays, goes):
            socket.answer({"model": "mine", "input": "hi"})
        models = 'demo = false\ndefault = "main/one"\naliases = { mine = "main/another" }'
        reload(gateway, toml(upstream, server='api_keys = ["sk-stays"]', models=models))
        assert stays.answer({"model": "mine", "input": "hi"})["status"] == "completed"
        assert upstream.requests[-1].json["model"] == "another"
        assert goes.next()["error"]["code"] == "invalid_api_key"


def test_a_broken_configuration_changes_nothing_and_says_why(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(toml(upstream), tmp_path) as gateway:
        for broken, words in (
            ("[server\n", "not valid TOML"),
            (toml(upstream, server="max_concurrent = 0"), "server.max_concurrent"),
            ("[models]\ndemo = false\n[store]\nurl = 'memory:'\n", "`providers` has no provider"),
        ):
            reload(gateway, broken, "config.not_reloaded")
            assert words in gateway.log.read_text().rpartition("config.not_reloaded")[2]
            assert ask(gateway, model="mine").status == 200
        reload(gateway, toml(upstream))
        assert ask(gateway).status == 200


def test_what_needs_a_new_process_is_named_and_left_as_it_was(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(toml(upstream), tmp_path) as gateway:
        made = ask(gateway).json["id"]
        changed = toml(upstream, server="port = 1", store='url = "sqlite:other.db"', checks="workers = 3")
        reload(gateway, changed, "config.needs_restart")
        told = gateway.log.read_text().rpartition("config.needs_restart")[2]
        assert re.search(r"settings=\"?store.url,checks.workers", told), told
        assert Talk(gateway.url).get(f"/v1/responses/{made}").status == 200


def test_a_stream_that_takes_longer_than_it_may_is_ended_with_a_word(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    gate = Gate()
    with running_gateway_process(toml(upstream, server="reload_grace = 0.2"), tmp_path) as gateway:
        upstream.push(held_back("never", gate))
        with Talk(gateway.url).streaming("/v1/responses", {"input": "hi", "stream": True}) as held:
            gate.reached.wait()
            reload(gateway, toml(upstream, server="reload_grace = 0.2"))
            assert [event["type"] for event in held][-1] == "response.failed"
        gate.open()
        assert ask(gateway).status == 200


def test_what_runs_in_the_background_is_cancelled_and_followed_after_a_reload(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    gate = Gate()
    with running_gateway_process(toml(upstream), tmp_path) as gateway:
        upstream.push(held_back("never", gate))
        made = ask(gateway, background=True, stream=False).json["id"]
        gate.reached.wait()
        reload(gateway, toml(upstream))
        talk = Talk(gateway.url)
        until(lambda: talk.get(f"/v1/responses/{made}").json["status"] == "in_progress")
        assert talk.post(f"/v1/responses/{made}/cancel").json["status"] == "cancelled"
        gate.open()


def test_a_hundred_reloads_under_load_leave_nothing_behind(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    over, failures, served = threading.Event(), list[Any](), list[int]()
    texts = [
        toml(upstream),
        toml(upstream, providers__spare='uses = "openai-compatible"\nbase_url = "http://127.0.0.1:9"'),
    ]

    def keep_asking(gateway: GatewayProcess) -> None:
        while not over.is_set():
            answer = ask(gateway, model="mine")
            served.append(answer.status)
            if answer.status != 200:
                failures.append(answer.body)

    with running_gateway_process(toml(upstream), tmp_path) as gateway:
        talk = Talk(gateway.url)
        load = threading.Thread(target=keep_asking, args=(gateway,))
        load.start()
        try:
            for number in range(20):  # until everything that is loaded once has been
                reload(gateway, texts[number % 2])
            before = counted(gateway, talk)
            for number in range(100):
                reload(gateway, texts[number % 2])
        finally:
            over.set()
            load.join(PATIENCE)
        assert failures == []
        assert len(served) > 20
        until(lambda: counted(gateway, talk)[0] <= before[0] + 3, lambda: f"files: {before} {counted(gateway, talk)}")
        until(lambda: counted(gateway, talk)[1] <= before[1] + 3, lambda: f"tasks: {before} {counted(gateway, talk)}")
        grown = counted(gateway, talk)[2] - before[2]
        assert grown < 8_000_000, f"{grown / 100:.0f} bytes for each reload"


def counted(gateway: GatewayProcess, talk: Talk) -> tuple[int, int, int]:
    """Open files, tasks, bytes of memory."""
    files = len(os.listdir(f"/proc/{gateway.process.pid}/fd"))
    resident = int(Path(f"/proc/{gateway.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return files, talk.get("/ready").json["tasks"], resident


async def test_whatever_comes_goes_to_the_app_that_serves_now() -> None:
    told: list[str] = []

    def app(name: str) -> Any:
        async def serve(scope: Any, receive: Any, send: Any) -> None:
            told.append(name)

        return serve

    board, nothing = Board(app("old")), Any
    begun = board({}, nothing, nothing)  # type: ignore[arg-type]
    board.app = app("new")
    await board({}, nothing, nothing)  # type: ignore[arg-type]
    await begun
    assert told == ["new", "old"], "what was begun goes on where it began"
