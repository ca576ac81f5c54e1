"""The document that says what there is: whole, and true."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs

from flowing import PLAIN, Flow
from isthmus.testing import chat
from routes import ROUTES

Json = dict[str, Any]


def test_the_openapi_document_describes_every_route(flow: Flow) -> None:
    document = flow.get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    described = {
        re.sub(r"\{[^}]*\}", "*", path): {method.upper() for method in item if method != "parameters"}
        for path, item in document["paths"].items()
    }
    for path, allowed in ROUTES.items():
        if path != "/openapi.json":
            generic = re.sub(r"(resp_1|plain/x|chatcmpl-1|conv_1|msg_1|req_1|key_1)", "*", path)
            assert described[generic] == set(allowed.split(", ")), path


def test_the_openapi_document_is_whole(flow: Flow) -> None:
    """Every reference leads somewhere, every schema is one, every path parameter is declared, every id is unique."""
    document = flow.get("/openapi.json").json
    for reference in re.findall(r'"\$ref":\s*"([^"]*)"', json.dumps(document)):
        node: Any = document
        assert reference.startswith("#/")
        for step in reference[2:].split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
    for name, schema in document["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    ids = []
    for path, item in document["paths"].items():
        declared = {parameter["name"] for parameter in item.get("parameters", ()) if parameter["in"] == "path"}
        assert declared == set(re.findall(r"\{([^}]*)\}", path))
        for method, operation in item.items():
            if method == "parameters":
                continue
            ids.append(operation["operationId"])
            assert operation["responses"]
            assert ("requestBody" in operation) <= (method == "post")
    assert len(set(ids)) == len(ids)


def test_the_openapi_schema_of_a_request_accepts_what_the_gateway_accepts(flow: Flow) -> None:
    document = flow.get("/openapi.json").json
    schema = document["paths"]["/v1/responses"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
    good: Json = {"model": PLAIN, "input": [{"role": "user", "content": "hi"}], "tools": [], "temperature": 1}
    assert validator.is_valid(good)
    assert not validator.is_valid({"input": 3})
    flow.script(chat("ok"))
    assert flow.post("/v1/responses", good).status == 200


def test_the_document_says_where_a_key_is_needed_and_how_it_is_shown(flow: Flow) -> None:
    document = flow.get("/openapi.json").json
    assert document["security"] == [{"bearer": []}, {"x-api-key": []}]
    assert set(document["components"]["securitySchemes"]) == {"bearer", "x-api-key"}
    free = {path for path, item in document["paths"].items() for each in item.values() if _is_free(each)}
    assert free == {"/health", "/api/hello"}


def _is_free(operation: Any) -> bool:
    return isinstance(operation, dict) and operation.get("security") == []
