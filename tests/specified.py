"""Gateways for the questions of the Open Responses specification: over the demo model, a chat provider, a native one.

Each in the default setting and with `server.compat = "open-responses"`. The two scripted upstreams answer whatever
comes: with a call if tools were offered and none has been made, with a few words otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from isthmus.testing import RecordedRequest, ScriptedUpstream, Step, chat
from serving import running_gateway_server
from speaking_responses import native
from talking import Talk
from wire import document

Json = dict[str, Any]
BEHIND: Final = ("demo", "chat", "native")
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

    def __init__(self, url: str, behind: str, model: str, setting: str) -> None:
        super().__init__(url)
        self.url = url
        self.behind = behind
        self.model = model
        self.setting = setting

    @property
    def specified(self) -> bool:
        return self.setting == "open-responses"

    def ask(self, input: Any, **more: Any) -> Json:
        """A whole response, which the specification's own schema takes as it is."""
        response = self.create({"model": self.model, "input": input, **more})
        assert document.judge("ResponseResource", response) == []
        return response

    def ask_stream(self, input: Any, **more: Any) -> tuple[list[Json], Json]:
        """A streamed one: every event is one of the specification's, but for raw reasoning in OpenAI's spelling."""
        events, response = self.stream({"model": self.model, "input": input, **more})
        for event in events:
            assert document.judge_event(event) == [], event
        assert document.judge("ResponseResource", response) == []
        return events, response


@contextmanager
def specified(behind: str, setting: str, folder: Path) -> Iterator[Specified]:
    with ExitStack() as stack:
        head = f'[server]\nport = 0\ncompat = "{setting}"\n[store]\nurl = "sqlite:{folder / "s.db"}"\n'
        if behind == "demo":
            toml, model = f'{head}[models]\ndefault = "demo/demo"\n', "demo/demo"
        else:
            answer = _answering(native if behind == "native" else chat)
            upstream = stack.enter_context(ScriptedUpstream.running(default=answer))
            model = "openai/gpt-4o"
            dialect = "responses" if behind == "native" else "chat"
            toml = (
                f'{head}[models]\ndemo = false\ndefault = "{model}"\n[providers.openai]\n'
                f'base_url = "{upstream.base_url}"\napi_key = "sk-upstream"\ndialect = "{dialect}"\n'
            )
        gateway = stack.enter_context(running_gateway_server(toml))
        yield Specified(gateway.url, behind, model, setting)


def _answering(say: Callable[..., Step]) -> Step:
    def answer(request: RecordedRequest) -> Step:
        body: Json = request.json
        choice, tools = body.get("tool_choice", "auto"), body.get("tools") or []
        asked = body.get("messages") or body.get("input") or []
        answered = any(item.get("role") == "tool" or item.get("type") == "function_call_output" for item in asked)
        if tools and choice != "none" and not answered:
            name = tools[0].get("name") or tools[0]["function"]["name"]
            return say(calls=[("call_1", name, {"city": "Paris"})])
        return say("1, 2, 3, 4, 5")

    return answer
