"""`[webhooks]` → who is told of what ended. Loaded only where somebody is."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from isthmus.addresses import is_named_private
from isthmus.config.check_webhooks import check_webhooks, secret_bytes
from isthmus.config.schema import Config
from isthmus.config.secrets import configured_secrets
from isthmus.gateway.announce import Announcer
from isthmus.gateway.deliver import Deliveries, DeliveryRule
from isthmus.ports import Messenger, Store
from isthmus.upstream.webhook import WebhookMessenger
from isthmus.values.problems import as_error


def open_deliveries(config: Config, store: Store, new_id: Callable[[str], str]) -> Deliveries:
    webhooks = config.webhooks
    errors = [problem for problem in check_webhooks(webhooks) if problem.severity == "error"]
    if errors:  # also where nobody has checked the configuration before: nobody is called by mistake
        raise as_error(errors)
    secrets = configured_secrets(config)
    messengers: dict[str, Messenger] = {}
    for name, endpoint in webhooks.endpoints.items():
        keys = [key for key in map(secret_bytes, (endpoint.secret, endpoint.previous_secret)) if key]
        messengers[name] = WebhookMessenger(
            name,
            endpoint.url,
            keys,
            timeout=webhooks.timeout,
            at_once=webhooks.at_once,
            anywhere=is_named_private(endpoint.url, webhooks.private_hosts),
            more_secrets=secrets,
        )
    wanted = {name: frozenset(endpoint.events) for name, endpoint in webhooks.endpoints.items()}
    rule = DeliveryRule(
        timeout=webhooks.timeout,
        at_once=webhooks.at_once,
        first_wait=webhooks.first_wait,
        longest_wait=webhooks.longest_wait,
        give_up=webhooks.give_up,
        keep=webhooks.keep,
    )
    owners = {name: frozenset(endpoint.owners) for name, endpoint in webhooks.endpoints.items()}
    announcer = Announcer(wanted, owners=owners, most=webhooks.max_queued, now=time.time, new_id=new_id)
    return Deliveries(store, messengers, announcer, holder=new_id("gw"), rule=rule, chance=random.random)
