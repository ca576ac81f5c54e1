"""What models.dev knew on one day: providers that nobody keeps a file for, and the models' own facts of those with one.

In: a provider's name there. Out: its head and the facts of its models, as layers that a provider is merged from. The
file is made by `scripts/make_snapshot.py`. Worth knowing: nothing is read before somebody asks; then it is the index
(the second line) and, for a provider that is named, the one line with its models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, Final, get_args

import msgspec

from isthmus.addresses import is_local
from isthmus.bridge.capabilities import Dialect
from isthmus.errors import ConfigError
from isthmus.providers.merge import Layer
from isthmus.providers.schema import DATA

BASE: Final = "openai-compatible"
"""The file whose cautious facts are everybody's who has no file."""
SPOKEN: Final = frozenset(get_args(Dialect))
"""Who speaks anything else is listed, and refused with words: a new dialect has to be named in `Dialect` only."""
_CACHED: Final = 16
_READS: Final[Mapping[str, frozenset[str]]] = {
    "messages": frozenset({"image", "file"}),
}
"""What an endpoint without a file takes besides text, by its protocol. Images have one shape everywhere; documents,
sounds and films have in Chat Completions as many as there are vendors."""


class Head(msgspec.Struct, frozen=True):
    """Where the facts come from."""

    source: str
    date: str
    licence: str
    prices: str
    prices_date: str
    prices_licence: str
    providers: int
    models: int
    repriced: int
    left_out: Mapping[str, int]

    @property
    def label(self) -> str:
        return f"{self.source} {self.date}"

    @property
    def prices_label(self) -> str:
        return f"{self.prices}, {self.prices_date}"


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """One provider in the index."""

    id: str
    title: str
    doc: str
    key_env: list[str]
    base_url: str
    """May hold `${VAR}`s; empty where none is known."""
    protocol: str
    """`chat`, `responses`, `messages`; empty where it speaks none of them."""
    why: str
    """Why it speaks none of them."""
    models: int
    start: int
    length: int
    also: Mapping[str, str] = {}
    """What some of its models are spoken to in besides, and where; empty: at the same address."""

    @property
    def is_local(self) -> bool:
        """Whether it is a server of one's own."""
        return "://" in self.base_url and is_local(self.base_url)


class Row(msgspec.Struct, frozen=True):
    """What is known about one model; what is not is left out."""

    id: str
    title: str = ""
    context: int | None = None
    output: int | None = None
    reads: list[str] = []
    cost: tuple[float, float | None, float] | None = None
    """Dollars for a million tokens: input, cached input, output."""
    repriced: bool = False
    """Whether the price is from the newer list of prices."""
    thinks: bool = False
    efforts: list[str] = []
    back: str = ""
    """The field in which its reasoning has to go back."""
    tools: bool = True
    schemas: bool | None = None
    temperature: bool = True
    speaks: str | None = None
    """The protocol, where it is not its provider's."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One provider's models, as layers for one of them."""

    id: str
    head: Head
    protocol: str
    whole: bool
    """Whether there is no file: then it is all that is known, and not only the model's own measures."""
    reads: frozenset[str] = frozenset()
    """What the endpoint takes besides text and images."""
    mixed: bool = False
    """Whether some models are spoken to in another protocol than the rest."""

    @property
    def rows(self) -> Mapping[str, Row]:
        """By their names in small letters, newest first. Read when first asked for: a provider is loaded to find its
        key more often than to be used."""
        return _read_rows(self.id)

    def layers(self, model: str) -> Iterator[Layer]:
        row = self.rows.get(model.lower())
        if row is None:
            return
        section = f'models."{row.id}"'
        yield Layer(self._facts(row), self.head.label, section)
        if row.cost is not None:
            spent, cached, made = row.cost
            cost = {"input": spent, "output": made} | ({} if cached is None else {"cached": cached})
            yield Layer({"cost": cost}, self.head.prices_label if row.repriced else self.head.label, section)

    def title(self, model: str) -> str:
        row = self.rows.get(model.lower())
        return row.title if row is not None else ""

    def speaks(self, model: str) -> str:
        """What this model is spoken to in, where that is known."""
        row = self.rows.get(model.lower()) if self.mixed else None
        return (self.protocol if row.speaks is None else row.speaks) if row is not None else ""

    def listed(self, most: int) -> list[str]:
        """The models to show: those that call tools first, then the newest."""
        spoken = [row for row in self.rows.values() if row.speaks is None or row.speaks in SPOKEN]
        return [row.id for row in sorted(spoken, key=lambda row: not row.tools)[:most]]

    def _reads(self, row: Row) -> Iterator[str]:
        takes = self.reads if row.speaks is None or not self.whole else _READS.get(row.speaks, frozenset())
        yield from (kind for kind in row.reads if kind in takes or kind == "image")
        if "file" in takes and "image" in row.reads and "file" not in row.reads:
            yield "file"  # the endpoint makes text and pictures of a document, whatever is said of the model

    def _facts(self, row: Row) -> dict[str, Any]:
        limits = {"context": row.context, "output": row.output}
        facts: dict[str, Any] = {
            "limits": {name: limit for name, limit in limits.items() if limit is not None},
            "messages": {"input": sorted(self._reads(row))},
        }
        if self.whole:
            _add_abilities(facts, row)
        return facts


def _add_abilities(facts: dict[str, Any], row: Row) -> None:
    """What hangs on the endpoint as well as on the model. Whether a model calls tools does not stand here: a server's
    refusal tells the user why, and a call that was never offered tells nothing."""
    # A switch that only turns thinking on and off, or a budget, has another name at every host: it is left alone.
    reasoning: dict[str, Any] = {"default_on": row.thinks}
    if row.efforts:
        reasoning |= {"effort": "native", "scale": list(row.efforts)}
    facts["reasoning"] = reasoning
    if row.back == "reasoning_details":
        facts["messages"] |= {"replay": "tool_turns", "replay_details": True}
    elif row.back:
        facts["messages"] |= {"replay": "tool_turns", "replay_field": row.back}
        facts["reply"] = {"reasoning_fields": list(dict.fromkeys([row.back, "reasoning_content", "reasoning"]))}
    if row.schemas is not None:
        facts["response_formats"] = {"supported": ["text", "json_object", *(["json_schema"] if row.schemas else [])]}
    if not row.temperature:
        facts["parameters"] = {"temperature": False}


def snapshot_head() -> Head:
    return _read_index()[0]


def snapshot_index() -> Mapping[str, Listed]:
    """Every provider of the snapshot by its id, also those that have a file and those that cannot be spoken to."""
    return _read_index()[1]


def obstacle(listed: Listed) -> str:
    """Why it cannot be used without a file of its own; empty if it can."""
    if not listed.protocol:
        return listed.why
    if listed.protocol not in SPOKEN:
        return f"it speaks {listed.protocol.capitalize()}, which this version does not speak yet"
    return ""


def snapshot_models(id: str, reads: Sequence[str] | None = None) -> Snapshot:
    """The models of a provider. `reads` is what its file says that the endpoint takes; without one it has no file."""
    head, index = _read_index()
    listed = index.get(id)
    if listed is None:
        raise ConfigError(f"the snapshot of {head.label} has no provider `{id}`", code="unknown_provider")
    takes = _READS.get(listed.protocol, frozenset()) if reads is None else frozenset(reads)
    return Snapshot(id, head, listed.protocol, whole=reads is None, reads=takes, mixed=bool(listed.also))


def provider_head(id: str, *, whole: bool) -> dict[str, Any]:
    """What a file's head would say; under a file only where it is from: the file knows the rest."""
    head, index = _read_index()
    listed = index[id]
    said: dict[str, Any] = {
        "title": listed.title,
        "checked": head.date,
        "sources": [*([listed.doc] if listed.doc else []), f"{head.label} ({head.licence})"],
    }
    if not whole:
        return said
    said["endpoint"] = {"base_url": listed.base_url, "key_env": listed.key_env}
    if listed.is_local:
        said["endpoint"]["key_optional"] = True
    spoken = {listed.protocol, *listed.also}
    if "responses" in spoken:
        said["responses"] = {**_RESPONSES, "preferred": listed.protocol == "responses"}
    if "messages" in spoken:
        said["messages_endpoint"] = {"preferred": listed.protocol == "messages", "auth": "x-api-key"}
        if listed.also.get("messages"):
            said["endpoint"]["messages_url"] = listed.also["messages"]
        elif listed.also.get("chat"):  # the address of the rest is theirs
            said["endpoint"] |= {"base_url": listed.also["chat"], "messages_url": listed.base_url}
    return said


_RESPONSES: Final[Mapping[str, Any]] = {
    "tool_choice": ["auto", "none"],
    "formats": ["text", "json_schema"],
    "parameters": ["max_output_tokens", "temperature", "top_p", "parallel_tool_calls", "reasoning", "text"],
    "unknown": "refused",
}
"""Of a Responses endpoint that nobody has looked at: what all of them take that we know (unconfirmed)."""


@lru_cache(maxsize=1)
def _read_index() -> tuple[Head, dict[str, Listed]]:
    with _open() as file:
        head, index = file.readline(), file.readline()
    listed = msgspec.json.decode(index, type=list[Listed])
    return msgspec.json.decode(head, type=Head), {each.id: each for each in listed}


@lru_cache(maxsize=_CACHED)
def _read_rows(id: str) -> dict[str, Row]:
    listed = _read_index()[1][id]
    with _open() as file:
        file.readline(), file.readline()
        file.seek(listed.start, 1)
        line = file.read(listed.length)
    return {row.id.lower(): row for row in msgspec.json.decode(line, type=list[Row])}


def _open() -> IO[bytes]:
    return (DATA / "snapshot" / "providers.jsonl").open("rb")
