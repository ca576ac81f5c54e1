"""Recorded-style answers of real providers, through the whole gateway: whole, streamed, byte by byte, with more behind.

What a client must see of each stands in the table, in the words of `seen`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import reply, stream

Json = dict[str, Any]

FOLDER = Path(__file__).parent.parent / "recordings"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and list(path.glob("*.jsonl")))
WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
SEARCH: Json = {"type": "web_search"}
GENOA = ("function_call", "get_weather", {"city": "Genoa"})
KIEL = ("function_call", "get_weather", {"city": "Kiel"})
WALK = [("reasoning", "Walk it."), ("message", "Half an hour.")]


class Scene:
    """What is asked, and what a client must see. `usage`: input, cached, output, reasoning tokens."""

    def __init__(
        self,
        model: str,
        output: list[Any],
        usage: tuple[int, ...],
        *tools: Json,
        status: str = "completed",
        code: str = "",
    ) -> None:
        self.body: Json = {"model": model, "input": "Go", "reasoning": {"effort": "high"}, "tools": list(tools)}
        self.seen = {"status": status, "code": code, "output": output, "usage": usage}


DEEPSEEK, GLM, MINIMAX, MIMO = "deepseek-v4-pro", "glm-5.2", "MiniMax-M3", "mimo-v2.5-pro"
D_USED, Z_USED, M_USED, X_USED = (1184, 1024, 61, 38), (342, 256, 47, 0), (186, 128, 47, 21), (97, 64, 52, 30)
BRIDGE = "The bridge is 2 km long, so at 4 km/h it takes half an hour."
OPENED = ("message", "It opened on Monday.")
NEWS = "https://news.example/bridge"

SCENES: dict[str, Scene] = {
    "deepseek/thinking": Scene(DEEPSEEK, [("reasoning", BRIDGE), ("message", "About 30 minutes.")], D_USED),
    "deepseek/tools": Scene(DEEPSEEK, [("reasoning", "Two cities, two calls."), GENOA, KIEL], D_USED, WEATHER),
    "deepseek/overloaded": Scene(
        DEEPSEEK, [("message", "The answer begins")], (12, 0, 3, 0), status="failed", code="server_is_overloaded"
    ),
    "deepseek/leaked_call": Scene(DEEPSEEK, [("message", "I will look."), GENOA], D_USED, WEATHER),
    "zhipu/thinking": Scene(GLM, [("reasoning", "用户问桥的长度。"), ("message", "这座桥长两公里。")], Z_USED),
    "zhipu/tools": Scene(GLM, [("reasoning", "One look is enough."), ("message", "\n"), GENOA], Z_USED, WEATHER),
    "zhipu/web_search": Scene(GLM, [OPENED, ("web_search_call", [NEWS, "https://facts.example/b"])], Z_USED, SEARCH),
    "zhipu/sensitive": Scene(GLM, [("message", "Well")], Z_USED, status="incomplete", code="content_filter"),
    "minimax/thinking": Scene(
        MINIMAX, [("reasoning", "Two kilometres on foot."), ("message", "Half an hour.")], M_USED
    ),
    "minimax/tools": Scene(MINIMAX, [("reasoning", "Ask for it."), ("message", "\n"), GENOA], M_USED, WEATHER),
    "minimax/think_tags": Scene(MINIMAX, [("reasoning", "\nShort one.\n"), ("message", "Yes.")], M_USED),
    "minimax/no_balance": Scene(MINIMAX, [], (), status="failed", code="insufficient_quota"),
    "xiaomi/thinking": Scene(
        MIMO, [("reasoning", "Two kilometres, four an hour."), ("message", "Half an hour.")], X_USED
    ),
    "xiaomi/tools": Scene(MIMO, [("reasoning", "Look it up."), GENOA], X_USED, WEATHER),
    "xiaomi/web_search": Scene(MIMO, [(*OPENED, NEWS), ("web_search_call", [NEWS])], X_USED, SEARCH),
    "xiaomi/repetition": Scene(
        MIMO, [("message", "again again again")], X_USED, status="incomplete", code="max_output_tokens"
    ),
    "kimi/tools": Scene("kimi-k2.6", [("reasoning", "I need the weather."), GENOA], (88, 80, 19, 0), WEATHER),
    "qwen/thinking": Scene("qwen3.7-plus", WALK, (40, 16, 33, 20)),
    "mistral/thinking": Scene(
        "magistral-medium-latest", [("reasoning", "Two kilometres."), ("message", "Half an hour.")], (21, 0, 30, 0)
    ),
    "mistral/tools": Scene("magistral-medium-latest", [GENOA], (21, 0, 30, 0), WEATHER),
    "mistral/model_length": Scene(
        "mistral-large-latest",
        [("message", "Once upon")],
        (21, 0, 30, 0),
        status="incomplete",
        code="max_output_tokens",
    ),
    "groq/thinking": Scene("openai/gpt-oss-120b", WALK, (77, 64, 25, 12)),
    "openrouter/tools": Scene(
        "anthropic/claude-sonnet-4.6", [("reasoning", "I should look."), GENOA], (310, 256, 44, 18), WEATHER
    ),
    "openrouter/error_midway": Scene(
        "anthropic/claude-sonnet-4.6", [("message", "It ")], (), status="failed", code="rate_limit_exceeded"
    ),
    # The thought signature travels in a reasoning item of its own.
    "gemini/tools": Scene("gemini-3-pro-preview", [GENOA, KIEL, ("reasoning", "")], (55, 0, 86, 0), WEATHER),
    "together/thinking": Scene("zai-org/GLM-5.2", WALK, (33, 0, 22, 0)),
    "ollama/tools": Scene("gpt-oss:20b", [("reasoning", "Both cities."), GENOA, KIEL], (130, 0, 48, 0), WEATHER),
    "vllm/thinking": Scene("Qwen/Qwen3-32B", WALK, (19, 0, 31, 0)),
    "llama-cpp/thinking": Scene("some-model", WALK, (44, 32, 17, 0)),
}


@pytest.fixture(scope="module")
def _vendors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("recordings"), dict.fromkeys(NAMES, "dialect = 'chat'")) as house:
        yield house


@pytest.fixture
def flow(_vendors: Flow) -> Iterator[Flow]:
    with lent(_vendors) as mine:
        yield mine


def test_every_recording_is_played() -> None:
    found = {str(path.relative_to(FOLDER).with_suffix("")) for name in NAMES for path in FOLDER.glob(f"{name}/*.json*")}
    assert found == set(SCENES)


@pytest.mark.parametrize("name", [name for name in SCENES if (FOLDER / f"{name}.json").exists()])
def test_a_whole_reply_is_seen_by_the_client(flow: Flow, name: str) -> None:
    flow.script(reply((FOLDER / f"{name}.json").read_bytes()))
    asked = flow.post("/v1/responses", body_of(name))
    if asked.status != 200:  # a failure without a word of answer keeps an HTTP status
        assert asked.error["code"] == SCENES[name].seen["code"]
        return
    whole, expected = seen(asked.json), dict(SCENES[name].seen)
    for view in (whole, expected):  # a whole reply tells its calls before its words
        view["output"] = sorted(view["output"], key=repr)
    assert whole == expected


MANNERS: dict[str, Json] = {"in one piece": {}, "byte by byte": {"slice": 1}, "in odd pieces": {"slice": 37}}


@pytest.mark.parametrize("manner", MANNERS.values(), ids=list(MANNERS))
@pytest.mark.parametrize("name", SCENES)
def test_a_stream_is_seen_by_the_client(flow: Flow, name: str, manner: Json) -> None:
    flow.script(stream(frames(name), **manner))
    _, response = flow.stream(body_of(name))
    assert seen(response) == SCENES[name].seen


@pytest.mark.parametrize("name", SCENES)
def test_more_behind_the_end_changes_nothing(flow: Flow, name: str) -> None:
    behind = b'data: {"choices":[{"index":0,"delta":{"content":"ghost"}}]}\n\n: bye\n\n'
    flow.script(stream([*frames(name), b"data: [DONE]\r\n\r\n", behind]))
    _, response = flow.stream(body_of(name))
    assert seen(response) == SCENES[name].seen


@pytest.mark.parametrize("name", [name for name in SCENES if SCENES[name].seen["status"] == "completed"])
def test_a_stream_without_done_or_its_last_line_break_is_whole_all_the_same(flow: Flow, name: str) -> None:
    data = b"".join(frames(name)).rstrip(b"\n")
    flow.script(stream([data], done=False))
    _, response = flow.stream(body_of(name))
    assert seen(response) == SCENES[name].seen


def body_of(name: str) -> Json:
    provider, _, _ = name.partition("/")
    body = SCENES[name].body
    return {**body, "model": f"{provider}/{body['model']}"}


def frames(name: str) -> list[bytes]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [f"{line}\n\n".encode() if line.startswith(":") else f"data: {line}\n\n".encode() for line in lines]


def seen(response: Json) -> Json:
    """A response in short: what was said and done, how it ended, what it cost."""
    usage = response["usage"]
    tokens = () if usage is None or not usage["total_tokens"] else (
        usage["input_tokens"],
        usage["input_tokens_details"]["cached_tokens"],
        usage["output_tokens"],
        usage["output_tokens_details"]["reasoning_tokens"],
    )  # fmt: skip
    code = (response["error"] or {}).get("code") or (response["incomplete_details"] or {}).get("reason") or ""
    return {
        "status": response["status"],
        "code": code,
        "output": [_item(item) for item in response["output"]],
        "usage": tokens,
    }


def _item(item: Json) -> tuple[Any, ...]:
    match item["type"]:
        case "reasoning":
            return "reasoning", "".join(part["text"] for part in [*item["summary"], *item.get("content", ())])
        case "message":
            cited = [note["url"] for part in item["content"] for note in part.get("annotations", ())]
            return "message", "".join(part["text"] for part in item["content"]), *cited
        case "function_call":
            return "function_call", item["name"], json.loads(item["arguments"])
        case "web_search_call":
            return "web_search_call", [source["url"] for source in item["action"]["sources"]]
    return (item["type"],)


# What must go back


def test_reasoning_that_minimax_streamed_in_pieces_goes_back_whole(flow: Flow) -> None:
    flow.script(stream(frames("minimax/tools")), reply((FOLDER / "minimax/thinking.json").read_bytes()))
    _, first = flow.stream(body_of("minimax/tools"))
    _answer(flow, "minimax/tools", first)
    details = flow.sent[1]["messages"][1]["reasoning_details"]
    assert [detail["text"] for detail in details] == ["Ask for it."]
    assert details[0]["format"] == "MiniMax-response-v1"


def test_a_signature_that_openrouter_streamed_last_goes_back_with_its_text(flow: Flow) -> None:
    flow.script(stream(frames("openrouter/tools")), reply((FOLDER / "openrouter/tools.json").read_bytes()))
    _, first = flow.stream(body_of("openrouter/tools"))
    _answer(flow, "openrouter/tools", first)
    whole = json.loads((FOLDER / "openrouter/tools.json").read_bytes())["choices"][0]["message"]
    assert flow.sent[1]["messages"][1]["reasoning_details"] == whole["reasoning_details"]


def _answer(flow: Flow, name: str, first: Json) -> None:
    call = next(item for item in first["output"] if item["type"] == "function_call")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    flow.create({**body_of(name), "input": [output], "previous_response_id": first["id"]})
