"""Which file does a provider's name mean? Ours live in the package, a user's in folders of their own; a name that no
file has may stand in the snapshot."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from isthmus.bridge.resolve import nearest_name
from isthmus.errors import ConfigError
from isthmus.providers.schema import DATA
from isthmus.providers.snapshot import snapshot_index


def find_file(name: str, user_dirs: Sequence[Path]) -> str:
    """The stem of the file that `name` means, by its own name or by an alias; or its id in the snapshot."""
    wanted = name.strip().lower()
    names = [*name_files(None), *(stem for folder in user_dirs for stem in name_files(folder))]
    if wanted in names:
        return wanted
    known = {**_builtin_aliases(), **{alias: stem for folder in user_dirs for alias, stem in _read_aliases(folder)}}
    if wanted in known:
        return known[wanted]
    index = snapshot_index()
    if wanted in index:
        return wanted
    near = nearest_name(wanted, [*names, *known, *index])
    hint = f"did you mean `{near}`?" if near else f"known providers: {', '.join(sorted(set(names)))}"
    raise ConfigError(f"there is no provider `{name}`; {hint}", code="unknown_provider")


def name_files(folder: Path | None) -> tuple[str, ...]:
    """The stems of the provider files in a folder, or in the package."""
    if folder is None:
        return _name_builtin()
    return tuple(sorted(path.stem for path in folder.glob("*.toml"))) if folder.is_dir() else ()


@lru_cache(maxsize=1)
def _name_builtin() -> tuple[str, ...]:
    entries = DATA.iterdir()
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml")))


@lru_cache(maxsize=1)
def snapshot_names() -> tuple[str, ...]:
    """The providers of the snapshot that no file of ours stands for, usable or not, sorted."""
    taken = {*_name_builtin(), *_builtin_aliases()}
    return tuple(sorted(id for id in snapshot_index() if id not in taken))


@lru_cache(maxsize=1)
def _builtin_aliases() -> dict[str, str]:
    texts = ((stem, (DATA / f"{stem}.toml").read_text(encoding="utf-8")) for stem in _name_builtin())
    return {alias: stem for stem, text in texts for alias in _aliases(text)}


@lru_cache(maxsize=64)
def words_in_capitals(stem: str) -> frozenset[str]:
    """Of one of our files; the variables that it names are among them. Far cheaper than to read it as TOML."""
    text = (DATA / f"{stem}.toml").read_text(encoding="utf-8")
    return frozenset(re.findall(r'"([A-Z][A-Z0-9_]+)"', text))


def notice_names(user_dirs: Sequence[Path] = ()) -> list[str]:
    """The providers whose files say how a server of theirs is known, on this machine."""
    own = [stem for folder in user_dirs for stem in name_files(folder) if _notices(folder / f"{stem}.toml")]
    return list(dict.fromkeys([*_builtin_notices(), *own]))


@lru_cache(maxsize=1)
def _builtin_notices() -> tuple[str, ...]:
    return tuple(stem for stem in _name_builtin() if _NOTICE in (DATA / f"{stem}.toml").read_text(encoding="utf-8"))


def _notices(path: Path) -> bool:
    return _NOTICE in path.read_text(encoding="utf-8", errors="replace")


_NOTICE: Final = "\n[notice]"


def _read_aliases(folder: Path) -> Iterator[tuple[str, str]]:
    for stem in name_files(folder):
        text = (folder / f"{stem}.toml").read_text(encoding="utf-8", errors="replace")
        yield from ((alias, stem) for alias in _aliases(text))


def _aliases(text: str) -> list[str]:
    """Only that line of the head is parsed: an alias must not cost the reading of every provider."""
    head, _, _ = text.partition("\n[")
    said = _ALIASES.search(head)
    if said is None:
        return []
    try:
        found = tomllib.loads(said[0]).get("aliases", [])
    except tomllib.TOMLDecodeError:
        return []  # a broken file is reported when it is loaded itself
    return [alias.lower() for alias in found if isinstance(alias, str)] if isinstance(found, list) else []


_ALIASES: Final = re.compile(r"^\s*aliases\s*=\s*\[[^\]]*\]", re.MULTILINE)
