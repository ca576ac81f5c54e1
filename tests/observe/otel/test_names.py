"""Our names are those of the conventions: held against the package that is generated from them."""

from __future__ import annotations

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes
from opentelemetry.semconv.schemas import Schemas

from isthmus.observe.otel import names
from isthmus.providers import provider_names

KNOWN = {value for name, value in vars(attributes).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
KNOWN |= {value for value in vars(metrics).values() if isinstance(value, str) and value.startswith("gen_ai.")}
KNOWN |= {
    value for value in (*vars(http_attributes).values(), *vars(error_attributes).values()) if isinstance(value, str)
}
OURS = {
    name: value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "." in value
}


@pytest.mark.parametrize(("name", "value"), OURS.items(), ids=OURS.keys())
def test_every_name_is_in_the_conventions_or_plainly_ours(name: str, value: str) -> None:
    if name not in ("VERSION", "SCHEMA_URL"):
        assert value in KNOWN or value.startswith("isthmus.")


def test_the_operations_are_known_ones() -> None:
    known = {each.value for each in attributes.GenAiOperationNameValues}
    assert {names.CHAT, names.EMBEDDINGS, names.GENERATE, names.EXECUTE_TOOL} <= known


def test_the_version_is_one_that_there_is() -> None:
    assert names.SCHEMA_URL in {each.value for each in Schemas}


def test_vendors_with_a_name_there_have_that_name() -> None:
    known = {each.value for each in attributes.GenAiProviderNameValues}
    assert set(names.VENDORS.values()) <= known
    plain = {name.replace("_", "").replace("-", ""): name for name in provider_names()}
    for value in known:  # none of ours is meant by a name that we do not use
        last = value.rpartition(".")[2].replace("_", "").removesuffix("ai") or value
        if last in plain and "." not in value:
            assert names.vendor_name(plain[last]) == value
