"""Webhooks over real sockets: what a receiver gets when a background response has ended, and when it gets it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from flowing import PLAIN, Flow, Json, running_flow
from isthmus.testing import RecordedRequest, ScriptedUpstream, chat, reply

SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="
ASKED = {"model": PLAIN, "input": "hi", "background": True}
TAKEN = reply({})


def receiving(receiver: ScriptedUpstream, more: str = "", endpoint: str = "", name: str = "hook") -> str:
    """Sections of a configuration with one receiver on this machine."""
    return (
        f'[webhooks]\nprivate_hosts = ["127.0.0.1:{receiver.port}"]\n{more}\n'
        f'[webhooks.endpoints.{name}]\nurl = "{receiver.url}/hook?token=in-the-query"\nsecret = "{SECRET}"\n{endpoint}\n'
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
    flow.script(step or chat("Done"))
    id: str = flow.post("/v1/responses", {**ASKED, **fields}).json["id"]
    return id


def verified(request: RecordedRequest) -> Json:
    """What it says, if the signature is ours."""
    told: Json = Webhook(SECRET).verify(request.body, request.headers)
    return told


@pytest.mark.parametrize("store", ["memory", "sqlite"])
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
