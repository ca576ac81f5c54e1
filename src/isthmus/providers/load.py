"""Provider files → `Provider`s. One file is read when its provider is asked for, and not before.

The layers of a provider, weakest first: the defaults of the capability page; the file's own facts; what the snapshot
knows of the model itself (see `snapshot`: a file that speaks of all its models must not beat what is known of the one);
the file's `[models."glob"]` entries that match, the most specific last (more literal characters win, an exact name
beats every glob, then the order of the file); and the same again for each file on top of it: the one that a user file
`extends`; then the server's own word, where it was heard (`word`); then the user's files of the same name, folder by
folder; and last of all the model entries of the user's configuration. A provider without a file is the file
`snapshot.BASE` with the snapshot on top. `schema` tells what a file may say.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import Dialect, ProviderCapabilities
from isthmus.errors import ConfigError
from isthmus.providers.check import find_problems
from isthmus.providers.find import find_file, name_files
from isthmus.providers.merge import DEFAULT, Layer, all_paths, merge_layers
from isthmus.providers.schema import (
    DATA,
    FACT_FIELDS,
    HEAD_FIELDS,
    EndpointFacts,
    FileHead,
    MessagesFacts,
    NoticeFacts,
    ResponsesFacts,
    WordFacts,
)
from isthmus.providers.snapshot import BASE, Snapshot, obstacle, provider_head, snapshot_index, snapshot_models
from isthmus.providers.word.told import NOTHING, Told, age_words
from isthmus.values.locate import locate_keys
from isthmus.values.problems import KeyPath, Problem

_SECTIONS: Final = ("endpoint", "responses", "messages_endpoint", "word")
_REMEMBERED: Final = 256
"""How many models a provider keeps merged: names come from clients, so they must not pile up."""


def provider_names(user_dirs: Sequence[Path] = ()) -> list[str]:
    """Every provider with a file, ours or the user's, sorted. The snapshot has more: see `find.snapshot_names`."""
    return sorted({*name_files(None), *(name for folder in user_dirs for name in name_files(folder))})


def load_provider(
    name: str,
    user_dirs: Sequence[Path] = (),
    *,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    place: str = "configuration",
    dialect: Dialect | None = None,
) -> Provider:
    """The provider called `name` (or known by that alias); later folders override earlier ones and ours.

    `models` are entries as in a file's `[models."glob"]`, stronger than every file; `place` is where they are
    written, for those who ask where a fact comes from. `dialect`: how the user wants it to be spoken to.
    """
    sources = _gather(name, tuple(user_dirs), ())
    if models:
        sources.append(_read_entries(models, sources[-1].stem, place))
    head = _merge_heads(sources)
    return Provider(
        name=head.name or sources[-1].stem,
        title=head.title or sources[-1].stem,
        aliases=tuple(head.aliases),
        endpoint=head.endpoint,
        default_model=head.default_model,
        checked=head.checked,
        sources=tuple(head.sources),
        responses=head.responses,
        word=head.word,
        notice=head.notice,
        messages_endpoint=head.messages_endpoint,
        files=tuple(dict.fromkeys(source.label for source in sources)),
        models=tuple(entry for source in sources for entry in source.models),
        parts=tuple(sources),
        snapshot=next((source.known for source in reversed(sources) if source.known is not None), None),
        asked=dialect,
    )


def check_provider_file(path: Path) -> list[Problem]:
    """What is wrong with a file, each with its line; an empty list means that it can be used."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        raw = tomllib.loads(text)
    except OSError as error:
        return [Problem((), f"cannot be read: {error.strerror or error}", "check the path", place=str(path))]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return [Problem((), f"not valid TOML: {error}", "correct that line", place=str(path))]
    lines = locate_keys(text)
    return [replace(problem, place=_place(path, problem.key, lines)) for problem in find_problems(raw, path.stem)]


def _place(path: Path, key: KeyPath, lines: Mapping[KeyPath, int]) -> str:
    """The line of a key, or of the nearest table above it."""
    while key and key not in lines:
        whole = key[-1].partition("[")[0]
        key = (*key[:-1], whole) if whole != key[-1] else key[:-1]
    return f"{path}:{lines[key]}" if key else str(path)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One `[models."glob"]` table: what it matches, and what it says."""

    pattern: str
    example: str
    title: str
    layer: Layer

    @property
    def exact(self) -> bool:
        return not any(character in self.pattern for character in "*?[")

    def matches(self, model: str) -> bool:
        return fnmatchcase(model.lower(), self.pattern.lower())

    @property
    def specificity(self) -> tuple[bool, int]:
        return self.exact, sum(character not in "*?" for character in self.pattern)


@dataclass(frozen=True, slots=True)
class ProviderSource:
    """One file, read and checked; or what stands in place of one."""

    stem: str
    label: str
    head: Mapping[str, Any]
    layer: Layer
    models: tuple[ModelEntry, ...]
    known: Snapshot | None = None
    """What the snapshot knows of its models."""
    own: bool = False
    """Whether it is the user's: then it outranks what the server says."""

    def layers(self, model: str) -> Iterable[Layer]:
        known = self.known.layers(model) if self.known is not None else ()
        matching = [entry for entry in self.models if entry.matches(model)]
        return self.layer, *known, *(entry.layer for entry in sorted(matching, key=lambda entry: entry.specificity))


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    title: str
    aliases: tuple[str, ...]
    endpoint: EndpointFacts
    default_model: str
    checked: str
    sources: tuple[str, ...]
    """What the facts were checked against."""
    responses: ResponsesFacts | None
    word: WordFacts
    notice: NoticeFacts
    messages_endpoint: MessagesFacts | None
    files: tuple[str, ...]
    """The files it was read from, weakest first."""
    models: tuple[ModelEntry, ...]
    parts: tuple[ProviderSource, ...] = field(repr=False)
    snapshot: Snapshot | None = field(default=None, repr=False)
    """What the snapshot knows of its models, if it has any."""
    asked: Dialect | None = None
    """How the user wants it to be spoken to; `None`: as the vendor does, which may differ from model to model."""
    told: Told = field(default=Told(), repr=False)  # frozen
    """What its server said of itself when it was last asked."""
    _known: dict[tuple[str, str], ProviderCapabilities] = field(default_factory=dict, repr=False, compare=False)

    def capabilities(self, model: str = "") -> ProviderCapabilities:
        """What `model` (or the default one) can do here, spoken to as the file's own facts say."""
        model = model or self.default_model
        return self.remember(model, "", lambda: self._merge(model))

    def remember(self, model: str, dialect: str, make: Callable[[], ProviderCapabilities]) -> ProviderCapabilities:
        """What was made of its facts for a model in this dialect, made once."""
        known = self._known.get((model, dialect))
        if known is None:
            made = make()
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[model, dialect] = made
        return known

    def hear(self, told: Told) -> Provider:
        """The provider as its server describes it."""
        return replace(self, told=told, _known={})

    def states(self, model: str, path: tuple[str, str]) -> bool:
        """Whether the user says this himself, in a file or in the configuration."""
        return any(path[1] in facts.get(path[0], ()) for facts in self.own_facts(model))

    def own_facts(self, model: str) -> Iterator[Mapping[str, Any]]:
        """What the user says himself, as it is written, weakest first."""
        for part in self.parts:
            if part.own:
                yield from (layer.facts for layer in part.layers(model or self.default_model))

    def origins(self, model: str = "", now: float | None = None) -> dict[str, str]:
        """For every fact, by its dotted path: the file and section that said it, the server, or `default`. `now`: to
        say how long ago the server said so."""
        _, said = merge_layers(self._layers(model or self.default_model, now))
        found = {path: said[path] for path in said}
        for path in all_paths():
            if path not in found and not any(known.startswith(f"{path}.") for known in said):
                found[path] = DEFAULT
        return dict(sorted(found.items(), key=lambda item: _page_order(item[0])))

    def _layers(self, model: str, now: float | None = None) -> Iterable[Layer]:
        ours = [layer for part in self.parts if not part.own for layer in part.layers(model)]
        own = [layer for part in self.parts if part.own for layer in part.layers(model)]
        word = self.told.word(model)
        if word == NOTHING:
            return (*ours, *own)
        when = "" if now is None else f", {age_words(now - self.told.at)}"
        return (*ours, Layer(word.facts(merge_layers(ours)[0]), f"server{when}", written=False), *own)

    def _merge(self, model: str) -> ProviderCapabilities:
        facts, _ = merge_layers(self._layers(model))
        if "allow" in facts:  # what a file adds to every body is allowed by being named there
            facts["allow"] = [*facts["allow"], *facts.get("extra_body", {})]
        try:
            return msgspec.convert({**facts, "provider": self.name, "model": model}, ProviderCapabilities)
        except msgspec.ValidationError as error:
            raise ConfigError(f"provider `{self.name}`, model `{model}`: {error} ({', '.join(self.files)})") from error


def _page_order(path: str) -> tuple[int, str]:
    return FACT_FIELDS.index(path.partition(".")[0]), path


def _gather(name: str, user_dirs: tuple[Path, ...], seen: tuple[str, ...]) -> list[ProviderSource]:
    """The files that make up a provider, weakest first."""
    stem = find_file(name, user_dirs)
    if stem in seen:
        raise ConfigError(f"provider files extend each other in a circle: {' → '.join((*seen, stem))}")
    gathered = list(_read_builtin(stem))
    below = gathered[-1].head.get("extends", "") if gathered else ""
    if below:  # one of ours that is another of ours at another address
        gathered = [*_gather(below, (), (*seen, stem)), *gathered]
    for folder in user_dirs:
        path = folder / f"{stem}.toml"
        if not path.is_file():
            continue
        source = _read_user(path)
        base = source.head.get("extends", "")
        if base and base != stem:
            gathered = _gather(base, user_dirs, (*seen, stem))
        gathered.append(source)
    return gathered


@lru_cache(maxsize=64)
def _read_builtin(stem: str) -> tuple[ProviderSource, ...]:
    """Our own file with the snapshot around it, or the snapshot alone; nothing where we know nothing."""
    if stem in name_files(None):
        text = (DATA / f"{stem}.toml").read_text(encoding="utf-8")
        source = _read(tomllib.loads(text), stem, f"{stem}.toml")
        id = source.head.get("snapshot", "")
        if not id:
            return (source,)
        known = snapshot_models(id, source.layer.facts.get("messages", {}).get("input", ()))
        return _from_snapshot(id, known), replace(source, known=known)
    if stem not in snapshot_index():
        return ()
    reason = obstacle(snapshot_index()[stem])
    if reason:
        raise ConfigError(f"provider `{stem}` cannot be used: {reason}", code="unknown_provider")
    known = snapshot_models(stem)
    # Where another server is, and what endpoints it has besides, says nothing about this one.
    shared = {"messages_endpoint"} if "messages" in (known.protocol, *snapshot_index()[stem].also) else set()
    base = [
        replace(source, head={key: said for key, said in source.head.items() if key in shared})
        for source in _read_builtin(BASE)
    ]
    return *base, replace(_from_snapshot(stem, known), known=known)


def _from_snapshot(id: str, known: Snapshot) -> ProviderSource:
    """What it says of the provider itself is where it is; all facts are of single models."""
    return ProviderSource(
        stem=id,
        label=known.head.label,
        head=provider_head(id, whole=known.whole),
        layer=Layer({}, known.head.label),
        models=(),
    )


def _read_user(path: Path) -> ProviderSource:
    problems = check_provider_file(path)
    if problems:
        raise ConfigError("\n".join(problem.text for problem in problems), metadata={"problems": problems})
    return replace(_read(tomllib.loads(path.read_text(encoding="utf-8-sig")), path.stem, str(path)), own=True)


def _read_entries(models: Mapping[str, Mapping[str, Any]], stem: str, place: str) -> ProviderSource:
    problems = find_problems({"models": models}, stem)
    if problems:
        told = "\n".join(f"{place}: {problem.text}" for problem in problems)
        raise ConfigError(told, metadata={"problems": problems})
    return replace(_read({"models": dict(models)}, stem, place), own=True)


def _read(raw: dict[str, Any], stem: str, label: str) -> ProviderSource:
    return ProviderSource(
        stem=stem,
        label=label,
        head={key: value for key, value in raw.items() if key in HEAD_FIELDS},
        layer=Layer({key: value for key, value in raw.items() if key in FACT_FIELDS}, label),
        models=tuple(
            ModelEntry(
                pattern=pattern,
                example=entry.get("example", pattern),
                title=entry.get("title", ""),
                layer=Layer(
                    {key: value for key, value in entry.items() if key in FACT_FIELDS}, label, f'models."{pattern}"'
                ),
            )
            for pattern, entry in raw.get("models", {}).items()
        ),
    )


def _merge_heads(sources: Sequence[ProviderSource]) -> FileHead:
    """The last word on each field; the sections of endpoints and of the word are merged field by field."""
    merged: dict[str, Any] = {}
    for source in sources:
        for key, value in source.head.items():
            if key in _SECTIONS and isinstance(merged.get(key), Mapping):
                below = merged[key]
                if key == "endpoint" and "key_env" in value:  # who names another key says anew whether it is needed
                    below = {name: fact for name, fact in below.items() if name != "key_optional"}
                merged[key] = {**below, **value}
            else:
                merged[key] = value
    own = [source.head for source in sources if source.stem == sources[-1].stem]
    for key in ("name", "title", "aliases", "extends", "notice"):  # identity is never inherited from another provider
        if not any(key in head for head in own):
            merged.pop(key, None)
    return msgspec.convert(merged, FileHead)
