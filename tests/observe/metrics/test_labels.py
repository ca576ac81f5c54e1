from __future__ import annotations

from isthmus.errors import FAILURES
from isthmus.observe.metrics.labels import OTHER, Models, code_label

KNOWN = {"deepseek": {"v4", "v4-pro"}, "own": set()}


def test_a_model_that_somebody_names_has_its_own_word() -> None:
    models = Models(lambda provider: KNOWN[provider])
    assert models.label("deepseek", "v4") == "v4"
    assert models.label("deepseek", "V4-Pro") == "v4-pro"


def test_whatever_only_clients_call_a_model_is_folded() -> None:
    models = Models(lambda provider: KNOWN[provider])
    assert {models.label("deepseek", f"sk-{n}") for n in range(1000)} == {OTHER}
    assert models.label("own", "v4") == OTHER


def test_beyond_the_bound_known_ones_are_folded_too() -> None:
    models = Models(lambda provider: {f"m{n}" for n in range(100)}, most=3)
    assert [models.label("p", f"m{n}") for n in (7, 8, 9, 10, 11)] == ["m7", "m8", "m9", OTHER, OTHER]
    assert models.label("p", "m8") == "m8"
    assert models.label("q", "m1") == OTHER


def test_a_name_that_a_server_tells_later_is_known_then() -> None:
    names: set[str] = set()
    models = Models(lambda provider: names)
    assert models.label("own", "llama") == OTHER
    names.add("llama")
    assert models.label("own", "llama") == "llama"


def test_a_code_of_a_vendor_is_no_label() -> None:
    assert all(code_label(code) == code for code in FAILURES)
    assert code_label("sk-secret-in-a-code") == OTHER
