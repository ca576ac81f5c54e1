"""Gateways for the questions of the Open Responses specification: over the demo model and one provider of each dialect.

Each in the default setting and with `server.compat = "open-responses"`. The scripted upstreams answer whatever comes:
with a call if tools were offered and none has been made, with a few words otherwise. They obey two directives of the
demo model, and think when they are told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from isthmus.testing import CUT, RecordedRequest, ScriptedUpstream, Step, chat, chat_chunks, stream
from serving import GatewayThread, running_gateway_server
from speaking_messages import called, claude, events, named_sse, said, thought
from speaking_responses import native, native_events, native_items
from talking import Talk
from wire import document

Json = dict[str, Any]
BEHIND: Final = ("demo", "chat", "native", "messages")
SETTINGS: Final = ("openai", "open-responses")
PNG: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
WEATHER: Final[Json] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Specified(Talk):
    """A gateway to ask, and how a request names its model there."""

    def __init__(
        self, gateway: GatewayThread, upstream: ScriptedUpstream | None, behind: str, model: str, setting: str
    ) -> None:
        super().__init__(gateway.url)
        self.url = gateway.url
        self.gateway = gateway
        self._upstream = upstream
        self.behind = behind
        self.model = model
        self.setting = setting

    @property
    def specified(self) -> bool:
        return self.setting == "open-responses"

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Who said what in the request that the provider got last."""
        assert self._upstream is not None
        body = self._upstream.requests[-1].json
        asked: list[Json] = body.get("messages") or body["input"]
        return [(message["role"], _text(message["content"])) for message in asked]

    def ask(self, input: Any, **more: Any) -> Json:
        """A whole response, which the specification's own schema takes as it is."""
        response = self.create({"model": self.model, "input": input, **more})
        assert document.judge("ResponseResource", response) == []
        return response

    def ask_stream(self, input: Any, **more: Any) -> tuple[list[Json], Json]:
        """A streamed one: every event is one of the specification's, but for raw reasoning in OpenAI's spelling."""
        events, response = self.stream({"model": self.model, "input": input, **more})
        for event in events:
            assert document.knows_event(event["type"]) or not self.specified, event["type"]
            assert document.judge_event(event) == [], event
        assert document.judge("ResponseResource", response) == []
        return events, response


@contextmanager
def specified(behind: str, setting: str, folder: Path) -> Iterator[Specified]:
    with ExitStack() as stack:
        head = f'[server]\nport = 0\ncompat = "{setting}"\n[store]\nurl = "sqlite:{folder / "s.db"}"\n'
        upstream: ScriptedUpstream | None = None
        if behind == "demo":
            toml, model = f'{head}[models]\ndefault = "demo/demo"\n', "demo/demo"
        else:
            upstream = stack.enter_context(ScriptedUpstream.running(default=_answering(*_DIALECTS[behind])))
            provider, model = ("anthropic", "claude-opus-5") if behind == "messages" else ("openai", "gpt-4o")
            model = f"{provider}/{model}"
            dialect = "" if behind == "messages" else f'dialect = "{"responses" if behind == "native" else "chat"}"\n'
            toml = (
                f'{head}[models]\ndemo = false\ndefault = "{model}"\n[providers.{provider}]\n'
                f'base_url = "{upstream.base_url}"\napi_key = "sk-upstream"\n{dialect}'
            )
        gateway = stack.enter_context(running_gateway_server(toml))
        yield Specified(gateway, upstream, behind, model, setting)


def _claude(
    text: str = "", *, calls: Sequence[tuple[str, str, Json]] = (), finish: str = "", reasoning: str = ""
) -> Step:
    blocks = [*([thought(reasoning)] if reasoning else []), *([said(text)] if text else [])]
    blocks += [called(id, name, **input) for id, name, input in calls]
    return claude(*blocks, **({"stop": "max_tokens"} if finish == "length" else {}))


_DIALECTS: Final[Mapping[str, tuple[Callable[..., Step], Sequence[Any]]]] = {
    "chat": (chat, chat_chunks("1, 2, 3")),
    "native": (native, [*named_sse(native_events(native_items("1, 2, 3")))]),
    "messages": (_claude, [*named_sse(events([said("1, 2, 3")]))]),
}
"""How each speaks: whole answers, and the pieces of a streamed one."""


def _answering(say: Callable[..., Step], pieces: Sequence[Any]) -> Step:
    def answer(request: RecordedRequest) -> Step:
        body: Json = request.json
        choice, tools = body.get("tool_choice", "auto"), body.get("tools") or []
        asked = body.get("messages") or body.get("input") or []
        text = str(asked[-1])
        if "[[demo: cut]]" in text:
            return stream([*pieces[: len(pieces) // 2], CUT])
        if "Think." in text:
            return say("Four.", reasoning="Two and two.")
        if "[[demo: length]]" in text:
            return say("1, 2", finish="length")
        answered = any(kind in str(asked) for kind in ("function_call_output", "tool_call_id", "tool_result"))
        if tools and choice not in ("none", {"type": "none"}) and not answered:
            name = tools[0].get("name") or tools[0]["function"]["name"]
            return say(calls=[("call_1", name, {"city": "Paris"})])
        return say("1, 2, 3, 4, 5")

    return answer


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
