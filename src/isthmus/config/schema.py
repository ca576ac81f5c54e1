"""Everything a configuration may say: one frozen struct per section, every key with its default.

In: values that `values.read` has checked. Out: `Config`, which the wiring reads and nobody changes. Worth
knowing: printing any of these structs shows no secret, so a config may appear in a log or a traceback.
The text under each key is also what the generated reference says about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from isthmus.config.schema_background import Background, WebhookEndpoint, WebhookEvent, Webhooks
from isthmus.config.schema_bounds import Checks, Limits
from isthmus.config.schema_hooks import Hooks
from isthmus.config.schema_limits import TeamConfig, Usage
from isthmus.config.schema_mcp import McpConfig
from isthmus.config.schema_providers import BreakerConfig, CodexSettings, EndpointConfig, ProviderConfig, Timeouts
from isthmus.config.schema_search import Search, SearchLocation
from isthmus.config.schema_tools import Tools
from isthmus.config.schema_watch import Log, Metrics, Otel, Trace
from isthmus.config.section import Bytes, Count, Seconds, Section, Text, Timeout

__all__ = [
    "Background",
    "BreakerConfig",
    "Bytes",
    "Checks",
    "ChoiceConfig",
    "CodexSettings",
    "Config",
    "Count",
    "Discovery",
    "EndpointConfig",
    "Hooks",
    "Images",
    "Lessons",
    "Limits",
    "Log",
    "McpConfig",
    "Metrics",
    "Models",
    "Otel",
    "PlanSettings",
    "ProviderConfig",
    "Search",
    "SearchLocation",
    "Seconds",
    "Section",
    "Server",
    "Store",
    "TeamConfig",
    "Text",
    "Timeout",
    "Timeouts",
    "Tools",
    "Trace",
    "WebSocket",
    "WebhookEndpoint",
    "WebhookEvent",
    "Webhooks",
]


class Server(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where and how the gateway listens."""

    host: Text = "127.0.0.1"
    """Address to listen on. Another one than the loopback lets other machines spend your keys."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8484
    """TCP port; 0 takes any free one."""
    grace: Seconds = 30.0
    """How long running requests may finish after SIGTERM before they are ended."""
    reload_grace: Seconds = 3600.0
    """How long requests may go on that were under way when SIGHUP changed the configuration; then they are ended. They
    are served as they began."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """Processes that serve the same address on the same store, each on a core of its own. One that dies or gets stuck
    is replaced. With SIGHUP each reads the configuration again; where that is not enough they are replaced one by
    one."""
    stuck_worker: Timeout = 30.0
    """How long one of several workers may give no sign of life before it is replaced; the log says where it stood."""
    unix_socket: str = ""
    """Path of a Unix socket to listen on, in place of `host` and `port`; the gateway's user and group may use it."""
    tls_cert: str = ""
    """Certificate for HTTPS with its chain, a PEM file. With SIGHUP it is read again, and `tls_key` too."""
    tls_key: str = ""
    """Its private key, a PEM file without a password."""
    path_prefix: str = ""
    """Path below which a proxy offers the gateway, as `/isthmus`. Requests are served with and without it."""
    trusted_proxies: list[Text] = []
    """Addresses or networks of proxies, as `10.0.0.0/8`, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed;
    `*`: anybody's."""
    max_head: Bytes = 65_536
    """Largest request line with all headers; a larger one is answered with 431."""
    head_timeout: Timeout = 30.0
    """How long a request's line and headers may take to come; then 408."""
    max_body: Bytes = 50_000_000
    """Largest request body, decoded too if it is compressed; a larger one is answered with 413."""
    body_timeout: Timeout = 60.0
    """How long a request body may take to come, and longer as it comes at `min_body_rate`; then 408."""
    min_body_rate: Count = 10_000
    """Bytes a second at which a request body must come once `body_timeout` is over."""
    max_bodies: Bytes = 500_000_000
    """Memory for request bodies that are still coming; when it is full, the oldest of them is answered with 503."""
    heartbeat: Seconds = 15.0
    """Silence in a stream after which a `response.in_progress` event is sent again; 0: never."""
    ping: Seconds = 15.0
    """Silence in a stream after which a comment line is sent; 0: never."""
    websockets: bool = True
    """Whether `/v1/responses` also speaks WebSocket; if not, whoever asks for it is answered with 426."""
    allow_origins: list[str] = []
    """Web pages that may call a gateway on the loopback, as `https://example.org`; `*`: any. Others are refused: a page
    in your browser cannot spend your keys."""
    max_concurrent: Count = 1000
    """Requests served at the same time; more are answered with 503. One counts from when all of it is there."""
    max_connections: Count = 10_000
    """Connections open at the same time. For one more, another is closed that has sent no whole request; if there is
    none such, 503."""
    ready_interval: Timeout = 10.0
    """How long `/ready` believes what it found out about the store and the providers."""
    api_keys: list[Text] = []
    """Keys that clients must show, as `Authorization: Bearer KEY` or `x-api-key: KEY`; none, and none made with
    `isthmus keys create`: nobody is asked. Those listed here all see the same responses."""
    api_keys_file: str = ""
    """A file with such keys, one on each line."""
    admin_key: str = ""
    """A key that may do what only an operator should; it opens everything else, too."""
    admin_key_file: str = ""
    """A file with that key."""
    stale_keys: Seconds = 60.0
    """How long the keys that `isthmus keys` made are believed while the store cannot be asked whether they are still in
    force; then 503."""
    open: bool = False
    """Whether a gateway that other machines can reach may do without keys."""
    compat: Literal["openai", "open-responses"] = "openai"
    """Whose spelling clients get where OpenAI's API and the Open Responses specification differ; a request's header
    `Isthmus-Compat` says it for itself."""
    thinking: Literal["auto", "text", "summary"] = "auto"
    """How clients of `/v1/responses` are told what a model thinks, where they ask for no summary: `text` as it is,
    `summary` in the place of one, `auto` as a summary to those that are known to show nothing else. A request's header
    `Isthmus-Thinking` says it for itself."""
    summary_readers: list[Text] = []
    """More of those: words of their `User-Agent`."""


class WebSocket(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Responses over a WebSocket (`server.websockets`). How large a frame may be and how fast it must come,
    `server.max_body` and the keys below it say: it is a request like any other."""

    max_age: Timeout = 3600.0
    """How old a socket may be. What runs then may end; whatever else is asked gets
    `websocket_connection_limit_reached`."""
    max_lanes: Count = 32
    """Lanes (`stream_id`) that a socket may name in its life; one more gets `websocket_stream_limit_reached`."""
    max_running: Count = 16
    """Responses of one socket made at the same time, each in its own lane; more wait."""
    max_queued: Count = 64
    """How many may wait; more get `websocket_queue_full`."""
    max_state: Bytes = 50_000_000
    """Memory for what a socket knows of responses with `store: false`: the last one of each lane, whole. Where it does
    not suffice the oldest are forgotten, and continuing them gets `previous_response_not_found`."""
    max_states: Bytes = 500_000_000
    """The same for all sockets together."""
    ping: Seconds = 20.0
    """How often a silent client is pinged; 0: never."""
    pong: Timeout = 300.0
    """How long it may take to answer. A client that does not read does not answer either."""


class ChoiceConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One name for several targets. Whichever is taken, the others take its place when it fails before its first
    event."""

    targets: list[Text] = []
    """Each as `provider/model`."""
    by: Literal["weight", "price", "order"] = "weight"
    """`weight`: as often as its weight says; a conversation stays with its target. `price`: the cheapest that gives
    what is asked for. `order`: the first that is not left alone."""
    weights: list[Count] = []
    """How often each is taken, in relation to the others; none: all alike."""


class Models(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model a name means."""

    default: str = ""
    """`provider/model`, or an alias, for requests that name no model; its provider gets the bare names.
    Empty: the default model of the first provider that has its key."""
    aliases: Mapping[str, str] = {}
    """Bare name → `provider/model`, or a name of `models.choices`; `*` catches every other bare name."""
    fallbacks: Mapping[str, list[str]] = {}
    """Alias, or `provider/model` → models to try in order when it fails before its first event."""
    choices: Mapping[str, ChoiceConfig] = {}
    demo: bool = True
    """Whether the built-in demo provider is offered."""
    listed: Annotated[int, Meta(ge=0)] = 10
    """How many models of one provider `/v1/models` lists: those that its file names, and others that its server lists
    up to this number; of a provider without a file, those that call tools and the newest first. All the others can be
    named as well."""
    refresh: Seconds = 3600.0
    """How old a server's own word about its models may grow before it is asked again, in the background; 0: no server
    is asked, and nothing that one said counts."""


class Store(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where responses are kept."""

    url: Text = ""
    """`sqlite:PATH`, `memory:` or `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` (extra `postgres`; parameters of
    libpq behind `?`, such as `sslmode=verify-full`). A relative PATH starts at the config file's folder (from a
    variable or a flag: at the working folder). Default: `isthmus.db` in the user's data folder."""
    schema: Annotated[str, Meta(min_length=1, max_length=63)] = "isthmus"
    """The schema of a PostgreSQL database that all tables are in; made where it is missing."""
    max_connections: Count = 8
    """Connections of one gateway process to PostgreSQL that are at work at the same time, and as many threads; one more
    listens. What finds none free waits."""
    connect_timeout: Timeout = 5.0
    """How long PostgreSQL may take to answer a new connection, and how long a read or a write waits for a server that
    is away before it fails (503 `store_unavailable`)."""
    statement_timeout: Timeout = 30.0
    """How long one statement may take in PostgreSQL, its waiting for others included; then it fails (503)."""
    envelope_key: str = ""
    """The secret that reasoning envelopes are signed with, at least 16 characters; the same for all gateways that share
    clients. Default: one that is made at the first start and kept with the store (SQLite: in a file beside it;
    PostgreSQL: in its table `secrets`)."""
    envelope_key_file: str = ""
    """A file with that secret. A relative path starts where that of `store.url` does."""
    keep_days: Annotated[float, Meta(ge=0)] = 30.0
    """Days after which a response is forgotten; 0: never."""
    keep_conversation_days: Annotated[float, Meta(ge=0)] = 0.0
    """Days after which a conversation that nobody used is forgotten, with its items; 0: never."""
    max_bytes: Bytes = 10_000_000_000
    """Size above which the longest unused responses are forgotten; 0: no limit. Conversations stay."""
    durability: Literal["process", "power"] = "process"
    """What a saved response survives: `process`, the end of the process at any moment (a power cut may lose the last
    moments, never the rest); `power`, a power cut as well, for more time per save. PostgreSQL waits for its disk with
    either; `power` waits for synchronous standbys as well (`synchronous_commit`)."""
    max_chain: Count = 10_000
    """Most turns that `previous_response_id` may lead back."""
    idempotency: Seconds = 86_400.0
    """How long the same `Idempotency-Key` leads to what was made for it first; 0: the header is ignored."""
    audit_entries: Count = 100_000
    """Deeds of operators that `isthmus audit` remembers; beyond that the oldest are forgotten."""


class PlanSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are fitted to providers."""

    strict: bool = False
    """Refuse what a provider cannot do, in place of degrading or ignoring it."""
    repair_budget: Annotated[int, Meta(ge=0, le=10)] = 1
    """How often a model may be asked again when its answer breaks the output format."""


class Lessons(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What servers teach about models of which nothing is known."""

    keep: Seconds = 604_800.0
    """How long a field that a server refused by name is left out for that model before it is tried again; 0: every
    request tries it."""


class Discovery(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Model servers on this machine that nobody configured: Ollama, llama.cpp, LM Studio, vLLM, SGLang, and those of
    your own provider files. They are looked for where no provider is configured, and the gateway serves this machine
    alone and asks for no key."""

    local: bool = True
    """Whether they are looked for at their usual addresses on the loopback, and served when they are there."""
    within: Timeout = 0.5
    """How long one has to answer."""
    every: Seconds = 15.0
    """How often they are looked for again, also when a request names one that was not there; 0: only at the start."""


class Images(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who draws images: for `/v1/images/…`, and for models that call the tool `image_generation`."""

    provider: str = ""
    """The configured provider that draws, if its file says that it can; `none`: nobody. Empty: the demo, where that is
    the only provider; else nobody."""
    url: str = ""
    """In place of `provider`: the address of an images endpoint in OpenAI's shape, without the last path (`…/v1`)."""
    api_key: str = ""
    """The key for `url`."""
    api_key_file: str = ""
    """A file with that key. A relative path starts where that of `store.url` does."""
    model: str = ""
    """The model that draws, whatever name a request has for it; empty: the first one of the provider's file."""
    sizes: list[Text] = []
    """Sizes that may be asked for, as `1024x1024`; none: those of the provider's file. Another one becomes the
    nearest."""
    timeout: Timeout = 300.0
    """How long one request may take, waiting for its turn included."""
    at_once: Count = 8
    """Requests that are drawn at the same time; more wait for their turn."""
    max_image: Bytes = 20_000_000
    """Largest image that is to be changed, each; a larger one is answered with 400."""


def draws(config: Config) -> bool:
    """Whether somebody draws images."""
    return bool(config.images.url) or config.images.provider not in ("", "none")


class Config(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration."""

    provider_folders: list[str] = []
    """Folders with provider files of your own; later ones override earlier ones and the built-in files. The folder
    `providers` in the user's config folder always counts, first."""
    server: Server = Server()
    websocket: WebSocket = WebSocket()
    models: Models = Models()
    providers: Mapping[str, ProviderConfig] = {}
    teams: Mapping[str, TeamConfig] = {}
    store: Store = Store()
    plan: PlanSettings = PlanSettings()
    checks: Checks = Checks()
    limits: Limits = Limits()
    usage: Usage = Usage()
    lessons: Lessons = Lessons()
    discovery: Discovery = Discovery()
    tools: Tools = Tools()
    background: Background = Background()
    webhooks: Webhooks = Webhooks()
    hooks: Hooks = Hooks()
    images: Images = Images()
    mcp: Mapping[str, McpConfig] = {}
    search: Search = Search()
    trace: Trace = Trace()
    log: Log = Log()
    metrics: Metrics = Metrics()
    otel: Otel = Otel()
