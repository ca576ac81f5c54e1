"""Everything a configuration may say: one frozen struct per section, every key with its default.

In: values that `values.read` has checked. Out: `Config`, which the wiring reads and nobody changes. Worth
knowing: printing any of these structs shows no secret, so a config may appear in a log or a traceback.
The text under each key is also what the generated reference says about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.capabilities import Dialect
from isthmus.bridge.limits import DEFAULT_ANSWER, DEFAULT_LIMITS
from isthmus.values.quantities import DURATION, SIZE
from isthmus.values.redact import redact

Seconds = Annotated[float, Meta(ge=0, extra={"quantity": DURATION})]
"""A number of seconds, or text such as "30s", "5m", "1h30m"."""
Timeout = Annotated[float, Meta(gt=0, extra={"quantity": DURATION})]
Bytes = Annotated[int, Meta(ge=0, extra={"quantity": SIZE})]
"""A number of bytes, or text such as "10MB" (millions) or "10MiB" (2^20)."""
Count = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: prints itself without secrets."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, redact(name, getattr(self, name))) for name in self.__struct_fields__]


class Server(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where and how the gateway listens."""

    host: Text = "127.0.0.1"
    """Address to listen on. Another one than the loopback lets other machines spend your keys."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8484
    """TCP port; 0 takes any free one."""
    grace: Seconds = 30.0
    """How long running requests may finish after SIGTERM before they are ended."""
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
    """Keys that clients must show, as `Authorization: Bearer KEY` or `x-api-key: KEY`; none: nobody is asked. They all
    see the same responses."""
    api_keys_file: str = ""
    """A file with such keys, one on each line."""
    admin_key: str = ""
    """A key that may do what only an operator should; it opens everything else, too."""
    admin_key_file: str = ""
    """A file with that key."""
    open: bool = False
    """Whether a gateway that other machines can reach may do without keys."""
    compat: Literal["openai", "open-responses"] = "openai"
    """Whose spelling clients get where OpenAI's API and the Open Responses specification differ; a request's header
    `Isthmus-Compat` says it for itself."""


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


class Models(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model a name means."""

    default: str = ""
    """`provider/model`, or an alias, for requests that name no model; its provider gets the bare names.
    Empty: the default model of the first provider that has its key."""
    aliases: Mapping[str, str] = {}
    """Bare name → `provider/model`; `*` catches every other bare name."""
    fallbacks: Mapping[str, list[str]] = {}
    """Alias, or `provider/model` → models to try in order when it fails before its first event."""
    demo: bool = True
    """Whether the built-in demo provider is offered."""
    listed: Annotated[int, Meta(ge=0)] = 10
    """How many models of one provider `/v1/models` lists: those that its file names, and others that its server lists
    up to this number; of a provider without a file, those that call tools and the newest first. All the others can be
    named as well."""
    refresh: Seconds = 3600.0
    """How old a server's own word about its models may grow before it is asked again, in the background; 0: no server
    is asked, and nothing that one said counts."""


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
    retries: Annotated[int, Meta(ge=0, le=10)] = 2
    """New attempts after a failure that may pass, before the first event only; another key is asked in any case."""
    models: Mapping[str, Mapping[str, Any]] = {}
    """Facts about models, by name or glob, as in a provider file; they override the file's."""
    ask: bool = True
    """Whether its server is asked about its own models (`/models` and the like), at most once in `models.refresh`."""
    codex: CodexSettings = CodexSettings()


class Store(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where responses are kept."""

    url: Text = ""
    """`sqlite:PATH` or `memory:`. A relative PATH starts at the config file's folder (from a variable or a flag:
    at the working folder). Default: `isthmus.db` in the user's data folder."""
    keep_days: Annotated[float, Meta(ge=0)] = 30.0
    """Days after which a response is forgotten; 0: never."""
    keep_conversation_days: Annotated[float, Meta(ge=0)] = 0.0
    """Days after which a conversation that nobody used is forgotten, with its items; 0: never."""
    max_bytes: Bytes = 10_000_000_000
    """Size above which the longest unused responses are forgotten; 0: no limit. Conversations stay."""
    durability: Literal["process", "power"] = "process"
    """What a saved response survives: `process`, the end of the process at any moment (a power cut may lose the last
    moments, never the rest); `power`, a power cut as well, for more time per save."""
    max_chain: Count = 10_000
    """Most turns that `previous_response_id` may lead back."""
    idempotency: Seconds = 86_400.0
    """How long the same `Idempotency-Key` leads to what was made for it first; 0: the header is ignored."""


class PlanSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are fitted to providers."""

    strict: bool = False
    """Refuse what a provider cannot do, in place of degrading or ignoring it."""
    repair_budget: Annotated[int, Meta(ge=0, le=10)] = 1
    """How often a model may be asked again when its answer breaks the output format."""


class Checks(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How schemas, patterns and grammars of clients are compiled and checked: in processes of their own, within these
    limits. Whatever is over a `max_…` is answered with 400 and the name of the limit."""

    workers: Count = 2
    """Processes for checks that are quick. They start when they are first needed."""
    slow_workers: Count = 1
    """Processes for checks that are not, so that these do not stop the others."""
    quick: Timeout = 0.5
    """How long a check may take and still count as quick."""
    deadline: Timeout = 5.0
    """How much processor time a check may take at all (and ten times that by the clock). Then its process is killed."""
    idle: Timeout = 60.0
    """After how long without work a process ends."""
    memory: Annotated[int, Meta(ge=64_000_000, extra={"quantity": SIZE})] = 512_000_000
    """Memory of one process, where the system can bound it."""
    queue: Count = 200
    """Checks that may wait for a process; more are answered with 503."""
    wait: Timeout = 10.0
    """How long a check waits for a process; after that it is answered with 503."""
    cache: Bytes = 1_000_000
    """Memory for what was found out about schemas, so that one that comes again is not compiled again to admit it."""
    max_schema: Bytes = DEFAULT_BOUNDS.max_schema
    """Largest schema of an output format."""
    max_nodes: Count = DEFAULT_BOUNDS.max_nodes
    """Most objects and lists in one."""
    max_depth: Count = DEFAULT_BOUNDS.max_depth
    """How deeply they may be nested."""
    max_expanded: Count = DEFAULT_BOUNDS.max_expanded
    """Most objects and lists in one when every `$ref` is written out; recursion counts once."""
    max_patterns: Count = DEFAULT_BOUNDS.max_patterns
    """Most different regular expressions in one."""
    max_pattern: Count = DEFAULT_BOUNDS.max_pattern
    """Most characters in one regular expression."""
    max_pattern_total: Count = DEFAULT_BOUNDS.max_pattern_total
    """Most characters in all different regular expressions of a schema together."""
    max_regex: Bytes = DEFAULT_BOUNDS.max_regex
    """Memory that one regular expression may take once compiled."""


class Limits(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one request, one answer and the whole process may take. A request over one of the first ten, with all
    that it refers to, is answered with 400 and the name of the limit, before anything is done about it."""

    max_values: Count = DEFAULT_LIMITS.max_values
    """Most JSON values (texts, numbers, objects, lists; in a large request the last two may count twice) in one
    request, and in one event of an answer."""
    max_depth: Annotated[int, Meta(ge=1, le=400)] = DEFAULT_LIMITS.max_depth
    """How deeply objects and lists may be nested in a request."""
    max_fields: Count = DEFAULT_LIMITS.max_fields
    """Most fields of a request itself."""
    max_items: Count = DEFAULT_LIMITS.max_items
    """Most input items of one request, those of earlier turns and references included."""
    max_parts: Count = DEFAULT_LIMITS.max_parts
    """Most parts (texts, images, files) in the items of one request."""
    max_tools: Count = DEFAULT_LIMITS.max_tools
    """Most tools in one request, those inside namespaces and items included."""
    max_input: Bytes = DEFAULT_LIMITS.max_input
    """Bytes of all stored items that a request leads to; one that is named twice counts twice."""
    max_wide_text: Annotated[int, Meta(ge=1000)] = DEFAULT_LIMITS.max_wide_text
    """Most characters of one text that holds any outside the BMP (an emoji, say): then each of them takes four bytes,
    and everybody waits while they are put together. Any other text may be as long as `server.max_body` lets it."""
    max_inputs: Count = DEFAULT_LIMITS.max_inputs
    """Most texts of one request for embeddings."""
    max_input_tokens: Count = DEFAULT_LIMITS.max_input_tokens
    """Most tokens in all of them together, where they come as tokens."""
    max_answer: Annotated[int, Meta(ge=1, extra={"quantity": SIZE})] = DEFAULT_ANSWER.max_answer
    """Largest answer of a provider; of a stream, 256 bytes of each chunk are not counted. A longer one is cut off
    there, and the response is `incomplete`."""
    max_chunks: Count = DEFAULT_ANSWER.max_chunks
    """Most chunks of a streamed answer; likewise."""
    max_vectors: Annotated[int, Meta(ge=1, extra={"quantity": SIZE})] = DEFAULT_ANSWER.max_vectors
    """Largest answer of a provider with embeddings; a longer one is a failure (502): vectors cannot be cut."""
    max_told: Bytes = 16_000_000
    """Events of one background response that are kept in memory for those who follow it; earlier ones are read from the
    store."""
    max_serving: Bytes = 1_000_000_000
    """Memory for all requests that are being served, four bytes for each byte of a body and of the stored items that it
    leads to; one more is answered with 503 until some of them are done."""
    max_memory: Bytes = 2_000_000_000
    """Memory of the process, where the system tells it; above it new requests are answered with 503, and running ones
    go on. 0: no limit."""
    slow_loop: Timeout = 0.5
    """A delay of everybody by so long is told in the log."""
    stuck_loop: Timeout = 5.0
    """After so long without a turn of the loop the log says where it is stuck, with its stack."""


class Lessons(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What servers teach about models of which nothing is known."""

    keep: Seconds = 604_800.0
    """How long a field that a server refused by name is left out for that model before it is tried again; 0: every
    request tries it."""


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


class Log(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important event that is written."""
    format: Literal["text", "json"] = "text"
    """Lines for people, or one JSON object per line."""


class Config(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration."""

    provider_folders: list[str] = []
    """Folders with provider files of your own; later ones override earlier ones and the built-in files. The folder
    `providers` in the user's config folder always counts, first."""
    server: Server = Server()
    websocket: WebSocket = WebSocket()
    models: Models = Models()
    providers: Mapping[str, ProviderConfig] = {}
    store: Store = Store()
    plan: PlanSettings = PlanSettings()
    checks: Checks = Checks()
    limits: Limits = Limits()
    lessons: Lessons = Lessons()
    background: Background = Background()
    webhooks: Webhooks = Webhooks()
    log: Log = Log()
