"""Every setting reaches its part: no key of the configuration without a proof, and no proof that looks away."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from settings.proving import PROOFS, Proof, Scene, keys_of

for file in sorted((Path(__file__).parent / "settings").glob("of_*.py")):
    importlib.import_module(f"settings.{file.stem}")

every_proof = pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.id)


def test_every_key_of_the_configuration_has_a_proof() -> None:
    known, proven = set(keys_of()), {proof.key for proof in PROOFS}
    assert known - proven == set(), "show in `tests/settings/` that these reach their part"
    assert proven - known == set(), "these are no keys of the configuration"


class Inner(msgspec.Struct, frozen=True):
    one: int = 1


class Outer(msgspec.Struct):
    plain: str = ""
    listed: list[str] = []
    texts: Mapping[str, str] = {}
    table: Inner = Inner()
    maybe: Inner | None = None
    tables: list[Inner] = []
    named: Mapping[str, Inner] = {}


def test_the_walk_enters_every_table() -> None:
    found = ["plain", "listed", "texts", "table.one", "maybe.one", "tables.one", "named.NAME.one"]
    assert list(keys_of(Outer)) == found
    assert {"provider_folders", "providers.NAME.codex.hold", "providers.NAME.endpoints.api_key"} <= set(keys_of())


@every_proof
async def test_it_reaches_its_part(proof: Proof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await proof.check(Scene(proof, False, tmp_path, monkeypatch))


@every_proof
async def test_its_proof_notices_when_it_does_not(
    proof: Proof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError):
        await proof.check(Scene(proof, True, tmp_path, monkeypatch))
