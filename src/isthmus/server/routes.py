"""Every path with its methods, who answers them, and which endpoint it is. Doors that not every server needs are loaded
when the first client comes to them: a server starts sooner without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from isthmus.gateway.gateway import Gateway
from isthmus.server.callers import METRICS, PAGE, is_page
from isthmus.server.options import ServerOptions
from isthmus.server.readiness import Readiness
from isthmus.server.responses import ResponsesApi
from isthmus.server.scopes import OPEN, OPERATOR
from isthmus.server.status import StatusApi

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]


class Route(dict[str, Handler]):
    """The handlers of a path by their methods, and the endpoint that it belongs to: what a key has to open."""

    def __init__(self, endpoint: str, **methods: Handler) -> None:
        super().__init__(methods)
        self.endpoint = endpoint


Routes = dict[str, Route]
RESPONSES: Final = "/v1/responses"
TRACES: Final = "/v1/isthmus/traces"
KEYS: Final = "/v1/isthmus/keys"
AUDIT: Final = "/v1/isthmus/audit"
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
    keys = Later(lambda: _keys(gateway, options))
    return {
        RESPONSES: Route("responses", POST=responses.create),
        "/v1/chat/completions": Route("chat", POST=chat("create"), GET=stored_chats("list")),
        f"/v1/chat/completions/{_ID}": Route(
            "chat", GET=stored_chats("retrieve"), POST=stored_chats("update"), DELETE=stored_chats("delete")
        ),
        f"/v1/chat/completions/{_ID}/messages": Route("chat", GET=stored_chats("messages")),
        "/v1/messages": Route("messages", POST=messages("create")),
        "/v1/messages/count_tokens": Route("messages", POST=messages("count_tokens")),
        "/api/hello": Route(OPEN, GET=messages("hello")),
        "/v1/responses/input_tokens": Route("responses", POST=responses.input_tokens),
        "/v1/responses/compact": Route("responses", POST=responses.compact),
        f"/v1/responses/{_ID}": Route("responses", GET=responses.retrieve, DELETE=responses.delete),
        f"/v1/responses/{_ID}/cancel": Route("responses", POST=responses.cancel),
        f"/v1/responses/{_ID}/input_items": Route("responses", GET=responses.input_items),
        "/v1/embeddings": Route("embeddings", POST=embeddings("create")),
        f"/v1{SEARCH}": Route("search", POST=search("create")),
        "/v1/images/generations": Route("images", POST=images("generations")),
        "/v1/images/edits": Route("images", POST=images("edits")),
        "/v1/conversations": Route("conversations", POST=conversations("create")),
        f"/v1/conversations/{_ID}": Route(
            "conversations",
            GET=conversations("retrieve"),
            POST=conversations("update"),
            DELETE=conversations("delete"),
        ),
        f"/v1/conversations/{_ID}/items": Route(
            "conversations", GET=conversations("list_items"), POST=conversations("add_items")
        ),
        f"/v1/conversations/{_ID}/items/(?P<item_id>[^/]+)": Route(
            "conversations", GET=conversations("retrieve_item"), DELETE=conversations("delete_item")
        ),
        TRACES: Route("traces", GET=traces("list")),
        f"{TRACES}/totals": Route("traces", GET=traces("totals")),
        f"{TRACES}/capture": Route(OPERATOR, GET=traces("capturing"), POST=traces("capture")),
        f"{TRACES}/{_ID}": Route("traces", GET=traces("retrieve")),
        f"{TRACES}/{_ID}/conversation": Route("traces", GET=traces("conversation")),
        USAGE: Route("usage", GET=usage("show")),
        KEYS: Route(OPERATOR, GET=keys("list"), POST=keys("create")),
        f"{KEYS}/{_ID}": Route(OPERATOR, GET=keys("retrieve"), POST=keys("update"), DELETE=keys("revoke")),
        f"{KEYS}/{_ID}/rotate": Route(OPERATOR, POST=keys("rotate")),
        AUDIT: Route(OPERATOR, GET=keys("audit")),
        "/v1/models": Route("models", GET=models("list")),
        r"/v1/models/(?P<id>.+)": Route("models", GET=models("retrieve")),
        "/health": Route(OPEN, GET=status.health),
        "/ready": Route(OPEN, GET=status.ready),
        METRICS: Route("metrics", GET=metrics("show")),
        "/openapi.json": Route(OPEN, GET=Later(_openapi)("document")),
        "/": Route(OPEN, GET=_by_reader(status.welcome, pages("home"))),
        PAGE: Route("page", GET=pages("home")),
        f"{PAGE}/overview": Route("page", GET=pages("overview")),
        f"{PAGE}/requests": Route("page", GET=pages("requests")),
        f"{PAGE}/requests/{_ID}": Route("page", GET=pages("request")),
        f"{PAGE}/requests/{_ID}/replay": Route("page", GET=pages("replay")),
        f"{PAGE}/playground": Route("page", GET=pages("playground")),
        f"{PAGE}/providers": Route("page", GET=pages("providers")),
        f"{PAGE}/providers/{_ID}": Route("page", GET=pages("provider")),
        f"{PAGE}/models": Route("page", GET=pages("models")),
        f"{PAGE}/usage": Route("page", GET=pages("usage")),
        f"{PAGE}/usage.csv": Route("page", GET=pages("usage_csv")),
        f"{PAGE}/keys": Route("page", GET=pages("keys"), POST=pages("change_keys")),
        f"{PAGE}/settings": Route("page", GET=pages("settings")),
        f"{PAGE}/capture": Route("page", POST=pages("capture")),
        f"{PAGE}/login": Route(OPEN, GET=pages("login"), POST=pages("enter")),
        f"{PAGE}/logout": Route(OPEN, POST=pages("leave")),
        f"{PAGE}/live": Route("page", GET=pages("follow")),
        f"{PAGE}/plan": Route("page", POST=pages("plan")),
        f"{PAGE}/send": Route("page", POST=pages("send")),
        f"{PAGE}/static/(?P<name>[^/]+)": Route(OPEN, GET=pages("asset")),
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


def _keys(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.keys import KeysApi

    return KeysApi(gateway, options)


def _usage(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.usage import UsageApi

    return UsageApi(gateway, options)


def _metrics(gateway: Gateway, options: ServerOptions) -> Any:
    from isthmus.server.metrics import MetricsApi

    return MetricsApi(gateway, options)


def _search(gateway: Gateway) -> Any:
    from isthmus.server.search import SearchApi

    return SearchApi(gateway)


def _pages(gateway: Gateway, options: ServerOptions, readiness: Readiness, responses: ResponsesApi) -> Any:
    from isthmus.server.ui.pages import Pages

    return Pages(gateway, options, readiness, create=responses.create)


def _openapi() -> Any:
    from isthmus.server.openapi import OpenApi

    return OpenApi()
