from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.contract import validators
from isthmus.bridge.contract.validators import validator_for
from isthmus.errors import RequestRefused


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "objct"}, id="unknown type"),
        pytest.param({"properties": []}, id="properties not an object"),
        pytest.param({"pattern": "("}, id="broken pattern"),
        pytest.param({"$ref": "#/$defs/gone"}, id="dangling reference"),
        pytest.param({"$ref": "https://example.com/schema.json"}, id="a reference to the network"),
        pytest.param({"$ref": "file:///etc/passwd"}, id="a reference to a file"),
        pytest.param({"$id": "http://example.com/a", "$ref": "b.json"}, id="a relative reference"),
        pytest.param({"const": "\ud800"}, id="not encodable"),
    ],
)
def test_an_unusable_schema_is_the_callers_to_fix(schema: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused, match=r"`text\.format\.schema`") as refused:
        validator_for(schema)
    assert (refused.value.code, refused.value.param) == ("invalid_json_schema", "text.format.schema")
    assert len(refused.value.message) < 500


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({}, id="anything"),
        pytest.param(True, id="true"),
        pytest.param(False, id="false"),
        pytest.param({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, id="draft 7"),
        pytest.param({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}, id="draft 4"),
        pytest.param({"$schema": "https://example.com/my-own", "type": "object"}, id="a made-up draft"),
        pytest.param({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, id="recursive"),
        pytest.param({"x-vendor": 1, "type": "object"}, id="an unknown keyword"),
        pytest.param({"maximum": 10**40}, id="a huge number"),
    ],
)
def test_a_usable_schema_passes(schema: dict[str, Any] | bool) -> None:
    validator_for(schema)


def test_a_file_reference_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "integer"}')
    with pytest.raises(RequestRefused):
        validator_for({"properties": {"a": {"$ref": f"file://{tmp_path}/schema.json"}}})


def test_a_network_reference_never_opens_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for scheme in ("http", "https"):
            for keyword in ("$ref", "$schema", "$dynamicRef"):
                schema = {"properties": {"a": {keyword: f"{scheme}://127.0.0.1:{port}/{keyword[1:]}.json"}}}
                try:
                    validator_for(schema)
                except RequestRefused:
                    continue
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_two_spellings_of_one_schema_share_a_validator() -> None:
    one = validator_for({"type": "object", "required": ["a"]})
    assert validator_for({"required": ["a"], "type": "object"}) is one


def test_the_cache_is_bounded_and_holds_no_huge_schemas() -> None:
    for limit in range(validators._KEPT + 50):
        validator_for({"maximum": limit})
    assert validators._kept.cache_info().currsize == validators._KEPT
    before = validators._kept.cache_info().misses
    huge = {"enum": ["x" * 1000 + str(index) for index in range(200)]}
    assert validator_for(huge).is_valid("x" * 1000 + "7")
    assert validators._kept.cache_info().misses == before


def test_formats_are_checked() -> None:
    validator = validator_for({"type": "string", "format": "date-time"})
    assert validator.is_valid("2026-01-02T03:04:05Z")
    assert not validator.is_valid("tomorrow")


def test_the_validator_library_is_imported_late() -> None:
    script = "import sys, isthmus.bridge.contract; print('jsonschema_rs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
