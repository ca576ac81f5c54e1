"""Every route with the methods that it takes."""

from __future__ import annotations

ROUTES = {
    "/v1/responses": "POST",
    "/v1/responses/input_tokens": "POST",
    "/v1/responses/resp_1": "DELETE, GET",
    "/v1/responses/resp_1/cancel": "POST",
    "/v1/responses/resp_1/input_items": "GET",
    "/v1/responses/compact": "POST",
    "/v1/chat/completions": "GET, POST",
    "/v1/chat/completions/chatcmpl-1": "DELETE, GET, POST",
    "/v1/chat/completions/chatcmpl-1/messages": "GET",
    "/v1/embeddings": "POST",
    "/v1/images/generations": "POST",
    "/v1/images/edits": "POST",
    "/v1/conversations": "POST",
    "/v1/conversations/conv_1": "DELETE, GET, POST",
    "/v1/conversations/conv_1/items": "GET, POST",
    "/v1/conversations/conv_1/items/msg_1": "DELETE, GET",
    "/v1/isthmus/traces": "GET",
    "/v1/isthmus/traces/totals": "GET",
    "/v1/isthmus/traces/capture": "GET, POST",
    "/v1/isthmus/traces/req_1": "GET",
    "/v1/isthmus/traces/req_1/conversation": "GET",
    "/v1/models": "GET",
    "/v1/models/plain/x": "GET",
    "/health": "GET",
    "/ready": "GET",
    "/metrics": "GET",
    "/openapi.json": "GET",
}
