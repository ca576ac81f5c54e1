"""What a provider file may say: its head, its facts, its models. Unknown keys are errors.

A file is TOML, in this order:

    name = "deepseek"                     # the file's own name; may be left out
    title = "DeepSeek"
    aliases = ["deep-seek"]               # other names it answers to
    extends = "openai-compatible"         # start from another provider's facts
    snapshot = "deepseek"                 # its name in the snapshot of models.dev, whose models' measures it takes
    default_model = "deepseek-v4-pro"
    checked = "2026-11-15"                # the day the facts were checked …
    sources = ["https://…"]               # … and against what
    dialect = "chat"                      # facts without a section of their own:
    streaming_usage = true                #   dialect, streaming_usage, allow, extra_body
    allow = ["model", "messages"]

    [endpoint]                            # where requests go: `EndpointFacts`
    [responses]                           # a native Responses endpoint, if there is one: `ResponsesFacts`
    [word]                                # where its server is asked about its own models: `WordFacts`
    [messages_endpoint]                   # an Anthropic Messages endpoint beside it: `MessagesFacts`
    [notice]                              # how a server on this machine is known by its answer: `NoticeFacts`
    [parameters]                          # the facts: one section per domain of
    [tools]                               # `bridge.capabilities.ProviderCapabilities`,
    [tool_choice]                         # with exactly the fields that its structs have
    [response_formats]
    [reasoning]
    [messages]
    [reply]
    [limits]
    [cost]

    [models."deepseek-v4*"]               # one model, or a family by glob (`*`, `?`, `[…]`; case is ignored)
    example = "deepseek-v4-pro"           # a model that the glob means; needed where it has a wildcard
    title = "DeepSeek V4"
    limits = { context = 1048576 }        # any domain, to override the facts above
    [models."deepseek-v4*".reasoning]

How values meet (see `merge`): a section is merged field by field; `parameters`, `tools.degraded`,
`tools.declarations` and `reply.finish_reasons` entry by entry; every other value, list or free table is
replaced whole. `false` where something else is expected takes back what was inherited
(`[models."x".parameters] temperature = false`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from isthmus.bridge.capabilities import Modality, ProviderCapabilities

DATA: Final = Path(__file__).with_name("data")
"""Our own files. `importlib.resources` would find them, too; a gateway starts without it."""

COMPUTED: Final = {"sigv4": "AWS credentials", "google": "a Google account"}
"""Ways to show who asks that no key in a header is enough for, and what is needed in its place: each request is signed,
or a token is fetched and kept fresh (`upstream/sign`). A key that is configured all the same is sent as `bearer`."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class AlternativeEndpoint(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same provider at another address (another region, a subscription plan)."""

    base_url: str
    title: str = ""
    key_env: list[str] = []
    """Where the key differs from the main endpoint's; empty: the same."""
    auth: str = ""
    """How the key travels there; empty: as at the main endpoint."""
    sign: Mapping[str, str] = {}
    """Where it differs from the main endpoint's; empty: the same."""
    messages_url: str = ""
    """Where Messages are taken there, if they are."""


class EndpointFacts(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    base_url: str = ""
    """Without the path; empty where it is only known at run time. `${NAME}` in it is filled from `variables` of the
    configuration or from the environment, with what cannot change the host (see `addresses`)."""
    messages_url: str = ""
    """The same for the Messages endpoint, with its `/v1`, where that has an address of its own."""
    path: str = "chat/completions"
    key_env: list[str] = []
    """Environment variables that may hold the key, in the order in which they are tried."""
    key_optional: bool = False
    """Whether requests may go without a key when none is found. Belongs to `key_env`: a file that names another key
    there says it anew."""
    auth: str = "bearer"
    """`bearer`, `none`, the name of the header that carries the bare key, or one of `COMPUTED`."""
    sign: Mapping[str, str] = {}
    """What is signed for, where `auth` is computed: `service` and `region` (`sigv4`), `scope` (`google`); may have
    `${NAME}` in it."""
    headers: Mapping[str, str] = {}
    alternatives: Mapping[str, AlternativeEndpoint] = {}

    @property
    def needs_key(self) -> bool:
        """Whether nothing is to be had here without a key."""
        return self.auth not in ("none", *COMPUTED) and bool(self.key_env) and not self.key_optional

    def url(self, path: str | None = None) -> str:
        return f"{self.base_url.rstrip('/')}/{(path or self.path).lstrip('/')}"

    def alternative(self, name: str) -> EndpointFacts:
        """This endpoint at another of its addresses."""
        other = self.alternatives[name]
        return msgspec.structs.replace(
            self,
            base_url=other.base_url,
            messages_url=other.messages_url,
            key_env=other.key_env or self.key_env,
            auth=other.auth or self.auth,
            sign=other.sign or self.sign,
        )


class ResponsesFacts(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider's own Responses endpoint: always partial, so what it takes is listed."""

    path: str = "responses"
    preferred: bool = False
    """Whether the vendor recommends it over Chat Completions."""
    models: list[str] = []
    """Globs of the models that it serves; empty: all."""
    only: bool = False
    """Whether these are served here and nowhere else: then nobody has to name the dialect."""
    stateless: bool = True
    """Whether `store` and `previous_response_id` mean nothing there."""
    tools: frozenset[str] = frozenset({"function"})
    """Tool types that it accepts."""
    tool_choice: frozenset[str] = frozenset({"auto", "none"})
    formats: frozenset[str] = frozenset({"text"})
    parameters: frozenset[str] = frozenset()
    """Body fields that it honours besides `model`, `input`, `instructions`, `stream`, `tools`."""
    unknown: Literal["refused", "ignored"] = "refused"
    """What it does with fields and tool types that it does not know."""
    efforts: list[str] = []
    """Its own scale for `reasoning.effort`, where it differs from the chat one."""
    while_thinking: frozenset[str] | None = None
    """Its own tool choices while the model thinks, where they differ from the chat ones."""
    strict: bool | None = None
    """Whether `strict` on a function holds there, where it differs from the chat side."""
    input: frozenset[Modality] | None = None
    """What of the model's modalities it can carry, where that is not all of them."""
    with_tools: bool = True
    """Whether a format may travel together with tools there."""
    encrypted_reasoning: bool = False
    """Whether it issues `encrypted_content` that must go back to it."""
    items: frozenset[str] = frozenset()
    """Types of hosted items that it takes back as it sent them; the others become notes."""
    phases: bool = False
    """Whether it marks assistant messages with a `phase` and wants that back."""
    cache_breakpoints: bool = False
    """Whether `prompt_cache_breakpoint` on content parts is understood."""
    tool_media: bool = False
    """Whether a tool's result may carry images."""
    cached_search: bool = False
    """Whether its web search can be kept off the live web (`external_web_access = false`)."""
    tells_length: bool = True
    """Whether it says `incomplete` of an answer that it cut at `max_output_tokens`."""


class WordFacts(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a server tells about its own models (see `word.read` for what is understood)."""

    paths: list[str] = msgspec.field(default_factory=lambda: ["models"])
    """Asked with GET, one after another, behind the base URL; from the root (`/props`), its version (`/v1`) is left
    out. What answers 404 tells nothing. Empty: it is not asked at all."""
    show: str = ""
    """Asked with POST about each of its models by name, where that is a question of its own (Ollama)."""


class NoticeFacts(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a server that nobody configured is known on this machine: by what its answer shows. A port is no proof, many
    programs like 8080. Only an address on the loopback is ever looked at, and no key is sent."""

    path: str = ""
    """Asked with GET, as `word.paths` are; empty: it is not looked for."""
    shows: Mapping[str, str] = {}
    """Place in the answer (`data.0.owned_by`) → the text that stands there; `*`: any text."""


class MessagesFacts(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider's Anthropic Messages endpoint, beside Chat Completions: what it takes is listed. Its address is
    `endpoint.messages_url`."""

    path: str = "messages"
    auth: str = ""
    """How the key travels there; empty: as at the chat endpoint."""
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: {"anthropic-version": "2023-06-01"})
    preferred: bool = False
    """Whether the vendor recommends it over Chat Completions, or has nothing else."""
    models: list[str] = []
    """Globs of the models that it serves; empty: all."""
    only: bool = False
    """Whether these are served here and nowhere else: then nobody has to name the dialect."""
    parameters: frozenset[str] = frozenset()
    """What it honours besides `model`, `messages`, `system`, `max_tokens`, `stream`, `tools`: `temperature`, `top_p`,
    `stop_sequences`, `metadata`, `thinking`, `output_config` (its effort), `disable_parallel_tool_use`."""
    tool_choice: frozenset[str] = frozenset({"auto", "none"})
    formats: frozenset[str] = frozenset({"text"})
    efforts: list[str] = []
    """Its own scale of efforts, where it differs from the chat one."""
    input: frozenset[Modality] = frozenset({"image", "file"})
    """What of the model's modalities it can carry."""
    tool_media: bool = False
    """Whether a tool's result may carry images."""
    remote_images: bool = False
    late_system: bool = False
    """Whether instructions may stand between the turns."""
    signed: bool = False
    """Whether thinking blocks are taken back only with the signature that they came with."""
    cache_marks: bool = False
    """Whether `cache_control` is understood."""


class FileHead(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    title: str = ""
    aliases: list[str] = []
    extends: str = ""
    snapshot: str = ""
    default_model: str = ""
    checked: str = ""
    sources: list[str] = []
    endpoint: EndpointFacts = EndpointFacts()
    responses: ResponsesFacts | None = None
    word: WordFacts = WordFacts()
    notice: NoticeFacts = NoticeFacts()
    messages_endpoint: MessagesFacts | None = None


class ModelHead(_Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    example: str = ""
    title: str = ""


HEAD_FIELDS: Final = frozenset(FileHead.__struct_fields__)
FACT_FIELDS: Final = tuple(name for name in ProviderCapabilities.__struct_fields__ if name not in ("provider", "model"))
KEYED: Final = frozenset({"parameters", "tools.degraded", "tools.declarations", "reply.finish_reasons"})
"""Tables of entries: a later layer adds, changes or (with `false`) takes back single entries."""
