"""A validator of its own kind reads our OpenAPI document."""

from __future__ import annotations

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from flowing import Flow

pytestmark = pytest.mark.real


def test_the_openapi_document_is_valid(flow: Flow) -> None:
    errors = [error.message for error in OpenAPIV31SpecValidator(flow.get("/openapi.json").json).iter_errors()]
    assert errors == []
