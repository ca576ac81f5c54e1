"""Every setting reaches its part: no key of the configuration without a proof, and no proof that looks away."""

from __future__ import annotations

from pathlib import Path

import pytest

import settings.of_server
from settings.proving import PROOFS, Proof, Scene, keys_of

every_proof = pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.id)


def test_every_key_of_the_configuration_has_a_proof() -> None:
    known, proven = set(keys_of()), {proof.key for proof in PROOFS}
    assert known - proven == set(), "show in `tests/settings/` that these reach their part"
    assert proven - known == set(), "these are no keys of the configuration"


@every_proof
async def test_it_reaches_its_part(proof: Proof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await proof.check(Scene(proof, False, tmp_path, monkeypatch))


@every_proof
async def test_its_proof_notices_when_it_does_not(
    proof: Proof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError):
        await proof.check(Scene(proof, True, tmp_path, monkeypatch))
