"""Who is measured: the one list of subjects, ours, floors and others.

In: a folder, a port to listen on, the upstream's port. Out: how to start each of them, how to ask it, and what it
cannot do, with the reason. Others are installed by `peers.py`, outside of our own environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from bench.gateways import peers
from bench.gateways.answers import Door
from bench.gateways.client import Ask
from bench.gateways.workloads import Workload

ROOT: Final = Path(__file__).parents[2]
Kind = Literal["ours", "gateway", "forwarder", "direct"]
Start = tuple[list[str], dict[str, str]]
"""Arguments, and what the environment has beside a path and a home."""

_BYTES_ONLY: Final = "carries bytes and translates nothing"
_NO_DOOR: Final = "has no such door"


@dataclass(frozen=True, slots=True)
class Subject:
    key: str
    name: str
    kind: Kind
    start: Callable[[Path, int, int], Start] | None
    doors: dict[Door, str] = field(default_factory=dict)
    """The path of each."""
    model: str = ""
    """Before the upstream's name of a model."""
    extra: dict[str, Any] = field(default_factory=dict)
    """In every body."""
    headers: Callable[[int], tuple[tuple[str, str], ...]] = lambda upstream: ()
    cannot: dict[str, str] = field(default_factory=dict)
    """By the part of a workload."""
    version: Callable[[], str] = str
    settle: float = 0.5
    """Seconds after which what a request has left behind is written."""
    lean: bool = False
    """Whether this is one that keeps nothing of the one before it in this list."""
    remark: str = ""

    def reason(self, workload: Workload) -> str:
        """Nothing, or why this is not asked of it."""
        if self.kind in ("forwarder", "direct"):
            known = workload.door == "responses" and workload.part != "chain"
            return "" if known else _BYTES_ONLY
        if workload.door not in self.doors:
            return _NO_DOOR
        return self.cannot.get(workload.part, "")

    def ask(self, workload: Workload, port: int, upstream: int, after: str = "") -> Ask:
        """A forwarder is asked the same in the words of its upstream."""
        door: Door = workload.door if self.kind in ("ours", "gateway") else "chat"
        told = workload.told
        return Ask(
            port=port,
            path=self.doors[door],
            door=door,
            body=workload.body(self.model, self.extra, door=door, after=after),
            stream=workload.stream,
            words=told.deltas if told.kind == "text" else 0,
            right=lambda answer: workload.right(answer, door=door),
            headers=self.headers(upstream),
        )


def ours(name: str, key: str, *, trace: bool, store: bool, source: Path | None = None) -> Subject:
    def start(folder: Path, port: int, upstream: int) -> Start:
        config = folder / "isthmus.toml"
        kept = f"sqlite:{folder / 'isthmus.db'}" if store else "memory:"
        config.write_text(
            f"[server]\nport = {port}\nmax_concurrent = 5000\n[models]\ndemo = false\n"
            f'[providers.up]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:{upstream}/v1"\n'
            f'max_connections = 5000\n[store]\nurl = "{kept}"\n[log]\nlevel = "warning"\n'
            + ("" if trace else '[trace]\ncapture = "off"\n')
        )
        sources = str(source or os.environ.get("PYTHONPATH", ""))
        return [_beside("isthmus"), "serve", "--config", str(config)], {"PYTHONPATH": sources} if sources else {}

    doors: dict[Door, str] = {
        "responses": "/v1/responses",
        "chat": "/v1/chat/completions",
        "messages": "/v1/messages",
        "websocket": "/v1/responses",
    }
    return Subject(
        key,
        name,
        "ours",
        start,
        doors,
        model="up/",
        extra={} if store else {"store": False},
        cannot={} if store else {"chain": "keeps nothing"},
        version=lambda: __import__("isthmus").__version__,
        settle=0.5 if store or trace else 0.1,
        lean=not store,
    )


def _beside(command: str) -> str:
    return str(Path(sys.executable).with_name(command))


def _floor(which: str) -> Callable[[Path, int, int], Start]:
    def start(folder: Path, port: int, upstream: int) -> Start:
        arguments = [sys.executable, "-m", "bench.gateways.floors", which, str(port), str(upstream)]
        return arguments, {"PYTHONPATH": str(ROOT)}

    return start


_CHAT: Final[dict[Door, str]] = {"chat": "/v1/chat/completions"}
_THREE: Final[dict[Door, str]] = {**_CHAT, "responses": "/v1/responses", "messages": "/v1/messages"}

DEFAULT: Final = ours("Isthmus", "isthmus", trace=True, store=True)
LEAN: Final = ours("Isthmus, nothing kept", "isthmus-lean", trace=False, store=False)
DIRECT: Final = Subject("direct", "no gateway", "direct", None, _CHAT)
FLOORS: Final = (
    Subject("floor", "floor: uvicorn + aiohttp", "forwarder", _floor("aiohttp"), _CHAT, settle=0.1),
    Subject("floor-lean", "floor: httptools only", "forwarder", _floor("lean"), _CHAT, settle=0.1),
)
PEERS: Final = (
    Subject("nginx", "nginx", "forwarder", peers.start_nginx, _CHAT, version=peers.nginx_version, settle=0.1),
    Subject(
        "godex-lean",
        "GodeX, nothing kept",
        "gateway",
        peers.start_godex(keeps=False),
        {"responses": "/v1/responses"},
        extra={"store": False},
        cannot={"chain": "keeps nothing"},
        version=peers.godex_version,
        lean=True,
    ),
    Subject(
        "godex",
        "GodeX",
        "gateway",
        peers.start_godex(keeps=True),
        {"responses": "/v1/responses"},
        version=peers.godex_version,
        settle=1.5,
    ),
    Subject(
        "litellm",
        "LiteLLM",
        "gateway",
        peers.start_litellm,
        _THREE,
        cannot={"chain": "needs a PostgreSQL to keep responses in"},
        version=peers.version_of("litellm"),
        settle=1.0,
    ),
    Subject(
        "rosetta",
        "llm-rosetta",
        "gateway",
        peers.start_rosetta,
        _THREE,
        cannot={"chain": "keeps no responses"},
        version=peers.version_of("llm-rosetta"),
    ),
    Subject(
        "portkey",
        "Portkey",
        "gateway",
        peers.start_portkey,
        _CHAT,
        headers=lambda upstream: (
            ("x-portkey-provider", "openai"),
            ("x-portkey-custom-host", f"http://127.0.0.1:{upstream}/v1"),
            ("authorization", "Bearer none"),
        ),
        version=peers.portkey_version,
    ),
)


def describe(subjects: list[Subject]) -> list[dict[str, str]]:
    return [{"key": each.key, "name": each.name, "kind": each.kind, "version": _version(each)} for each in subjects]


def _version(subject: Subject) -> str:
    try:
        return subject.version()
    except (OSError, LookupError, json.JSONDecodeError):
        return ""
