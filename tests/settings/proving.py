"""What a proof of a setting is: a value in an `isthmus.toml`, and a look at the part that it is for.

    @proves("store.durability", '"power"')
    async def the_disk_is_waited_for(scene: Scene) -> None:
        async with scene.gateway() as gateway: ...

Each proof is tried twice: with its line in the file it must hold, and without it it must not. So a part that gets the
default in place of what was written is always noticed, and a proof that looks at nothing is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

import aiohttp
import msgspec
import pytest

from isthmus.bridge.parse import parse_request
from isthmus.config import load_config
from isthmus.config.schema import Config
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.gateway.caller import LOCAL
from isthmus.gateway.gateway import Gateway
from isthmus.server.serve import serve
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.pool import PooledBackend
from isthmus.upstream.retry import RetryingBackend
from isthmus.wiring import running_gateway

PATIENCE: Final = 60.0
NAME: Final = "NAME"
"""Stands for whatever the user calls a provider."""
BASE: Final[Mapping[str, str]] = {
    "server.port": "0",
    "models.demo": "false",
    "store.url": '"memory:"',
    "providers.main.uses": '"openai-compatible"',
    "providers.main.retries": "0",
}
"""What every file says, as dotted key → TOML value; a proof may say otherwise."""


@dataclass(frozen=True, slots=True)
class Proof:
    key: str
    at: str
    """The dotted key that is written in the file."""
    value: str
    check: Callable[[Scene], Awaitable[None]]
    beside: Mapping[str, str]
    instead: str | None
    """What the file says when the setting is forgotten; `None`: nothing."""

    @property
    def id(self) -> str:
        return f"{self.key}-{self.check.__name__}"


PROOFS: Final[list[Proof]] = []


def proves(
    key: str, value: str, *, at: str = "", beside: Mapping[str, str] | None = None, instead: str | None = None
) -> Callable[[Callable[[Scene], Awaitable[None]]], Callable[[Scene], Awaitable[None]]]:
    """This check holds when the file says `key = value`, and does not when it says nothing about it."""

    def take(check: Callable[[Scene], Awaitable[None]]) -> Callable[[Scene], Awaitable[None]]:
        PROOFS.append(Proof(key, at or key.replace(NAME, "main"), value, check, beside or {}, instead))
        return check

    return take


def keys_of(section: type[msgspec.Struct] = Config, before: str = "") -> Iterator[str]:
    """Every key that a file may hold. Tables under names of the user's choice are walked as `NAME`, lists of tables as
    the table itself."""
    for name, kind in get_type_hints(section).items():
        if name.startswith("__") or name not in section.__struct_fields__:
            continue
        inner = [
            each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, msgspec.Struct)
        ]
        if not inner:
            yield f"{before}{name}"
            continue
        named = isinstance(origin := get_origin(kind), type) and issubclass(origin, Mapping)
        yield from keys_of(inner[0], f"{before}{name}.{NAME}." if named else f"{before}{name}.")


@dataclass
class Scene:
    """One telling of a proof: with the setting, or without it."""

    proof: Proof
    forgotten: bool
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    environ: dict[str, str] = field(default_factory=dict)

    def write(self, beside: Mapping[str, str] | None = None, **places: object) -> Path:
        """The file. `@FOLDER@` and the names in `places` stand for what is known only now."""
        proof = self.proof
        said = {**BASE, **proof.beside, **(beside or {})}
        said.pop(proof.at, None)
        value = proof.instead if self.forgotten else proof.value
        if value is not None:
            said[proof.at] = value
        text = "".join(f"{key} = {value}\n" for key, value in said.items())
        for name, place in {"FOLDER": self.folder, **places}.items():
            text = text.replace(f"@{name}@", str(place))
        file = self.folder / "isthmus.toml"
        file.write_text(text)
        file.chmod(0o600)
        return file

    def load(self, beside: Mapping[str, str] | None = None, **places: object) -> Config:
        return load_config(self.write(beside, **places), environ={"HOME": str(self.folder), **self.environ}).config

    @asynccontextmanager
    async def gateway(self, beside: Mapping[str, str] | None = None, **places: object) -> AsyncIterator[Gateway]:
        async with running_gateway(self.load(beside, **places)) as gateway:
            yield gateway

    @asynccontextmanager
    async def served(self, beside: Mapping[str, str] | None = None, **places: object) -> AsyncIterator[Served]:
        """The whole server, on this loop."""
        stop = asyncio.Event()
        found: asyncio.Future[tuple[str, Gateway]] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve(self.load(beside, **places), started=lambda *told: found.set_result(told), stop=stop)
        )
        await asyncio.wait([serving, found], return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        if serving.done():
            await serving
        try:
            url, gateway = found.result()
            async with aiohttp.ClientSession(trust_env=False) as session:
                yield Served(url, gateway, session)
        finally:
            stop.set()
            await serving


@dataclass(frozen=True)
class Served:
    url: str
    gateway: Gateway
    session: aiohttp.ClientSession

    async def status(self, method: str, path: str, body: Any = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.url + path, json=body, headers=named) as answer:
            await answer.read()
            return answer.status


async def ask(gateway: Gateway, **fields: Any) -> dict[str, Any]:
    """The response, after all of it was told."""
    run = await gateway.create(LOCAL, parse_request({"model": "main/some-model", "input": "hi", **fields}))
    last: Any = None
    try:
        async for events in run.events():
            last = events[-1]
    except UpstreamFailed as failure:
        raise AssertionError("there was no answer") from failure
    response = last["response"]
    return response if isinstance(response, dict) else msgspec.to_builtins(response)


async def refusal(asking: Awaitable[object]) -> IsthmusError:
    """With which words it was refused."""
    try:
        await asking
    except IsthmusError as error:
        return error
    raise AssertionError("it was not refused")


def http_places(gateway: Gateway, name: str = "main") -> list[HttpBackend]:
    """What really sends this provider's requests."""
    backend = gateway.directory.served[name].backend
    if isinstance(backend, RetryingBackend):
        backend = backend._inner  # type: ignore[assignment]
    found = [member.backend for member in backend._members] if isinstance(backend, PooledBackend) else [backend]
    assert all(isinstance(each, HttpBackend) for each in found)
    return found  # type: ignore[return-value]
