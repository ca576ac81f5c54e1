"""Webhooks over real sockets: what a receiver gets when a background response has ended, and when it gets it again."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from openai import InvalidWebhookSignatureError, OpenAI
from openai.types.webhooks import ResponseCompletedWebhookEvent
from standardwebhooks import Webhook
from typer.testing import CliRunner

from flowing import PLAIN, Flow, Json, running_flow
from isthmus.cli.commands import app
from isthmus.testing import (
    Answer,
    Gate,
    RecordedRequest,
    ScriptedUpstream,
    chat,
    chat_chunks,
    drop,
    error,
    reply,
    silence,
    stream,
)
from raw_server import RawServer, raw_server
from serving import running_gateway_process, running_gateway_server
from talking import Talk
from waiting import until

SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="
ASKED = {"model": PLAIN, "input": "hi", "background": True}
TAKEN = reply({})


def receiving(receiver: ScriptedUpstream, more: str = "", endpoint: str = "", name: str = "hook") -> str:
    """Sections of a configuration with one receiver on this machine."""
    return (
        f'[webhooks]\nprivate_hosts = ["127.0.0.1:{receiver.port}"]\n{more}\n'
        f'[webhooks.endpoints.{name}]\nurl = "{receiver.url}/hook?token=in-the-query"\n'
        f'secret = "{SECRET}"\n{endpoint}\n'
    )


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Callable[..., tuple[Flow, ScriptedUpstream]]]:
    """A gateway and its receiver."""
    with ExitStack() as stack:

        def make(*steps: Any, more: str = "", **named: Any) -> tuple[Flow, ScriptedUpstream]:
            receiver = stack.enter_context(ScriptedUpstream.running(steps))
            return stack.enter_context(running_flow(tmp_path, extra=receiving(receiver, more), **named)), receiver

        yield make


def made(flow: Flow, step: Any = None, **fields: Any) -> str:
    """A background response for which that step was taken, and not for another one that is under way."""
    flow.script(step or chat("Done"))
    sent = len(flow.sent)
    id: str = flow.post("/v1/responses", {**ASKED, **fields}).json["id"]
    flow.wait_sent(sent + 1)
    return id


def verified(request: RecordedRequest) -> Json:
    """What it says, if the signature is ours."""
    told: Json = Webhook(SECRET).verify(request.body, request.headers)
    return told


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_a_receiver_is_told_when_a_background_response_has_ended(hooked: Any, store: str) -> None:
    flow, receiver = hooked(TAKEN, store=store)
    id = made(flow)
    request = receiver.wait_received()
    told = verified(request)
    assert told == {
        "id": told["id"],
        "object": "event",
        "created_at": told["created_at"],
        "type": "response.completed",
        "data": {"id": id},
    }
    assert told["id"].startswith("evt_")
    assert isinstance(told["created_at"], int)
    assert (request.method, request.target) == ("POST", "/hook?token=in-the-query")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "isthmus (webhooks)"
    assert request.headers["webhook-id"].startswith("wh_")
    # By then it is saved: whoever asks at once finds it.
    assert flow.get(f"/v1/responses/{id}").json["status"] == "completed"


def test_the_sdk_of_openai_unwraps_it(hooked: Any) -> None:
    flow, receiver = hooked(TAKEN)
    id = made(flow)
    request = receiver.wait_received()
    client = OpenAI(api_key="none", base_url=flow.server.url, webhook_secret=SECRET)
    event = client.webhooks.unwrap(request.body, request.headers)
    assert isinstance(event, ResponseCompletedWebhookEvent)
    assert (event.object, event.type, event.data.id) == ("event", "response.completed", id)
    with pytest.raises(InvalidWebhookSignatureError):
        client.webhooks.unwrap(request.body + b" ", request.headers)


# ── which ends ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_way_to_end_is_told_once(hooked: Any) -> None:
    flow, receiver = hooked(TAKEN, TAKEN, TAKEN, TAKEN)
    expected = {
        made(flow): "response.completed",
        made(flow, chat("Cut", finish="length")): "response.incomplete",
        made(flow, error(400, "no")): "response.failed",
    }
    receiver.wait_received(3)
    flow.script(silence())
    last: str = flow.post("/v1/responses", ASKED).json["id"]
    flow.wait_sent(4)
    for _ in range(2):  # a second time changes nothing, and tells nothing
        assert flow.post(f"/v1/responses/{last}/cancel").json["status"] == "cancelled"
    expected[last] = "response.cancelled"
    receiver.wait_received(4)
    told = [verified(request) for request in receiver.requests]
    assert {event["data"]["id"]: event["type"] for event in told} == expected
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 4


def test_what_somebody_waited_for_is_not_told(hooked: Any) -> None:
    flow, receiver = hooked(TAKEN)
    for fields in ({}, {"stream": True}, {"store": False}):
        flow.script(chat("Done"))
        assert flow.post("/v1/responses", {"model": PLAIN, "input": "hi", **fields}).status == 200
    id = made(flow)
    assert verified(receiver.wait_received())["data"] == {"id": id}
    assert flow.rows()["outbox"] <= 1
    flow.server.stop()
    assert len(receiver.requests) == 1


def test_each_receiver_hears_of_what_it_wants_to_know(tmp_path: Path) -> None:
    with ScriptedUpstream.running([TAKEN, TAKEN]) as all, ScriptedUpstream.running([TAKEN]) as bad:
        second = f'[webhooks.endpoints.bad]\nurl = "{bad.url}"\nsecret = "{SECRET}"\nevents = ["response.failed"]\n'
        toml = receiving(all).replace('"]\n', f'", "127.0.0.1:{bad.port}"]\n', 1) + second
        with running_flow(tmp_path, extra=toml) as flow:
            good, failed = made(flow), made(flow, error(400, "no"))
            all.wait_received(2)
            told = verified(bad.wait_received())
            assert (told["type"], told["data"]["id"]) == ("response.failed", failed)
            both = {verified(request)["data"]["id"]: verified(request)["id"] for request in all.requests}
            assert set(both) == {good, failed}
            assert both[failed] == told["id"], "one event"
            ids = {request.headers["webhook-id"] for request in (*all.requests, *bad.requests)}
            assert len(ids) == 3, "and a delivery for each"


# ── receivers that do not take it ──────────────────────────────────────────────────────────────────────

QUICKLY = 'first_wait = "50ms"\nlongest_wait = "100ms"\ntimeout = "500ms"'


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(error(500), id="500"),
        pytest.param(error(503, retry_after=0.05), id="503"),
        pytest.param(error(404), id="404"),
        pytest.param(error(400), id="400"),
        pytest.param(Answer(status=302, headers={"Location": "/elsewhere"}), id="redirect"),
        pytest.param(drop(), id="closed"),
        pytest.param(drop(reset=True), id="reset"),
        pytest.param(silence(), id="silence"),
        pytest.param(Answer(before=(0.2, 0.2, 0.2, 0.2)), id="late"),
    ],
)
def test_what_was_not_taken_comes_again_under_the_same_id(hooked: Any, failure: Any) -> None:
    flow, receiver = hooked(failure, failure, TAKEN, more=QUICKLY)
    made(flow)
    receiver.wait_received(3)
    first, second, third = receiver.requests
    assert len({request.headers["webhook-id"] for request in (first, second, third)}) == 1
    assert first.body == second.body == third.body
    assert verified(third)["type"] == "response.completed"
    assert third.target == first.target, "no redirect is followed"
    until(lambda: flow.rows()["outbox"] == 0, "it is forgotten when it was taken")


def test_a_head_that_trickles_has_its_time_and_no_more(tmp_path: Path) -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\n", endless=b"x: y\r\n") as drip:
        toml = receiving(drip_receiver(drip), QUICKLY)
        with running_flow(tmp_path, extra=toml) as flow:
            made(flow)
            until(lambda: len(drip.asked) > 1, "it is tried again")
            assert "waiting: 1" in until(lambda: flow.get("/ready").json["webhooks"]["hook"])


def drip_receiver(server: RawServer) -> Any:
    class Place:
        port = int(server.host.rpartition(":")[2])
        url = f"http://{server.host}"

    return Place


def test_gone_is_given_up_at_once_shown_and_sent_again_when_somebody_says_so(hooked: Any, tmp_path: Path) -> None:
    flow, receiver = hooked(error(410), TAKEN, more=QUICKLY)
    assert flow.get("/ready").json["webhooks"] == {"hook": "ok"}
    id = made(flow)
    receiver.wait_received()
    until(lambda: flow.get("/ready").json["webhooks"]["hook"].startswith("given up: 1"))
    answer = flow.get("/ready")
    assert (answer.status, answer.json["status"]) == (200, "degraded")
    store = ["--store", f"sqlite:{flow.database}"]
    listed = CliRunner().invoke(app, ["webhooks", "list", *store, "--json"])
    assert listed.exit_code == 0, listed.output
    shown = json.loads(listed.stdout)
    assert (shown["state"], shown["response"], shown["reason"]) == ("given_up", id, "it answered HTTP 410")
    again = CliRunner().invoke(app, ["webhooks", "retry", shown["id"], *store])
    assert again.stdout == "1 to be sent again\n"
    flow.server.skip(6)  # nobody tells a gateway: it looks
    second = receiver.wait_received(2)
    assert second.headers["webhook-id"] == shown["id"]
    verified(second)


def test_a_receiver_that_hangs_holds_up_no_response(hooked: Any) -> None:
    gate = Gate()
    flow, receiver = hooked(*[reply({}, after=gate)] * 6, more="at_once = 2")
    ids = [made(flow) for _ in range(6)]
    gate.reached.wait()
    receiver.wait_received(2)
    for id in ids:
        until(lambda id=id: flow.get(f"/v1/responses/{id}").json["status"] == "completed")
    assert len(receiver.requests) == 2, "two at a time"
    gate.open()
    receiver.wait_received(6)
    assert {verified(request)["data"]["id"] for request in receiver.requests} == set(ids)


def test_a_queue_that_is_full_gives_up_the_next_one_and_says_so(hooked: Any) -> None:
    gate = Gate()
    flow, _ = hooked(reply({}, after=gate), TAKEN, more="at_once = 1\nmax_queued = 2")
    for _ in range(3):
        until_ended(flow, made(flow))
    found = flow.rows()
    assert found["outbox"] == 3
    listed = CliRunner().invoke(app, ["webhooks", "list", "--store", f"sqlite:{flow.database}"])
    first, *rest = listed.stdout.splitlines()
    assert first.startswith("given up")
    assert "`webhooks.max_queued`" in first
    assert [line.split()[0] for line in rest] == ["waiting", "waiting"]
    gate.open()


def until_ended(flow: Flow, id: str) -> None:
    until(lambda: flow.get(f"/v1/responses/{id}").json["status"] not in ("queued", "in_progress"))


# ── nothing is lost ────────────────────────────────────────────────────────────────────────────────────


def process_toml(upstream: ScriptedUpstream, folder: Path, hook: str) -> str:
    return (
        f'[models]\ndemo = false\n[providers.plain]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\n'
        f'retries = 0\n[store]\nurl = "sqlite:{folder}/kept.db"\n[background]\nlease = 1\n{hook}'
    )


def test_a_kill_between_the_end_and_its_delivery_loses_nothing(tmp_path: Path) -> None:
    """The first receiver never answers: whatever the gateway was about to do about it dies with the process."""
    with ScriptedUpstream.running(default=chat("Done")) as upstream:
        with ScriptedUpstream.running(default=drop(), strict=False) as down:
            port = down.port
            toml = process_toml(upstream, tmp_path, receiving(down, QUICKLY))
            with running_gateway_process(toml, tmp_path) as gateway:
                talk = Talk(gateway.url)
                ids = [talk.post("/v1/responses", ASKED).json["id"] for _ in range(3)]
                down.wait_received()
                for id in ids:
                    until(lambda id=id: talk.get(f"/v1/responses/{id}").json["status"] == "completed")
                gateway.kill()
            before = {request.headers["webhook-id"] for request in down.requests}
            log = gateway.log.read_text()
        assert "webhook.failed endpoint=hook" in log
        assert SECRET.removeprefix("whsec_") not in log
        assert "in-the-query" not in log
        with ScriptedUpstream.running([TAKEN] * 3, port=port) as receiver:
            with running_gateway_process(toml, tmp_path) as gateway:
                receiver.wait_received(3)
                told = {verified(request)["data"]["id"] for request in receiver.requests}
                assert gateway.stop() == 0
            assert told == set(ids)
            assert before <= {request.headers["webhook-id"] for request in receiver.requests}


def test_what_a_gateway_left_behind_is_ended_by_the_next_one_and_told(tmp_path: Path) -> None:
    gate = Gate()
    chunks = chat_chunks("Hello there", pieces=2)
    with (
        ScriptedUpstream.running([stream([*chunks[:2], gate])], strict=False) as upstream,
        ScriptedUpstream.running([TAKEN]) as receiver,
    ):
        toml = process_toml(upstream, tmp_path, receiving(receiver))
        with running_gateway_process(toml, tmp_path) as gateway:
            talk = Talk(gateway.url)
            with talk.streaming("/v1/responses", {**ASKED, "stream": True}) as events:
                id = events.until("response.output_text.delta") and events_id(talk, receiver, tmp_path)
                gateway.kill()
        with running_gateway_process(toml, tmp_path):
            told = verified(receiver.wait_received())
        assert (told["type"], told["data"]["id"]) == ("response.failed", id)


def events_id(talk: Talk, receiver: ScriptedUpstream, folder: Path) -> str:
    with closing(sqlite3.connect(folder / "kept.db")) as connection:
        (found,) = connection.execute("SELECT id FROM responses").fetchone()
    assert receiver.requests == [], "nothing has ended yet"
    return str(found)


def test_two_gateways_on_one_database_deliver_each_notice_once(tmp_path: Path) -> None:
    with ScriptedUpstream.running(default=reply({}, after=0.02)) as receiver, ExitStack() as stack:
        flow = stack.enter_context(running_flow(tmp_path, extra=receiving(receiver, "at_once = 3")))
        toml = process_toml(flow.upstream, tmp_path, receiving(receiver, "at_once = 3"))
        toml = toml.replace("kept.db", "flow.db").replace("lease = 1", "lease = 30") + "[server]\nport = 0\n"
        other = stack.enter_context(running_gateway_server(toml + '[log]\nlevel = "error"\n'))
        ids = [made(flow) for _ in range(30)]
        # The other one does not hear that something was queued here; it looks.
        other.skip(6)
        receiver.wait_received(30)
        until(lambda: flow.rows()["outbox"] == 0)
        told = [verified(request)["data"]["id"] for request in receiver.requests]
        assert sorted(told) == sorted(ids), "each of them, and none twice"


def test_the_end_waits_for_what_is_under_way(hooked: Any) -> None:
    gate = Gate()
    flow, receiver = hooked(reply({}, after=gate))
    made(flow)
    gate.reached.wait()
    ending = threading.Thread(target=flow.server.stop)
    ending.start()
    until(lambda: flow.server.gateway.draining)
    with pytest.raises(TimeoutError):  # it would leave if it did not wait
        receiver.requests[0].closed.wait(2.0)
    gate.open()
    ending.join(60)
    assert receiver.requests[0].answered.is_set()
    assert not receiver.requests[0].left_early
    assert flow.rows()["outbox"] == 0


def test_while_a_secret_changes_both_can_verify(tmp_path: Path) -> None:
    old = "whsec_dGhlIHNlY3JldCB0aGF0IGl0IGhhZCBiZWZvcmUhISE="
    with ScriptedUpstream.running([TAKEN]) as receiver:
        toml = receiving(receiver, endpoint=f'previous_secret = "{old}"')
        with running_flow(tmp_path, extra=toml) as flow:
            made(flow)
            request = receiver.wait_received()
            for secret in (SECRET, old):
                assert Webhook(secret).verify(request.body, request.headers)["type"] == "response.completed"


def test_nothing_of_it_is_loaded_where_there_is_no_receiver(tmp_path: Path) -> None:
    looked = (
        "import asyncio, sys\n"
        "from isthmus.config import load_config\n"
        "from isthmus.wiring import running_gateway\n"
        "async def main():\n"
        "    async with running_gateway(load_config(sys.argv[1], environ={}).config): pass\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if 'webhook' in name or name == 'isthmus.gateway.deliver'])\n"
    )
    file = tmp_path / "isthmus.toml"
    file.write_text(f'[store]\nurl = "sqlite:{tmp_path}/kept.db"\n')
    ran = subprocess.run([sys.executable, "-c", looked, str(file)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
