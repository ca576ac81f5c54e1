"""Every path with its methods, and who answers them. Doors that not every server needs are loaded when the first client
comes to them: a server starts sooner without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from isthmus.gateway.gateway import Gateway
from isthmus.server.callers import METRICS, PAGE, is_page
from isthmus.server.options import ServerOptions
from isthmus.server.readiness import Readiness
from isthmus.server.responses import ResponsesApi
from isthmus.server.status import StatusApi

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
Routes = dict[str, dict[str, Handler]]
RESPONSES: Final = "/v1/responses"
TRACES: Final = "/v1/isthmus/traces"
USAGE: Final = "/v1/isthmus/usage"
SEARCH: Final = "/alpha/search"
"""Behind `/v1`. Whoever asks there reads no error but one about its key."""
_ID: Final = r"(?P<id>[^/]+)"


def all_routes(gateway: Gateway, options: ServerOptions, readiness: Readiness) -> Routes:
    responses, status = ResponsesApi(gateway, options), StatusApi(gateway, readiness, options.vitals)
    chat = Later(lambda: _chat(gateway, options))
    models = Later(lambda: _models(gateway))
    stored_chats = Later(lambda: _stored_chats(gateway))
    messages = Later(lambda: _messages(gateway, options))
    embeddings = Later(lambda: _embeddings(gateway))
    images = Later(lambda: _images(gateway))
    conversations = Later(lambda: _conversations(gateway))
    pages = Later(lambda: _pages(gateway, options, readiness, responses))
    traces = Later(lambda: _traces(gateway, options))
    usage = Later(lambda: _usage(gateway, options))
    metrics = Later(lambda: _metrics(gateway, options))
    search = Later(lambda: _search(gateway))
    return {
        RESPONSES: {"POST": responses.create},
        "/v1/chat/completions": {"POST": chat("create"), "GET": stored_chats("list")},
        f"/v1/chat/completions/{_ID}": {
            "GET": stored_chats("retrieve"),
            "POST": stored_chats("update"),
            "DELETE": stored_chats("delete"),
        },
        f"/v1/chat/completions/{_ID}/messages": {"GET": stored_chats("messages")},
        "/v1/messages": {"POST": messages("create")},
        "/v1/messages/count_tokens": {"POST": messages("count_tokens")},
        "/api/hello": {"GET": messages("hello")},
        "/v1/responses/input_tokens": {"POST": responses.input_tokens},
        "/v1/responses/compact": {"POST": responses.compact},
        f"/v1/responses/{_ID}": {"GET": responses.retrieve, "DELETE": responses.delete},
        f"/v1/responses/{_ID}/cancel": {"POST": responses.cancel},
        f"/v1/responses/{_ID}/input_items": {"GET": responses.input_items},
        "/v1/embeddings": {"POST": embeddings("create")},
        f"/v1{SEARCH}": {"POST": search("create")},
        "/v1/images/generations": {"POST": images("generations")},
        "/v1/images/edits": {"POST": images("edits")},
        "/v1/conversations": {"POST": conversations("create")},
        f"/v1/conversations/{_ID}": {
            "GET": conversations("retrieve"),
            "POST": conversations("update"),
            "DELETE": conversations("delete"),
        },
        f"/v1/conversations/{_ID}/items": {"GET": conversations("list_items"), "POST": conversations("add_items")},
        f"/v1/conversations/{_ID}/items/(?P<item_id>[^/]+)": {
            "GET": conversations("retrieve_item"),
            "DELETE": conversations("delete_item"),
        },
        TRACES: {"GET": traces("list")},
        f"{TRACES}/totals": {"GET": traces("totals")},
        f"{TRACES}/capture": {"GET": traces("capturing"), "POST": traces("capture")},
        f"{TRACES}/{_ID}": {"GET": traces("retrieve")},
        f"{TRACES}/{_ID}/conversation": {"GET": traces("conversation")},
        USAGE: {"GET": usage("show")},
        "/v1/models": {"GET": models("list")},
        r"/v1/models/(?P<id>.+)": {"GET": models("retrieve")},
        "/health": {"GET": status.health},
        "/ready": {"GET": status.ready},
        METRICS: {"GET": metrics("show")},
        "/openapi.json": {"GET": Later(_openapi)("document")},
        "/": {"GET": _by_reader(status.welcome, pages("home"))},
        PAGE: {"GET": pages("home")},
        f"{PAGE}/overview": {"GET": pages("overview")},
        f"{PAGE}/requests": {"GET": pages("requests")},
        f"{PAGE}/requests/{_ID}": {"GET": pages("request")},
        f"{PAGE}/requests/{_ID}/replay": {"GET": pages("replay")},
        f"{PAGE}/usage": {"GET": pages("usage")},
        f"{PAGE}/usage.csv": {"GET": pages("usage_csv")},
        f"{PAGE}/playground": {"GET": pages("playground")},
        f"{PAGE}/providers": {"GET": pages("providers")},
        f"{PAGE}/providers/{_ID}": {"GET": pages("provider")},
        f"{PAGE}/models": {"GET": pages("models")},
        f"{PAGE}/settings": {"GET": pages("settings")},
        f"{PAGE}/capture": {"POST": pages("capture")},
        f"{PAGE}/login": {"GET": pages("login"), "POST": pages("enter")},
        f"{PAGE}/logout": {"POST": pages("leave")},
        f"{PAGE}/live": {"GET": pages("follow")},
        f"{PAGE}/plan": {"POST": pages("plan")},
        f"{PAGE}/send": {"POST": pages("send")},
        f"{PAGE}/static/(?P<name>[^/]+)": {"GET": pages("asset")},
    }


def _by_reader(program: Handler, person: Handler) -> Handler:
    """Browsers are shown a page, everybody else gets JSON."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        await (person if is_page(scope) else program)(scope, receive, send)

    return handle


class Later:
    """A door that is loaded when somebody comes to it."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._door: Any = None

    def __call__(self, name: str) -> Handler:
        """The handler of that name."""

        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            if self._door is None:
                self._door = self._load()
            await getattr(self._door, name)(scope, receive, send)

        return handle


def _chat(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.chat import ChatApi

    return ChatApi(gateway, options)


def _models(gateway: Gateway) -> Any:
    from isthmus.server.models import ModelsApi

    return ModelsApi(gateway)


def _stored_chats(gateway: Gateway) -> Any:
    from isthmus.server.stored_chats import StoredChatsApi

    return StoredChatsApi(gateway)


def _messages(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.messages import MessagesApi

    return MessagesApi(gateway, options)


def _embeddings(gateway: Gateway) -> Any:
    from isthmus.server.embeddings import EmbeddingsApi

    return EmbeddingsApi(gateway)


def _images(gateway: Gateway) -> Any:
    from isthmus.server.images import ImagesApi

    return ImagesApi(gateway)


def _conversations(gateway: Gateway) -> Any:
    from isthmus.server.conversations import ConversationsApi

    return ConversationsApi(gateway)


def _traces(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.traces import TracesApi

    return TracesApi(gateway, options)


def _usage(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.usage import UsageApi

    return UsageApi(gateway, options)


def _metrics(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.metrics import MetricsApi

    return MetricsApi(gateway, options.meters)


def _search(gateway: Gateway) -> Any:
    from isthmus.server.search import SearchApi

    return SearchApi(gateway)


def _pages(gateway: Gateway, options: ServerOptions, readiness: Readiness, responses: ResponsesApi) -> Any:
    from isthmus.server.ui.pages import Pages

    return Pages(gateway, options, readiness, create=responses.create)


def _openapi() -> Any:
    from isthmus.server.openapi import OpenApi

    return OpenApi()
