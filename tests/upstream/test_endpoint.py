"""What an endpoint shows of itself, and what it names as secret."""

from __future__ import annotations

from isthmus.upstream.endpoint import EMBEDDINGS, MAX_CONNECTIONS, Elsewhere, Endpoint, Patience

KEYS = [f"sk-{name}-0123456789abcdef" for name in ("head", "query", "user", "other")]
ENDPOINT = Endpoint(
    "mine",
    f"https://me:{KEYS[2]}@provider.test/v1",
    {"authorization": f"Bearer {KEYS[0]}"},
    {"key": KEYS[1]},
    others={EMBEDDINGS: Elsewhere("https://vectors.test/v1", {"x-api-key": KEYS[3]})},
)


def test_every_key_in_it_is_named_and_none_is_shown() -> None:
    assert {*KEYS} <= {secret.value for secret in ENDPOINT.secrets()}
    for key in KEYS:
        assert key not in repr(ENDPOINT)


def test_who_configures_nothing_waits_long_and_asks_for_much() -> None:
    assert (ENDPOINT.patience, ENDPOINT.max_connections, ENDPOINT.max_queued) == (Patience(), MAX_CONNECTIONS, None)
    assert ENDPOINT.patience.connect < ENDPOINT.patience.idle < ENDPOINT.patience.first_byte
