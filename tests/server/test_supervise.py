"""Several workers as a user starts them: one address, one store, and nobody who dies or gets stuck is missed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from isthmus.testing import Answer, Gate, ScriptedUpstream, chat, chat_chunks, stream
from serving import PATIENCE, GatewayProcess, running_gateway_process
from talking import Talk
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")

STARTED = re.compile(r"worker\.started worker=(\d+) pid=(\d+)")
ENDED = re.compile(r"worker\.(?:ended|died) worker=\d+ pid=(\d+)")
HOLDS_THE_LOOP = """
import os, signal
if "ISTHMUS_WORKER" in os.environ:
    def hold_the_loop(*_):
        while True:
            pass
    signal.signal(signal.SIGUSR2, hold_the_loop)
"""
"""For a module that every Python process loads: a worker can be made to stand still, in Python code."""


def config(upstream: ScriptedUpstream, server: str = "", model: str = "model") -> str:
    return (
        f'[server]\nworkers = 2\ngrace = 600\n{server}\n[models]\ndemo = false\ndefault = "main/{model}"\n'
        f'[store]\nurl = "sqlite:isthmus.db"\n'
        f'[providers.main]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\nretries = 0\n'
    )


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream.running(default=chat("hello"), strict=False) as running:
        yield running


def workers(gateway: GatewayProcess) -> dict[int, int]:
    """Process ids by worker, of those that live as far as the log knows."""
    log = gateway.log.read_text()
    gone = set(map(int, ENDED.findall(log)))
    return {int(number): int(pid) for number, pid in STARTED.findall(log) if int(pid) not in gone}


def both(gateway: GatewayProcess) -> dict[int, int]:
    """The same, once there are two again."""
    until(lambda: len(workers(gateway)) == 2, gateway.log.read_text)
    return workers(gateway)


def said(gateway: GatewayProcess, words: str) -> None:
    until(lambda: words in gateway.log.read_text(), lambda: f"it never says: {words}\n{gateway.log.read_text()}")


def ask(gateway: GatewayProcess, **fields: object) -> str:
    answer = Talk(gateway.url).post("/v1/responses", {"input": "hi", **fields})
    assert answer.status == 200, answer.body
    return str(answer.json["id"])


def held_back(text: str, gate: Gate) -> Answer:
    """A streamed answer that stops in its middle until the gate is open."""
    first, *rest = chat_chunks(text)
    return stream([first, gate, *rest])


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def stopped(pids: list[int]) -> ExitStack:
    """Inside, these processes do nothing."""
    stack = ExitStack()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        stack.callback(os.kill, pid, signal.SIGCONT)
    return stack


def test_whatever_one_of_them_keeps_every_other_one_serves(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        first, second = workers(gateway).values()
        assert "workers         2" in gateway.log.read_text()
        with stopped([second]):
            made = ask(gateway)
        with stopped([first]):
            assert Talk(gateway.url).get(f"/v1/responses/{made}").json["output_text"] == "hello"
            ask(gateway, previous_response_id=made)
        assert gateway.stop() == 0
        assert gone(first)
        assert gone(second)


def test_a_run_in_the_background_of_one_is_followed_and_cancelled_by_another(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    gate = Gate()
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        _, second = workers(gateway).values()
        upstream.push(stream(chat_chunks("never"), after=gate))
        with stopped([second]):
            made = ask(gateway, background=True)
            gate.reached.wait()
        looks = (Talk(gateway.url).get(f"/v1/responses/{made}") for _ in range(20))  # most likely at both of them
        assert {look.json["status"] for look in looks} <= {"queued", "in_progress"}
        answer = Talk(gateway.url).post(f"/v1/responses/{made}/cancel")
        assert answer.status == 200
        until(lambda: Talk(gateway.url).get(f"/v1/responses/{made}").json["status"] == "cancelled")
        gate.open()


def test_one_that_died_is_replaced(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        before = workers(gateway)
        os.kill(before[1], signal.SIGKILL)
        said(gateway, f"worker.died worker=1 pid={before[1]} code=-9")
        ask(gateway)
        after = both(gateway)
        assert after[1] != before[1]
        assert after[2] == before[2]
        with stopped([after[2]]):
            ask(gateway)  # the new one serves


def test_one_whose_loop_is_stuck_says_where_and_is_replaced(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HOLDS_THE_LOOP)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    toml = config(upstream, "stuck_worker = 4") + "[limits]\nstuck_loop = 1\n"
    with running_gateway_process(toml, tmp_path, environ={"PYTHONPATH": path}) as gateway:
        before = workers(gateway)
        os.kill(before[2], signal.SIGUSR2)
        said(gateway, f"worker.stuck worker=2 pid={before[2]}")
        ask(gateway)  # the other one serves meanwhile
        said(gateway, f"worker.died worker=2 pid={before[2]} code=-9")
        log = gateway.log.read_text()
        assert "loop.stuck" in log, "its own watchdog, which needs the interpreter"
        assert re.search(r"in hold_the_loop\n", log), "what it was asked for, which needs nothing"
        after = both(gateway)
        assert after[1] == before[1], "the other one was left alone"


def test_a_hangup_has_each_of_them_read_the_configuration_and_replaces_none(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    gate = Gate()
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        before = workers(gateway)
        upstream.push(held_back("told to its end", gate))
        with Talk(gateway.url).streaming("/v1/responses", {"input": "hi", "stream": True}) as held:
            gate.reached.wait()
            (tmp_path / "isthmus.toml").write_text(config(upstream, model="another"))
            gateway.process.send_signal(signal.SIGHUP)
            until(lambda: gateway.log.read_text().count("config.reloaded") == 2, gateway.log.read_text)
            for pid in before.values():
                with stopped([other for other in before.values() if other != pid]):
                    made = ask(gateway)
                    assert Talk(gateway.url).get(f"/v1/responses/{made}").json["model"] == "another"
            gate.open()
            assert [event["type"] for event in held][-1] == "response.completed"
        assert workers(gateway) == before


@pytest.mark.parametrize("grace", [600, 0.1])
def test_where_that_is_not_enough_they_are_replaced_one_by_one_and_drop_nothing(
    upstream: ScriptedUpstream, tmp_path: Path, grace: float
) -> None:
    """However short the grace period of an end is."""
    gate, toml = Gate(), config(upstream).replace("grace = 600", f"grace = {grace}")
    with running_gateway_process(toml, tmp_path) as gateway:
        before = workers(gateway)
        upstream.push(held_back("told to its end", gate))
        over, failures, served = threading.Event(), list[object](), list[str]()

        def keep_asking() -> None:
            while not over.is_set():
                try:
                    served.append(ask(gateway))
                except Exception as error:
                    failures.append(error)

        with Talk(gateway.url).streaming("/v1/responses", {"input": "hi", "stream": True}) as held:
            gate.reached.wait()
            load = threading.Thread(target=keep_asking)
            load.start()
            changed = toml.replace("main/model", "main/another") + "[background]\nlease = 9\n"
            (tmp_path / "isthmus.toml").write_text(changed)
            gateway.process.send_signal(signal.SIGHUP)
            said(gateway, "workers.replaced workers=2")
            assert "workers.rolling workers=2 settings=background.lease" in gateway.log.read_text()
            over.set()
            load.join(PATIENCE)
            until(lambda: sum(map(gone, before.values())) == 1, "only the one with the stream stays")
            gate.open()
            events = [event["type"] for event in held]
        assert events[-1] == "response.completed"
        assert failures == []
        assert served
        until(lambda: all(map(gone, before.values())))
        assert set(before.values()).isdisjoint(both(gateway).values())
        made = ask(gateway)
        assert Talk(gateway.url).get(f"/v1/responses/{made}").json["model"] == "another"


def test_a_configuration_that_cannot_be_used_leaves_them_as_they_are(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        before = workers(gateway)
        (tmp_path / "isthmus.toml").write_text("[server]\nworkers = 'many'\n")
        gateway.process.send_signal(signal.SIGHUP)
        said(gateway, "config.not_reloaded")
        assert workers(gateway) == before
        ask(gateway)
        assert "server.workers" in gateway.log.read_text()


def test_new_ones_that_cannot_start_leave_the_old_ones_as_they_are(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        before = workers(gateway)
        (tmp_path / "isthmus.toml").write_text(config(upstream).replace("isthmus.db", "isthmus.toml/no.db"))
        gateway.process.send_signal(signal.SIGHUP)
        said(gateway, "workers.not_replaced worker=1")
        until(lambda: workers(gateway) == before)
        ask(gateway)


def test_how_many_serve_and_where_needs_a_new_start(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        before = workers(gateway)
        (tmp_path / "isthmus.toml").write_text(config(upstream).replace("workers = 2", "workers = 3"))
        gateway.process.send_signal(signal.SIGHUP)
        said(gateway, "config.needs_restart settings=server.workers")
        until(lambda: gateway.log.read_text().count("config.reloaded") == 2)
        assert workers(gateway) == before


# ── what all of them know ──────────────────────────────────────────────────────────────────────────


def numbers(gateway: GatewayProcess) -> dict[str, float]:
    """What `/metrics` tells, whoever answers."""
    answer = Talk(gateway.url).get("/metrics")
    assert answer.status == 200, answer.body
    lines = (line for line in answer.body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


ASKED_FOR = 'isthmus_http_requests_total{door="responses",status="200"}'


def test_whichever_is_asked_tells_what_all_have_counted_and_no_number_goes_down(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        first, second = workers(gateway).values()
        with stopped([second]):
            ask(gateway)
            ask(gateway)
        with stopped([first]):
            ask(gateway)
        until(lambda: numbers(gateway).get('isthmus_workers{state="answering"}') == 2)
        looks = [numbers(gateway) for _ in range(10)]  # most likely at both of them
        assert {look[ASKED_FOR] for look in looks} == {3}
        assert {look['isthmus_overhead_seconds_count{door="responses"}'] for look in looks} == {3}
        assert {look["isthmus_info" + label] for look in looks for label in look_labels(look)} == {1}
        os.kill(first, signal.SIGKILL)
        said(gateway, f"worker.died worker=1 pid={first}")
        assert numbers(gateway)[ASKED_FOR] == 3, "what a dead one counted stays counted"
        both(gateway)
        ask(gateway)
        assert numbers(gateway)[ASKED_FOR] == 4


def look_labels(look: dict[str, float]) -> list[str]:
    return [name.removeprefix("isthmus_info") for name in look if name.startswith("isthmus_info{")]


def test_one_that_does_not_answer_is_counted_as_silent_and_holds_nobody_up(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        _, second = workers(gateway).values()
        ask(gateway)
        until(lambda: numbers(gateway).get(ASKED_FOR) == 1)
        with stopped([second]):
            look = numbers(gateway)
        assert look['isthmus_workers{state="silent"}'] == 1
        assert look[ASKED_FOR] == 1, "what it said last counts"


def test_full_capture_is_switched_for_all_of_them_and_for_those_who_come_later(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        first, second = workers(gateway).values()
        path = "/v1/isthmus/traces/capture"

        def capturing() -> bool:
            return Talk(gateway.url).get(path).json.get("full_until") is not None

        with stopped([second]):
            assert Talk(gateway.url).post(path, {"seconds": 600}).status == 200
        with stopped([first]):
            until(capturing, "the other one was never told")
        os.kill(second, signal.SIGKILL)
        said(gateway, f"worker.died worker=2 pid={second}")
        after = both(gateway)
        with stopped([first]):
            until(capturing, "a new one was never told")
            assert Talk(gateway.url).post(path, {"seconds": 0}).status == 200
        with stopped([after[2]]):
            until(lambda: not capturing(), "nobody was told that it is over")


def test_a_session_of_the_page_that_was_ended_at_one_is_over_at_the_other(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with running_gateway_process(config(upstream, 'admin_key = "sk-chief"'), tmp_path) as gateway:
        first, second = workers(gateway).values()
        talk = Talk(gateway.url)
        own = {"origin": gateway.url, "content-type": "application/x-www-form-urlencoded"}

        def token(page: str) -> str:
            found = re.search(r'name="token" value="([0-9a-f]+)"', page)
            assert found is not None, page
            return found[1]

        form = token(talk.get("/ui/login").body.decode())
        entered = talk.request("POST", "/ui/login", f"token={form}&key=sk-chief".encode(), own)
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}

        def let_in() -> bool:
            return talk.request("GET", "/ui/overview", headers=cookie).status == 200

        with stopped([second]):
            assert let_in()
            word = token(talk.request("GET", "/ui/settings", headers=cookie).body.decode())
            talk.request("POST", "/ui/logout", f"token={word}".encode(), {**own, **cookie})
        with stopped([first]):
            until(lambda: not let_in(), "the other one still believes the cookie")


def test_without_their_supervisor_they_end_in_good_order(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        pids = list(workers(gateway).values())
        gateway.kill()
        until(lambda: all(map(gone, pids)), "orphans serve on")


def test_a_second_signal_ends_all_of_them_at_once(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    gate = Gate()
    with running_gateway_process(config(upstream), tmp_path) as gateway:
        upstream.push(held_back("never", gate))
        with Talk(gateway.url).streaming("/v1/responses", {"input": "hi", "stream": True}) as held:
            gate.reached.wait()
            gateway.process.send_signal(signal.SIGINT)
            said(gateway, "server.draining")
            assert gateway.process.poll() is None
            gateway.process.send_signal(signal.SIGINT)
            assert [event["type"] for event in held][-1] == "response.failed", "still with its terminal event"
            assert gateway.process.wait(PATIENCE) == 0
        gate.open()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('[server]\nworkers = 2\n[store]\nurl = "memory:"\n', "`memory:` cannot be shared"),
        ("[server]\nworkers = 2\nport = PORT\n", "cannot listen on 127.0.0.1:PORT"),
        ('[server]\nworkers = 2\n[store]\nurl = "sqlite:isthmus.toml/no.db"\n', "isthmus.toml/no.db"),
    ],
)
def test_what_cannot_start_says_why_once(tmp_path: Path, lines: str, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        (tmp_path / "isthmus.toml").write_text(lines.replace("PORT", port))
        command = [sys.executable, "-m", "isthmus", "serve", "--config", "isthmus.toml"]
        if "PORT" not in lines:
            command += ["--port", "0"]
        ended = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.count(words.replace("PORT", port)) == 1, ended.stderr
    assert "Traceback" not in ended.stderr
