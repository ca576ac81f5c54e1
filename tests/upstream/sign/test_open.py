"""Each way to show who asks has its signer, and a file that leaves something out is told so."""

from __future__ import annotations

import pytest

from isthmus.errors import ConfigError
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.sign.google import GoogleSigner
from isthmus.upstream.sign.open import open_signer
from isthmus.upstream.sign.sigv4 import SigV4Signer

ENDPOINT = Endpoint("cloud", "http://127.0.0.1:9/v1")
KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret-1"}


def test_each_way_has_its_signer() -> None:
    assert isinstance(open_signer("sigv4", {"service": "s", "region": "r"}, ENDPOINT, KEYS), SigV4Signer)
    assert isinstance(open_signer("google", {"scope": "s"}, ENDPOINT, {}), GoogleSigner)


@pytest.mark.parametrize(
    ("auth", "facts", "missing"),
    [
        ("sigv4", {"service": "s"}, "region"),
        ("sigv4", {"service": "s", "region": "${AWS_REGION}"}, "region"),
        ("google", {}, "scope"),
    ],
)
def test_what_is_missing_is_named(auth: str, facts: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"`{missing}`") as failure:
        open_signer(auth, facts, ENDPOINT, KEYS)
    assert failure.value.param == "providers.cloud"
