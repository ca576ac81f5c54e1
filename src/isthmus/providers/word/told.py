"""The server's own word: what it said of its models when it was asked, and the layer of facts that it makes.

In: what the readers (`read`) found. Out: facts for `merge`, above our files and below the user's. Worth knowing: only
what was said is a fact. Most servers name one sense ("vision") and are silent about the others, so what they say is
laid over the facts below it, sense by sense; and everything here is typed and bounded, because it comes from outside
and is kept in the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from isthmus.bridge.capabilities import Modality, ToolSupport

MAX_MODELS: Final = 2_000
LONGEST_NAME: Final = 256
LARGEST_SIZE: Final = 1 << 40

Size = Annotated[int, Meta(gt=0, le=LARGEST_SIZE)]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
Price = Annotated[float, Meta(ge=0, le=1_000_000)]
Format = Literal["json_object", "json_schema"]


class Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server says of one model; `None`, or a name that is missing: nothing."""

    context: Size | None = None
    output: Size | None = None
    senses: Mapping[Modality, bool] = {}
    tools: bool | None = None
    choice: bool | None = None
    """Whether `tool_choice` is taken."""
    formats: Mapping[Format, bool] = {}
    untaken: frozenset[str] = frozenset()
    """Parameters that it does not take, as Responses names them."""
    system: Literal["leading"] | None = None
    turns: Literal["merged", "alternating"] | None = None
    after_tool: Literal["assistant"] | None = None
    needs_user: Literal[True] | None = None
    price: Price | None = None
    """US dollars per million tokens of input."""
    cached_price: Price | None = None
    output_price: Price | None = None
    shutdown: Day | None = None
    """The day on which it is switched off."""

    def over(self, below: Word) -> Word:
        """Both, this one where both speak."""
        said = {name: getattr(self, name) for name in self.__struct_fields__}
        known = {name: value for name, value in said.items() if value is not None and value != frozenset()}
        known["senses"] = {**below.senses, **self.senses}
        known["formats"] = {**below.formats, **self.formats}
        return msgspec.structs.replace(below, **known)

    def facts(self, below: Mapping[str, Any]) -> dict[str, Any]:
        """As a layer over the facts `below` it."""
        said: dict[str, dict[str, Any]] = {
            "limits": {"context": self.context, "output": self.output},
            "cost": {"input": self.price, "cached": self.cached_price, "output": self.output_price},
            "messages": {name: getattr(self, name) for name in ("system", "turns", "after_tool", "needs_user")},
        }
        if self.senses:
            said["messages"]["input"] = _changed(below, ("messages", "input"), self.senses)
        if self.formats:
            said["response_formats"] = {"supported": _changed(below, ("response_formats", "supported"), self.formats)}
        if self.tools is False:
            degraded = _find(below, ("tools", "degraded")) or ToolSupport().degraded
            said["tools"] = {"native": [], "degraded": dict.fromkeys(degraded, False)}
        if self.choice is False:
            said["tool_choice"] = {"supported": ["auto", "none"], "sent": False}
        told = {name: {key: value for key, value in facts.items() if value is not None} for name, facts in said.items()}
        parameters = {name: False for name in sorted(self.untaken) if name in below.get("parameters", {})}
        return {name: facts for name, facts in {**told, "parameters": parameters}.items() if facts}


NOTHING: Final = Word()


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One asking of one server."""

    at: float = 0.0
    """When it was heard."""
    own: bool = False
    """Whether it is a server of the user's: what it lists is all that it has. A vendor lists more than anybody wants
    to see, models for other work among it."""
    models: tuple[str, ...] = ()
    words: Mapping[str, Word] = {}
    """By model; what stands under the empty name holds for every model of the server."""

    def word(self, model: str) -> Word:
        # Ollama lists `name:latest` for what everybody calls `name`.
        own = self.words.get(model) or self.words.get(f"{model}:latest") or NOTHING
        return own.over(self.words.get("", NOTHING))

    @property
    def says(self) -> bool:
        return bool(self.models or self.words)


_decoder: Final = msgspec.json.Decoder(Told)


def encode_told(told: Told) -> bytes:
    return msgspec.json.encode(told)


def decode_told(data: bytes) -> Told | None:
    """What was kept; `None`: another version wrote it, or nobody can read it."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None


def place_of(base_url: str) -> str:
    """Tells servers apart. An address may hold a key, so it is not kept itself."""
    return hashlib.sha256(base_url.rstrip("/").encode()).hexdigest()[:32]


def age_words(seconds: float) -> str:
    """`12 min ago`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def _changed(below: Mapping[str, Any], path: tuple[str, str], said: Mapping[Any, bool]) -> list[str]:
    has, lacks = ({name for name, able in said.items() if able is wanted} for wanted in (True, False))
    return sorted(({*(_find(below, path) or ())} - lacks) | has)


def _find(facts: Mapping[str, Any], path: tuple[str, str]) -> Any:
    section = facts.get(path[0])
    return section.get(path[1]) if isinstance(section, Mapping) else None
