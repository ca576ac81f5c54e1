"""What a configuration may say of responses that are made while nobody waits, and of who is told of their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from isthmus.config.section import Bytes, Count, Seconds, Section, Text, Timeout


class Background(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Responses that are made while nobody waits (`background: true`)."""

    max_running: Count = 64
    """Made at the same time; more wait as `queued`."""
    max_queued: Annotated[int, Meta(ge=0)] = 1000
    """How many may wait; more are answered with 503."""
    lease: Timeout = 30.0
    """After how long without a sign of life from its gateway a response may be ended, or begun again, by another one
    on the same database."""
    keep_events: Seconds = 0.0
    """How long after its beginning the events of a finished response can be streamed again; 0: as long as it is
    stored. Then `starting_after` and `stream=true` are refused (`events_expired`), and the response itself is there."""
    max_events: Bytes = 16_777_216
    """Events of one response that are kept; of a longer stream the first ones go, and reading on from before them is
    refused."""


WebhookEvent = Literal["response.completed", "response.failed", "response.cancelled", "response.incomplete"]


class WebhookEndpoint(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One receiver, under a name of your choice. It is told of every background response that has ended."""

    url: str = ""
    """Where it listens, with https; with http only on this machine, if `private_hosts` names it."""
    secret: str = ""
    """What is sent is signed with it: `whsec_` and base64, or any text of your own. The receiver needs it, too."""
    secret_file: str = ""
    """A file with that secret. A relative path starts where that of `store.url` does."""
    previous_secret: str = ""
    """The secret before this one: as long as it stands here everything is signed with both, and receivers can change
    theirs one by one."""
    events: list[WebhookEvent] = []
    """Which ends it is told of; none: all."""
    owners: list[Text] = []
    """Whose responses it is told of, as `team:search`, `key_0a1b2c3d4e5f6a7b`, or `local` for those of keys in this
    file; none: everybody's."""


class Webhooks(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Receivers that are told when a background response has ended."""

    allowed_hosts: list[Text] = []
    """Hosts that may be called, as `hooks.example.org`, `hooks.example.org:8443` (443 if no port is named) or
    `*.example.org`. None of them may lead to this machine or into a private network."""
    private_hosts: list[Text] = []
    """Hosts that may be called wherever they lead, as `hooks.internal` or `127.0.0.1:9000`: name only what you run
    yourself."""
    endpoints: Mapping[str, WebhookEndpoint] = {}
    timeout: Timeout = 10.0
    """How long one delivery may take, connecting included; then it has failed."""
    at_once: Count = 4
    """Deliveries to one receiver at the same time; one while it fails."""
    first_wait: Timeout = 5.0
    """How long after a failure it is tried again; twice as long after each further one, a part of it left to chance."""
    longest_wait: Timeout = 3600.0
    """The longest of these waits."""
    give_up: Timeout = 259_200.0
    """After how long without success a delivery is given up."""
    max_queued: Count = 10_000
    """Deliveries that may wait for one receiver; one more is given up at once, and so many of those are kept."""
    keep: Timeout = 604_800.0
    """How long a delivery that was given up is kept, to be looked at and sent again."""
