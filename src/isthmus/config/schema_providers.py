"""What a configuration may say of a provider, and of the places where it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from isthmus.bridge.capabilities import Dialect
from isthmus.config.section import Count, Section, Timeout


class Timeouts(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for a provider."""

    connect: Timeout = 10.0
    """Until the connection is open, TLS included; and until a cloud's credentials are there to sign with."""
    first_byte: Timeout = 600.0
    """From the request sent to the first byte of the answer; before that, a connection is waited for as long."""
    idle: Timeout = 300.0
    """Longest silence inside an answer."""
    total: Timeout = 3600.0
    """Everything together, retries and fallbacks included."""


class EndpointConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several places that serve the same provider."""

    base_url: str = ""
    """Address without the last path (`…/v1`); empty: the provider's own."""
    api_key: str = ""
    """Key for this place; empty: the provider's."""
    api_key_file: str = ""
    """A file with that key."""
    headers: Mapping[str, str] = {}
    """Headers for this place, added to the provider's."""


class CodexSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `codex app-server` as the provider (`uses = "codex"`)."""

    binary: str = ""
    """The program; empty: the installed `codex` extra, then `codex` on PATH."""
    home: str = ""
    """Its CODEX_HOME; empty: the user's own."""
    environment: Mapping[str, str] = {}
    """Variables that the program gets besides the ordinary ones, such as the key of a model provider of its own."""
    own_tools: bool = False
    """Whether Codex may use its own shell, files and web. Off: it is only a model."""
    folder: str = ""
    """Where its own tools work; empty: the gateway's working folder."""
    sandbox: Literal["read-only", "workspace-write"] = "read-only"
    """What its own tools may change."""
    approvals: Literal["decline", "allow"] = "decline"
    """What Codex hears when it asks for approval of its own actions."""
    max_threads: Count = 100
    """Conversations open at the same time."""
    handshake: Timeout = 20.0
    """How long the program may take to start."""
    hold: Timeout = 600.0
    """How long a turn waits for the client's tool results before its state is dropped."""
    idle: Timeout = 900.0
    """After how long without use a conversation is closed."""


class BreakerConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a place is left alone because it fails again and again: whoever asks meanwhile gets 503 at once, or a
    fallback."""

    failures: Annotated[int, Meta(ge=0)] | None = None
    """After how many failures in a row, for each key and place: it cannot be reached, breaks the rules of HTTP, answers
    5xx or not in time. 0: never. Unset: 10; in a `Bridge` never."""
    first_rest: Timeout = 5.0
    """For how long; then one request tries it. Twice as long each time that one fails, too."""
    longest_rest: Timeout = 300.0
    """The longest of these times."""


class ProviderConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One provider, under the name that clients use for it."""

    uses: str = ""
    """The provider file with its facts; empty: the one named like the section."""
    base_url: str = ""
    """Address without the last path (`…/v1`); empty: the one in the provider file."""
    endpoint: str = ""
    """Another address that the provider file names (a region, a subscription plan)."""
    variables: Mapping[str, str] = {}
    """Variable → what it stands for in the provider file's address (`${AZURE_RESOURCE_NAME}`); unset: what the
    environment says."""
    dialect: Dialect | None = None
    """`chat`, `responses` or `messages` (Anthropic's), if the provider speaks it; unset: what the file prefers."""
    api_key: str = ""
    """The key; empty: the environment variable that the provider file names."""
    api_key_file: str = ""
    """A file with the key, as secret stores mount it. A relative path starts where that of `store.url` does."""
    api_keys: list[str] = []
    """Several keys, used in turn, in place of `api_key`; one that is refused is replaced within the request."""
    keys_for: Mapping[str, str] = {}
    """Key of a caller's own, in place of all of these: `team:NAME`, or the id of a caller's key → the key. Each has
    connections, a queue and rests of its own."""
    endpoints: list[EndpointConfig] = []
    """Several places, used in turn, in place of `base_url`."""
    headers: Mapping[str, str] = {}
    """Headers for every request."""
    query: Mapping[str, str] = {}
    """Query parameters for every request."""
    timeouts: Timeouts = Timeouts()
    proxy: str = ""
    """Proxy URL; empty: HTTP_PROXY, HTTPS_PROXY and NO_PROXY decide; `direct`: none."""
    verify_tls: bool = True
    """Whether the provider's certificate is checked."""
    max_connections: Count = 1000
    """Connections open at the same time, for each key and place; requests beyond that wait for one, in a queue."""
    max_queued: Annotated[int, Meta(ge=0)] | None = None
    """How many requests may wait for a connection, for each key and place; more are answered with 503. Unset: 100; in a
    `Bridge` any number."""
    max_queued_per_owner: Count | None = None
    """How many of them may be one owner's, a key's or a team's. Unset: as many as `max_queued`. Where as many wait as
    may, whoever has the most of them gives way to whoever has fewer."""
    queue_timeout: Timeout | None = None
    """How long they may wait; who would wait longer, at the pace of those before them, is answered with 503 at once.
    Unset: `timeouts.first_byte`."""
    breaker: BreakerConfig = BreakerConfig()
    retries: Annotated[int, Meta(ge=0, le=10)] = 2
    """New attempts after a failure that may pass, before the first event only; another key is asked in any case."""
    models: Mapping[str, Mapping[str, Any]] = {}
    """Facts about models, by name or glob, as in a provider file; they override the file's."""
    ask: bool = True
    """Whether its server is asked about its own models (`/models` and the like), at most once in `models.refresh`."""
    codex: CodexSettings = CodexSettings()
