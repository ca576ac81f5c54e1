"""Proofs for `[webhooks]`: who is told, how it is signed, how often and how long it is tried."""

from __future__ import annotations

import asyncio
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from isthmus.bridge.parse import parse_request
from isthmus.errors import ConfigError
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.deliver import DeliveryRule
from isthmus.gateway.gateway import Gateway
from isthmus.testing import Gate, RecordedRequest, ScriptedUpstream, chat, error, reply
from own_time import turns
from settings.proving import PATIENCE, Scene, proves

SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="
OTHER = "whsec_dGhlIHNlY3JldCBvZiBzb21lYm9keSBlbHNlISEhISE="
HOOK = {
    "providers.main.base_url": '"@UPSTREAM@"',
    "webhooks.private_hosts": '["127.0.0.1:@PORT@"]',
    "webhooks.endpoints.hook.url": '"http://127.0.0.1:@PORT@/hook"',
    "webhooks.endpoints.hook.secret": f'"{OTHER}"',
}
AT = "webhooks.endpoints.hook."


async def _make(gateway: Gateway, *, by: Caller = LOCAL, **fields: Any) -> str:
    request = parse_request({"model": "main/some-model", "input": "hi", "background": True, **fields})
    run = await gateway.create(by, request)
    return str((await gateway.create_in_background(by, run, request))["id"])


async def _told(scene: Scene, *steps: Any, count: int = 1) -> list[RecordedRequest]:
    """What the receiver gets when one response has ended."""
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        ScriptedUpstream.running(steps or [reply({})], strict=False) as receiver,
    ):
        try:
            loaded = scene.gateway(HOOK, UPSTREAM=upstream.base_url, PORT=receiver.port)
            async with loaded as gateway:
                await _make(gateway)
                await gateway.runs.none()
                assert gateway.deliveries is not None, "nobody is told"
                await gateway.deliveries.settle(PATIENCE)
                await receiver.received(count)
        except ConfigError as refused:
            raise AssertionError("it was refused") from refused
        return receiver.requests


def _verifies(request: RecordedRequest, secret: str) -> bool:
    try:
        Webhook(secret).verify(request.body, request.headers)
    except WebhookVerificationError:
        return False
    return True


@proves("webhooks.endpoints.NAME.url", '"http://127.0.0.1:@PORT@/another/place"', at=AT + "url", instead='""')
async def it_is_sent_there(scene: Scene) -> None:
    (request,) = await _told(scene)
    assert request.target == "/another/place"


@proves("webhooks.endpoints.NAME.secret", f'"{SECRET}"', at=AT + "secret", instead=f'"{OTHER}"')
async def it_is_signed_with_this(scene: Scene) -> None:
    (request,) = await _told(scene)
    assert _verifies(request, SECRET)


@proves("webhooks.endpoints.NAME.secret_file", '"the-secret"', at=AT + "secret_file")
async def it_is_signed_with_what_stands_in_the_file(scene: Scene) -> None:
    (scene.folder / "the-secret").write_text(f"{SECRET}\n")
    scene.monkeypatch.setitem(HOOK, AT + "secret", '""')
    (request,) = await _told(scene)
    assert _verifies(request, SECRET)


@proves("webhooks.endpoints.NAME.previous_secret", f'"{SECRET}"', at=AT + "previous_secret")
async def it_is_signed_with_both(scene: Scene) -> None:
    (request,) = await _told(scene)
    assert (_verifies(request, SECRET), _verifies(request, OTHER)) == (True, True)


@proves("webhooks.endpoints.NAME.events", '["response.failed"]', at=AT + "events")
async def of_other_ends_it_hears_nothing(scene: Scene) -> None:
    with (
        ScriptedUpstream.running([chat("ok"), error(400)]) as upstream,
        ScriptedUpstream.running(default=reply({})) as receiver,
    ):
        async with scene.gateway(HOOK, UPSTREAM=upstream.base_url, PORT=receiver.port) as gateway:
            await _make(gateway)
            await gateway.runs.none()
            await _make(gateway)
            await gateway.runs.none()
            assert gateway.deliveries is not None
            await gateway.deliveries.settle(PATIENCE)
        assert [request.json["type"] for request in receiver.requests] == ["response.failed"]


@proves("webhooks.endpoints.NAME.owners", '["team:search"]', at=AT + "owners")
async def of_others_it_hears_nothing(scene: Scene) -> None:
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        ScriptedUpstream.running(default=reply({})) as receiver,
    ):
        async with scene.gateway(HOOK, UPSTREAM=upstream.base_url, PORT=receiver.port) as gateway:
            await _make(gateway)
            theirs = await _make(gateway, by=Caller("team:search"))
            await gateway.runs.none()
            assert gateway.deliveries is not None
            await gateway.deliveries.settle(PATIENCE)
        assert [request.json["data"]["id"] for request in receiver.requests] == [theirs]


@proves("webhooks.private_hosts", '["127.0.0.1:@PORT@"]', instead="[]")
async def this_machine_may_be_called(scene: Scene) -> None:
    assert len(await _told(scene)) == 1


@proves("webhooks.allowed_hosts", '["hooks.example"]', beside={AT + "url": '"https://hooks.example/x"'})
async def a_host_that_is_named_may_be_called(scene: Scene) -> None:
    beside = {name: value for name, value in HOOK.items() if name != AT + "url"}
    try:
        config = scene.load(beside, UPSTREAM="http://127.0.0.1:1/v1", PORT=1)
    except ConfigError as refused:
        raise AssertionError("it may not") from refused
    assert config.webhooks.endpoints["hook"].url == "https://hooks.example/x"


@proves("webhooks.timeout", '"300ms"')
async def a_silent_receiver_has_so_long(scene: Scene) -> None:
    # Without it, this would take ten seconds: the first one is not answered before the second has come.
    gate = Gate()
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        ScriptedUpstream.running([reply({}, after=gate), reply({})]) as receiver,
    ):
        beside = {**HOOK, "webhooks.first_wait": '"10ms"'}
        async with scene.gateway(beside, UPSTREAM=upstream.base_url, PORT=receiver.port) as gateway:
            await _make(gateway)
            try:
                await receiver.received(2, within=PATIENCE if not scene.forgotten else 2.0)
            except TimeoutError as late:
                raise AssertionError("it is still waited for") from late
            finally:
                gate.open()


async def _rule(scene: Scene) -> DeliveryRule:
    """By which deliveries really are put off: what this rule does is shown by the tests of the couriers."""
    async with scene.gateway(HOOK, UPSTREAM="http://127.0.0.1:1/v1", PORT=1) as gateway:
        assert gateway.deliveries is not None
        (courier,) = gateway.deliveries._couriers
        assert courier._rule is gateway.deliveries._rule
        return courier._rule


@proves("webhooks.first_wait", '"7s"')
async def the_first_wait_is_so_long(scene: Scene) -> None:
    assert (await _rule(scene)).first_wait == 7.0


@proves("webhooks.longest_wait", '"7m"')
async def no_wait_is_longer(scene: Scene) -> None:
    assert (await _rule(scene)).longest_wait == 420.0


@proves("webhooks.give_up", '"7h"')
async def it_is_tried_for_so_long(scene: Scene) -> None:
    assert (await _rule(scene)).give_up == 25_200.0


@proves("webhooks.keep", '"7h"')
async def what_was_given_up_is_kept_for_so_long(scene: Scene) -> None:
    assert (await _rule(scene)).keep == 25_200.0


@proves("webhooks.at_once", "1")
async def the_second_waits_for_the_first(scene: Scene) -> None:
    gate = Gate()
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        ScriptedUpstream.running(default=reply({}, after=gate)) as receiver,
    ):
        async with scene.gateway(HOOK, UPSTREAM=upstream.base_url, PORT=receiver.port) as gateway:
            assert gateway.deliveries is not None
            (courier,) = gateway.deliveries._couriers
            for _ in range(2):
                await _make(gateway)
                await gateway.runs.none()
            await receiver.received(1)
            await turns()
            try:
                assert len(courier._under_way) == 1
            finally:
                gate.open()
                async with asyncio.timeout(PATIENCE):
                    await gateway.deliveries.settle(PATIENCE)


@proves("webhooks.max_queued", "1")
async def the_second_is_given_up(scene: Scene) -> None:
    gate = Gate()
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        ScriptedUpstream.running(default=reply({}, after=gate)) as receiver,
    ):
        async with scene.gateway(HOOK, UPSTREAM=upstream.base_url, PORT=receiver.port) as gateway:
            for _ in range(2):
                await _make(gateway)
                await gateway.runs.none()
            found = await gateway.store.deliveries()
            gate.open()
    assert [each.given_up for each in found] == [True, False]
