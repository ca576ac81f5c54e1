"""Our own surface as an OpenAPI document, made from the same shapes that requests are checked against."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus import __version__
from isthmus.access.wishes import Wishes
from isthmus.bridge.doors.conversations.read import INCLUDES, MAX_ITEMS
from isthmus.bridge.metadata import MAX_NAME, MAX_PAIRS, MAX_TEXT
from isthmus.protocol.chat import CreateChatCompletion
from isthmus.protocol.embeddings import CreateEmbedding
from isthmus.protocol.images import CreateImage, EditImage
from isthmus.protocol.json import JsonObject
from isthmus.protocol.messages import CountTokens, CreateMessage
from isthmus.protocol.responses import CreateResponse
from isthmus.server.http import send_json


class OpenApi:
    async def document(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, build_document())


@cache
def build_document() -> JsonObject:
    bodies, components = msgspec.json.schema_components(
        [
            CreateResponse,
            CreateChatCompletion,
            CreateEmbedding,
            CreateMessage,
            CountTokens,
            CreateImage,
            EditImage,
            Wishes,
        ],
        ref_template="#/components/schemas/{name}",
    )
    response_body, chat_body, embedding_body, message_body, count_body, image_body, edit_body, key_body = bodies
    id_parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Isthmus", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": {
            "/v1/responses": {
                "post": _operation("Create a response", "createResponse", body=response_body, stream=True)
            },
            "/v1/responses/input_tokens": {
                "post": _operation("Estimate a request's input tokens", "countInputTokens", body=response_body)
            },
            "/v1/responses/compact": {
                "post": _operation("Compact a conversation", "compactResponse", body=response_body)
            },
            "/v1/responses/{id}": {
                "parameters": [id_parameter],
                "get": _operation(
                    "Fetch a stored response, or read its stream on",
                    "getResponse",
                    query={"stream": {"type": "boolean"}, "starting_after": {"type": "integer", "minimum": 0}},
                    stream=True,
                ),
                "delete": _operation("Delete a stored response", "deleteResponse"),
            },
            "/v1/responses/{id}/cancel": {
                "parameters": [id_parameter],
                "post": _operation("Cancel a response that is being made", "cancelResponse"),
            },
            "/v1/responses/{id}/input_items": {
                "parameters": [id_parameter],
                "get": _operation(
                    "List the items that a response was made from",
                    "listInputItems",
                    query=_page("desc"),
                ),
            },
            **_conversation_paths(id_parameter),
            "/v1/chat/completions": {
                "post": _operation("Create a chat completion", "createChatCompletion", body=chat_body, stream=True),
                "get": _operation(
                    "List stored chat completions",
                    "listChatCompletions",
                    query={**_page("asc"), "model": {"type": "string"}},
                ),
            },
            "/v1/chat/completions/{id}": {
                "parameters": [id_parameter],
                "get": _operation("Fetch a stored chat completion", "getChatCompletion"),
                "post": _operation(
                    "Give a stored chat completion other metadata", "updateChatCompletion", body=_METADATA
                ),
                "delete": _operation("Delete a stored chat completion", "deleteChatCompletion"),
            },
            "/v1/chat/completions/{id}/messages": {
                "parameters": [id_parameter],
                "get": _operation(
                    "List the messages that a stored chat completion answers",
                    "listChatCompletionMessages",
                    query=_page("asc"),
                ),
            },
            "/v1/embeddings": {"post": _operation("Make vectors of texts", "createEmbedding", body=embedding_body)},
            "/v1/alpha/search": {"post": _operation("Search the web, as Codex does", "alphaSearch", body=_SEARCH)},
            "/v1/images/generations": {"post": _operation("Draw images", "createImage", body=image_body, stream=True)},
            "/v1/images/edits": {
                "post": _operation("Change images; a form is taken, too", "editImage", body=edit_body, stream=True)
            },
            "/v1/messages": {"post": _operation("Create a message", "createMessage", body=message_body, stream=True)},
            "/v1/messages/count_tokens": {
                "post": _operation("Estimate a message's input tokens", "countMessageTokens", body=count_body)
            },
            **_trace_paths(id_parameter),
            **_key_paths(id_parameter, key_body),
            "/v1/models": {"get": _operation("List models", "listModels")},
            "/v1/models/{id}": {"parameters": [id_parameter], "get": _operation("Describe a model", "getModel")},
            "/api/hello": {"get": _operation("Whether somebody answers, as Claude Code asks", "hello", open=True)},
            "/health": {"get": _operation("Whether the process answers", "health", open=True)},
            "/ready": {"get": _operation("Whether it can serve", "ready")},
            "/metrics": {"get": _operation("Everything that is counted, for Prometheus", "metrics", kind="text/plain")},
            "/openapi.json": {"get": _operation("This surface as an OpenAPI document", "openapi")},
            "/": {"get": _operation("What answers here, and its default model", "welcome")},
        },
        "components": {"schemas": {**components, "Error": _ERROR}, "securitySchemes": _KEYS},
        "security": [{name: []} for name in _KEYS],  # as soon as there is one; without keys nobody is asked
    }


def _key_paths(id_parameter: JsonObject, key: JsonObject) -> JsonObject:
    """For operators."""
    limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    texts: JsonObject = {name: {"type": "string"} for name in ("after", "status", "team")}
    grace = {"type": "object", "properties": {"grace": {"type": "number", "minimum": 0}}, "additionalProperties": False}
    return {
        "/v1/isthmus/keys": {
            "get": _operation("List keys", "listKeys", query={"limit": limit, **texts}),
            "post": _operation("Make a key, which is told this once", "createKey", body=key),
        },
        "/v1/isthmus/keys/{id}": {
            "parameters": [id_parameter],
            "get": _operation("Say what a key opens", "getKey"),
            "post": _operation("Change what a key opens", "updateKey", body=key),
            "delete": _operation("Revoke a key", "revokeKey"),
        },
        "/v1/isthmus/keys/{id}/rotate": {
            "parameters": [id_parameter],
            "post": _operation("Change a key for a new one, which is told this once", "rotateKey", body=grace),
        },
        "/v1/isthmus/audit": {
            "get": _operation(
                "List what operators did, the latest first",
                "listDeeds",
                query={"limit": limit, "before": {"type": "integer", "minimum": 1}},
            )
        },
    }


def _conversation_paths(id_parameter: JsonObject) -> JsonObject:
    item_parameter = {**id_parameter, "name": "item_id"}
    items = {"type": "array", "maxItems": MAX_ITEMS, "items": {"type": "object"}}
    new = {"type": "object", "properties": {"items": {**items, "type": ["array", "null"]}, **_METADATA["properties"]}}
    added = {"type": "object", "properties": {"items": items}, "required": ["items"]}
    extras = {"include[]": {"type": "array", "items": {"enum": [*INCLUDES]}}}
    return {
        "/v1/conversations": {"post": _operation("Begin a conversation", "createConversation", body=new)},
        "/v1/conversations/{id}": {
            "parameters": [id_parameter],
            "get": _operation("Fetch a conversation", "getConversation"),
            "post": _operation("Give a conversation other metadata", "updateConversation", body=_METADATA),
            "delete": _operation("Delete a conversation", "deleteConversation"),
        },
        "/v1/conversations/{id}/items": {
            "parameters": [id_parameter],
            "get": _operation(
                "List the items of a conversation", "listConversationItems", query={**_page("desc"), **extras}
            ),
            "post": _operation("Add items to a conversation", "addConversationItems", body=added, query=extras),
        },
        "/v1/conversations/{id}/items/{item_id}": {
            "parameters": [id_parameter, item_parameter],
            "get": _operation("Fetch an item of a conversation", "getConversationItem", query=extras),
            "delete": _operation("Delete an item of a conversation", "deleteConversationItem"),
        },
    }


def _trace_paths(id_parameter: JsonObject) -> JsonObject:
    from isthmus.server.traces import GROUPINGS, LONGEST_CAPTURE, TEXTS

    moment = {"type": "number", "minimum": 0}
    filters = {
        **{name: {"type": "string"} for name in TEXTS},
        "since": moment,
        "until": moment,
        "changed": {"type": "boolean"},
    }
    page = {
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
        "after": {"type": "integer", "minimum": 0},
        "order": {"enum": ["asc", "desc"], "default": "desc"},
    }
    grouped = {"by": {"enum": [*GROUPINGS]}, "step": {"type": "integer", "minimum": 300, "default": 3600}}
    day = {"type": "string", "examples": ["2026-11-17", "30d"]}
    usage = {"since": day, "until": day, "by": {"type": "string", "examples": ["day,key"]}}
    usage |= {"key": {"type": "string"}, "team": {"type": "string"}, "format": {"enum": ["json", "csv"]}}
    seconds = {"type": "number", "minimum": 0, "maximum": LONGEST_CAPTURE}
    capture = {
        "type": "object",
        "required": ["seconds"],
        "properties": {"seconds": seconds, "owner": {"type": "string"}, "key": {"type": "string"}},
        "additionalProperties": False,
    }
    return {
        "/v1/isthmus/traces": {
            "get": _operation("List what happened to requests", "listTraces", query={**page, **filters})
        },
        "/v1/isthmus/traces/totals": {
            "get": _operation("Sums over requests", "sumTraces", query={**grouped, **filters})
        },
        "/v1/isthmus/traces/capture": {
            "get": _operation("What is captured of requests", "getCapture"),
            "post": _operation("Capture all content for a while", "captureAll", body=capture),
        },
        "/v1/isthmus/usage": {
            "get": _operation("What was used and what it cost", "getUsage", query=usage),
        },
        "/v1/isthmus/traces/{id}": {
            "parameters": [id_parameter],
            "get": _operation("All that is known of one request", "getTrace"),
        },
        "/v1/isthmus/traces/{id}/conversation": {
            "parameters": [id_parameter],
            "get": _operation("List the requests of the same conversation", "walkTraces"),
        },
    }


_METADATA: JsonObject = {
    "type": "object",
    "required": ["metadata"],
    "properties": {
        "metadata": {
            "type": ["object", "null"],
            "maxProperties": MAX_PAIRS,
            "propertyNames": {"maxLength": MAX_NAME},
            "additionalProperties": {"type": "string", "maxLength": MAX_TEXT},
        }
    },
}
_SEARCH: JsonObject = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "model": {"type": "string"},
        "input": {"type": "array", "items": {"type": "object"}},
        "commands": {
            "type": "object",
            "properties": {
                **{
                    name: {"type": "array", "items": {"type": "object"}}
                    for name in ("search_query", "image_query", "open", "click", "find", "screenshot", "time")
                },
                "response_length": {"enum": ["short", "medium", "long"]},
            },
        },
        "settings": {"type": "object"},
        "max_output_tokens": {"type": "integer"},
    },
}
_KEYS: JsonObject = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}
_ERROR: JsonObject = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def _page(order: str) -> JsonObject:
    """What every list can be asked for."""
    return {
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        "after": {"type": "string"},
        "order": {"enum": ["asc", "desc"], "default": order},
    }


def _operation(
    summary: str,
    id: str,
    *,
    body: Any = None,
    query: JsonObject | None = None,
    stream: bool = False,
    kind: str = "application/json",
    open: bool = False,
) -> JsonObject:
    """`open`: nobody needs a key for it."""
    content: JsonObject = {kind: {"schema": {"type": "object" if kind == "application/json" else "string"}}}
    if stream:
        content["text/event-stream"] = {}  # events, not one value: OpenAPI 3.1 has no words for them
    error = {
        "description": "An error",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    operation: JsonObject = {
        "summary": summary,
        "operationId": id,
        "responses": {"200": {"description": "Success", "content": content}, "4XX": error, "5XX": error},
    }
    if open:
        operation["security"] = []
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if query:
        operation["parameters"] = [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in query.items()
        ]
    return operation
