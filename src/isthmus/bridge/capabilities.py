"""What one model at one provider can do: frozen facts, read by the planners and by nobody else.

The facts come from the provider files (`providers/data/*.toml`), merged for one *(provider, model)* pair. The structs
are the only description of what such a file may say: every field has a cautious default, an unknown field is an error.
Builders and decoders are handed the rules that belong to them (`MessageRules`, `ReplyRules`), or finished decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The ordered scale of reasoning effort that every provider's own scale is a part of."""

Dialect = Literal["chat", "responses", "messages", "codex"]
Modality = Literal["image", "audio", "file", "video"]


class _Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ParameterRule(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one Responses parameter travels. A parameter without a rule is not supported."""

    to: str = ""
    """Upstream name, a dotted path for nested fields; empty means the same name."""
    low: float | None = None
    high: float | None = None
    values: list[Any] | None = None
    """The only values accepted; another one is ignored (or mapped by `map`)."""
    map: Mapping[str, Any] = {}
    while_thinking: bool = True
    """False where the provider ignores or refuses the parameter while the model thinks."""
    in_tool_streams: bool = True
    """False where the provider refuses the parameter in a stream that offers tools."""


_DEGRADED_TOOLS: Final = ("custom", "local_shell", "shell", "apply_patch", "tool_search")


class ToolSupport(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    native: frozenset[str] = frozenset({"function"})
    degraded: Mapping[str, str] = msgspec.field(default_factory=lambda: dict.fromkeys(_DEGRADED_TOOLS, "function"))
    max: int | None = 128
    strict: bool = False
    drop_keywords: frozenset[str] = frozenset()
    """JSON-Schema keywords the provider refuses; they move into the description."""
    inline_refs: bool = False
    plain_root: bool = False
    """Whether `oneOf`, `anyOf` and `allOf` are refused at the root of a tool's schema (not further down)."""
    as_is: bool = False
    """Whether native declarations travel as the client wrote them: the provider speaks Responses itself."""
    cached_search: bool = False
    """Whether the provider's web search can be kept off the live web (`external_web_access = false`)."""
    declarations: Mapping[str, Mapping[str, Any]] = {}
    """Fixed fields of native non-function declarations, by provider type (`web_search`, `retrieval`)."""


class ToolChoiceSupport(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    supported: frozenset[str] = frozenset({"auto", "none"})
    """Out of `auto`, `none`, `required`, and the provider tool types that can be forced (`function` …)."""
    sent: bool = True
    """False where the server refuses the field itself: the list of tools and words make the choice."""
    while_thinking: frozenset[str] | None = None
    """The same while the model thinks; `None`: no difference."""


class ResponseFormatSupport(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    supported: frozenset[str] = frozenset({"text"})
    """Out of `text`, `json_object`, `json_schema`."""
    drop_keywords: frozenset[str] = frozenset()
    with_tools: bool = True
    """False where a response format may not travel together with tools."""
    needs_word: bool = False
    """Whether plain JSON mode is refused, or runs on and on, unless the word JSON stands in the messages."""
    strict_only: bool = False
    """Whether every schema is enforced as a strict one: others, unless they are closed, are told in words."""


class ReasoningSupport(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    effort: Literal["none", "boolean", "native"] = "none"
    to: str = "reasoning_effort"
    scale: list[str] = []
    """Native efforts accepted, weakest first. `none` in it means that thinking can be switched off so."""
    map: Mapping[str, str] = {}
    """Efforts whose mapping the vendor states; the others go to the nearest on the scale."""
    budgets: Mapping[str, int] = {}
    """Tokens in place of the vendor's word, for efforts of the scale (Anthropic's `budget_tokens`)."""
    on: Mapping[str, Any] = {}
    off: Mapping[str, Any] = {}
    """Body fields that switch it off; empty where it cannot be (unless `none` is on the scale)."""
    default_on: bool = False
    """Whether the model thinks when nothing is said."""
    unset: Literal["vendor", "on", "off"] = "vendor"
    """What to send when the client names no effort."""
    with_history: Mapping[str, Any] = {}
    always: Mapping[str, Any] = {}
    """Body fields that every request carries (`reasoning_split`)."""
    with_tools: bool = True
    """False where the provider refuses tools while the model thinks: thinking gives way to them."""
    summary: bool = False


class MessageRules(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How messages must look; handed to the dialect's message builder."""

    developer: Literal["developer", "system"] = "system"
    system: Literal["anywhere", "leading"] = "anywhere"
    """`leading`: one system message, first; later ones become marked user notes."""
    empty_content: Literal["null", "empty", "omit"] = "null"
    """What an assistant message that only calls tools carries as `content`."""
    call_ids: Literal["keep", "alphanumeric9", "plain64"] = "keep"
    """`alphanumeric9`: nine letters and digits; `plain64`: at most 64 letters, digits, `_` and `-`."""
    turns: Literal["free", "merged", "alternating"] = "free"
    """Who may speak after whom. `merged`: no two messages of one speaker in a row, they become one; `alternating`:
    the user and the assistant take turns, too, and the user begins."""
    after_tool: Literal["any", "assistant"] = "any"
    """`assistant`: no user message straight after a tool's result; a few words of the assistant go between."""
    tool_media: bool = False
    """Whether a tool's result may carry images itself; otherwise they follow in a user message."""
    input: frozenset[Modality] = frozenset()
    remote_images: bool = True
    remote_files: bool = False
    """Whether a document may be given by its web address."""
    needs_user: bool = False
    names: bool = False
    replay: Literal["never", "tool_turns", "always"] = "never"
    """Which assistant turns get their reasoning back: none, those that called tools, or all."""
    replay_field: str = "reasoning_content"
    replay_placeholder: str | None = None
    """What to send for a tool turn whose reasoning is gone, where the vendor insists on the field."""
    replay_details: bool = False
    replay_chunks: bool = False
    """Whether reasoning goes back as `thinking` chunks inside `content` (Mistral)."""
    replay_extras: str = ""
    """Per-call vendor field that must go back (Gemini's `extra_content`); empty: none."""
    replay_extras_fallback: Mapping[str, Any] | None = None
    signed: bool = False
    """Messages: whether thinking blocks are taken back only with the signature that they came with."""
    needs_thoughts: bool = False
    """Messages: whether a turn whose calls were just answered must begin with its thinking while the model thinks."""
    items: frozenset[str] = frozenset()
    """Native Responses: types of hosted items (`mcp_approval_request` …) that the endpoint takes back as they came."""
    phases: bool = False
    cache_breakpoints: bool = False
    """Whether parts can be marked for the prompt cache: `prompt_cache_breakpoint` (native Responses), or
    `cache_control` (Messages, where the ends of tools, system and last turns are marked unasked)."""


class ReplyRules(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How replies are to be read; handed to the dialect's decoder."""

    reasoning_fields: list[str] = msgspec.field(default_factory=lambda: ["reasoning_content", "reasoning"])
    think_tags: bool = False
    """Whether `<think>…</think>` in the text is reasoning."""
    think_opened: bool = False
    """The same, where the model's template writes the opening tag itself: the text begins inside it."""
    leaked_tools: Literal["", "dsml", "glm", "qwen"] = ""
    """Tool markup known to leak into text; parsed only when tools were offered."""
    citations_tell_search: bool = False
    """Whether web citations are all that tells of a search the provider ran: it becomes a `web_search_call`."""
    cached_tokens: list[str] = msgspec.field(
        default_factory=lambda: ["prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"]
    )
    reasoning_tokens: list[str] = msgspec.field(default_factory=lambda: ["completion_tokens_details.reasoning_tokens"])
    summarised: bool = False
    """Messages: whether the text of thinking blocks is a summary made for the reader."""
    finish_reasons: Mapping[str, str] = {}
    """Vendor values mapped to those of the finish-reason table."""
    stop_fields: list[str] = msgspec.field(default_factory=lambda: ["stop_reason", "matched_stop"])
    """Chat: fields of a choice that name the stop sequence that was met (vLLM, SGLang), or say `stop_sequence` if one
    was; a number there is a token."""
    tells_length: bool = True
    """False where the server calls an answer complete that it cut at the limit: then one that has used the whole limit
    counts as cut."""


class TokenLimits(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    context: int | None = None
    output: int | None = None
    """The model's maximum; a larger request is clamped to it."""
    send_default: bool = False
    """Send the maximum when the client names none (vendors whose default truncates)."""
    default: int | None = None
    """What is sent when the client names none, where a limit must be sent and the maximum is unknown or too much."""


class Cost(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens, where public."""

    input: float | None = None
    cached: float | None = None
    output: float | None = None

    def price(self, spent: int, made: int, cached: int) -> float | None:
        """What so many tokens cost; cached input has a price of its own where the provider names one."""
        if self.input is None or self.output is None:
            return None
        known = self.input if self.cached is None else self.cached
        return ((spent - cached) * self.input + cached * known + made * self.output) / 1_000_000


class EmbeddingSupport(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint that makes vectors of texts, in OpenAI's shape, beside the one that is talked to."""

    supported: bool = False
    path: str = "embeddings"
    models: list[str] = []
    """Models that it is known to serve, the usual one first; others may be named as well."""
    dimensions: str = ""
    """The field that asks for shorter vectors; empty: there is none."""
    base64: bool = False
    """Whether it knows `encoding_format = "base64"`; if not, numbers are asked for, and packed here."""
    tokens: bool = False
    """Whether a text may be given as its tokens, in the model's own vocabulary."""
    user: bool = False
    fields: frozenset[str] = frozenset()
    """Fields of its own that travel as they are (`input_type` …)."""


class ImageSupport(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint that draws images, in OpenAI's shape or near it, beside the one that is talked to."""

    supported: bool = False
    path: str = "images/generations"
    edits: Literal["", "multipart", "json", "inline"] = ""
    """How images are changed: `multipart`, as a form at `edits_path`; `json`, as `data:` URLs there; `inline`, as
    `image` of a generation. Empty: not at all."""
    edits_path: str = "images/edits"
    models: list[str] = []
    """Models that draw, the usual one first; others may be named as well."""
    fields: Mapping[str, str] = {}
    """OpenAI's fields that it takes besides `model` and `prompt` → its own name for each; empty: the same."""
    sizes: list[str] = []
    """Sizes that it takes; none: any."""
    quality: Mapping[str, str] = {}
    """A client's word → its own; empty: it knows OpenAI's."""
    returns: Literal["b64_json", "url"] = "b64_json"
    """What it answers with, unasked."""
    asked_format: bool = False
    """Whether `response_format` can be sent; if not, an address is fetched where bytes are wanted."""
    stream: bool = False
    """Whether it tells of partial images in a stream."""
    mask: bool = False
    max_inputs: int = 1
    """Most images that are changed together."""


class ProviderCapabilities(_Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    provider: str = ""
    model: str = ""
    dialect: Dialect = "chat"
    parameters: Mapping[str, ParameterRule] = {}
    tools: ToolSupport = ToolSupport()
    tool_choice: ToolChoiceSupport = ToolChoiceSupport()
    response_formats: ResponseFormatSupport = ResponseFormatSupport()
    reasoning: ReasoningSupport = ReasoningSupport()
    streaming_usage: bool = True
    """Whether a stream may ask for usage (`stream_options.include_usage`)."""
    messages: MessageRules = MessageRules()
    reply: ReplyRules = ReplyRules()
    limits: TokenLimits = TokenLimits()
    cost: Cost = Cost()
    embeddings: EmbeddingSupport = EmbeddingSupport()
    images: ImageSupport = ImageSupport()
    assumed: frozenset[Literal["tool_choice", "parallel_tool_calls", "response_format"]] = frozenset()
    """Sent on trust: a server that refuses one by name is asked once more without it, and the lesson is kept."""
    allow: frozenset[str] | None = None
    """Top-level body fields that may leave; `None`: whatever the plan made."""
    extra_body: Mapping[str, Any] = {}
