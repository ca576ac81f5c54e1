"""Tools that run here, seen from everywhere: one response with a search, an MCP call and an image, then its trace, the
command line, the page, the figures and the spans."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from typer.testing import CliRunner

from collecting import Collector
from isthmus.cli.commands import app
from isthmus.observe.otel import names
from isthmus.testing import ScriptedUpstream, chat, error, reply
from leaking import assert_silent
from mcp_world import running_server
from serving import running_gateway_process
from talking import Talk
from tracing import TRACES, words
from waiting import until
from watched import scrape_until

Json = dict[str, Any]
MODEL = "deepseek/deepseek-v4-pro"
QUERY, CITY, PROMPT = "where-otters-sleep", "Ventspils", "a-fox-in-the-snow"
TOOLS = [
    {"type": "web_search"},
    {"type": "mcp", "server_label": "world", "require_approval": "never"},
    {"type": "image_generation"},
]
CALLS = [
    ("c1", "web_search", {"query": QUERY}),
    ("c2", "world__weather", {"city": CITY}),
    ("c3", "image_generation", {"prompt": PROMPT}),
]
ASKED = {"model": MODEL, "input": "Look, ask, draw.", "tools": TOOLS}
USED = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
PNG = b64encode(b"\x89PNG\r\n\x1a\n").decode()
KINDS = ["web_search", "mcp", "image_generation"]


@dataclass(frozen=True)
class House:
    talk: Talk
    upstream: ScriptedUpstream
    collector: Collector
    folder: Path

    def ask(self, **more: Any) -> Json:
        answer = self.talk.post("/v1/responses", {**ASKED, **more})
        assert answer.status == 200, answer.body
        made: Json = answer.json
        return made

    def traced(self, id: str) -> Json:
        found = until(lambda: self.talk.get(f"{TRACES}/{id}").json.get("summary"), f"{id} was not traced")
        assert found
        trace: Json = self.talk.get(f"{TRACES}/{id}").json
        return trace

    def run(self, *arguments: str) -> str:
        environment = {"HOME": str(self.folder), "NO_COLOR": "1", "COLUMNS": "140", "PATH": os.environ["PATH"]}
        with chdir(self.folder):
            done = CliRunner().invoke(app, list(arguments), env=environment)
        assert done.exit_code == 0, done.output
        return done.stdout

    def look(self, path: str) -> str:
        answer = self.talk.request("GET", path, headers={"accept": "text/html"})
        assert answer.status == 200, answer.body
        return answer.body.decode()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


@contextmanager
def house(
    folder: Path,
    server: str,
    *steps: Any,
    capture: str = "metadata",
    scrub: str = "",
    search: str = 'backend = "demo"',
    images: str = 'provider = "demo"',
    mcp: str = "",
) -> Iterator[House]:
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream.running(steps))
        collector = stack.enter_context(Collector.running())
        toml = f"""
[models]
demo = false
default = "{MODEL}"
[providers.deepseek]
base_url = "{upstream.base_url}"
api_key = "sk-upstream-secret"
retries = 0
ask = false
[store]
url = "sqlite:{folder / "x.db"}"
[trace]
capture = "{capture}"
scrub = {json.dumps([scrub] if scrub else [])}
[search]
{search}
[images]
{images}
[mcp.world]
url = "{server}"
{mcp}
[otel]
enabled = true
endpoint = "{collector.url}"
"""
        gateway = stack.enter_context(running_gateway_process(toml, folder, log_level="debug"))
        yield House(Talk(gateway.url), upstream, collector, folder)


def three(*, fails: bool = False) -> list[Any]:
    calls = [CALLS[0], ("c2", "world__fail", {}), CALLS[2]] if fails else CALLS
    return [chat(calls=calls, usage=USED), chat("Done.", usage=USED)]


def test_what_ran_is_in_the_trace_by_name_and_time_without_a_word_of_it(tmp_path: Path, server: str) -> None:
    with house(tmp_path, server, *three(fails=True)) as it:
        made = it.ask()
        trace = it.traced(made["id"])
    tools = {tool["kind"]: tool for tool in trace["tools"]}
    assert set(tools) == set(KINDS)
    assert [tools[kind].get("failed", False) for kind in KINDS] == [False, True, False]
    assert [(tools[kind]["name"], tools[kind].get("server", "")) for kind in KINDS] == [
        ("web_search", ""),
        ("fail", "world"),
        ("image_generation", ""),
    ]
    first, second = trace["calls"]
    assert (first["why"], second["why"]) == ("first", "tool")
    for tool in tools.values():
        assert first["at"] < tool["at"]
        assert tool["at"] + tool["seconds"] <= second["at"] + 0.001
        assert tool["output"]["bytes"] > 0
        assert "content" not in tool["arguments"] | tool["output"]
    assert [item["type"] for item in trace["output"]] == [item["type"] for item in made["output"]]
    assert trace["usage"]["input_tokens"] == made["usage"]["input_tokens"] == 200
    assert (trace["summary"]["input_tokens"], trace["summary"]["output_tokens"]) == (200, 40)
    image = next(item["result"] for item in made["output"] if item["type"] == "image_generation_call")
    told = words(trace)
    for word in (QUERY, PROMPT, "burnt down", "demo.example", image[:40], "Done."):
        assert word not in told
    places = [decision["path"] for decision in trace["decisions"]]
    assert {"tools[0]", "tools[1]", "tools[2]"} <= {place[:8] for place in places}


def test_where_all_is_captured_arguments_and_results_are_with_it(tmp_path: Path, server: str) -> None:
    with house(tmp_path, server, *three(), capture="full", scrub=CITY) as it:
        made = it.ask()
        trace = it.traced(made["id"])
    tools = {tool["kind"]: tool for tool in trace["tools"]}
    assert tools["web_search"]["arguments"]["content"] == {"query": QUERY}
    assert "demo.example" in words(tools["web_search"]["output"])
    assert tools["mcp"]["arguments"]["content"] == {"city": "<redacted>"}
    assert tools["mcp"]["output"]["content"] == "It rains in <redacted>."
    assert tools["image_generation"]["arguments"]["content"] == {"prompt": PROMPT}
    assert CITY not in words(trace)
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if ".traces." in path.name)
    assert CITY.encode() not in files


def test_the_command_line_shows_what_ran_and_proves_what_was_sent_first(tmp_path: Path, server: str) -> None:
    with house(tmp_path, server, *three(fails=True)) as it:
        made = it.ask()
        it.traced(made["id"])
        shown = it.run("trace", "show", made["id"])
        assert "Tools that ran here" in shown
        for word in ("web_search", "world.fail", "image_generation", "after a tool was run", "Upstream request 2 of 2"):
            assert word in shown
        told = json.loads(it.run("explain", made["id"], "--json"))
        assert told["body"] == it.upstream.requests[0].json
        assert told["body_origin"] == "proven"
        assert [call["why"] for call in told["calls"]] == ["first", "tool"]
        explained = " ".join(it.run("explain", made["id"], "--body").split())
        assert "planned again: every part has the hash of what was sent" in explained
        exported = it.run("trace", "export")
        assert json.loads(exported.splitlines()[0])["tools"]
        assert QUERY not in exported


def test_the_page_lists_what_ran_and_draws_it_when_it_ran(tmp_path: Path, server: str) -> None:
    with house(tmp_path, server, *three(fails=True)) as it:
        made = it.ask()
        trace = it.traced(made["id"])
        page = it.look(f"/ui/requests/{trace['summary']['id']}")
    way = page.partition("On the way")[2].partition("</ul>")[0]
    assert re.findall(r"<li>(\S+) <code>(.*?)</code>.*?<span class=\"tag (\w+)\"", way) == [
        (tool["kind"], "world.fail" if tool["kind"] == "mcp" else tool["name"], tag)
        for tool in trace["tools"]
        for tag in ["failed" if tool.get("failed") else "completed"]
    ]
    drawn = re.findall(r'<rect class="p-(?:tool|bad)" x="([\d.]+)"[^>]*><title>(.*?):', page)
    assert {name for _, name in drawn} == {"web_search", "world.fail", "image_generation"}
    (asked,) = re.findall(r'<rect class="p-wait" x="([\d.]+)"[^>]*><title>deepseek thinks[^<]*, tool', page)
    assert all(float(x) <= float(asked) for x, _ in drawn)
    assert "got (" in page
    assert ", tool</h3>" in page


def test_figures_and_spans_tell_of_each_tool(tmp_path: Path, server: str) -> None:
    with house(tmp_path, server, *three(fails=True)) as it:
        it.ask()
        numbers = scrape_until(it.talk, lambda found: found["isthmus_http_requests_total", {"door": "responses"}] == 1)
        for kind in KINDS:
            result = "failed" if kind == "mcp" else "completed"
            assert numbers["isthmus_tool_runs_total", {"kind": kind, "result": result}] == 1
            assert numbers["isthmus_tool_seconds_count", {"kind": kind}] == 1
        assert numbers["isthmus_tool_runs_total"] == 3
        assert numbers["isthmus_attempts_total"] == 2
        spans = it.collector.spans(6)
    asked = [span for span in spans if span.kind == "client"]
    (request,) = [span for span in spans if span.kind == "server"]
    first, second = sorted(asked, key=lambda span: span.began)
    assert (first.attributes[names.WHY], second.attributes[names.WHY]) == ("first", "tool")
    assert first.parent == second.parent == request.id
    ran = {span.attributes[names.TOOL_NAME]: span for span in spans if span.kind == "internal"}
    assert set(ran) == set(KINDS)
    assert {name for name, span in ran.items() if span.failed} == {"mcp"}
    for span in ran.values():
        assert span.parent == first.id
        assert first.began <= span.began <= span.ended <= second.began
    assert ran["mcp"].name == "execute_tool mcp"


def test_a_tool_that_is_stopped_with_its_client_is_told_of(tmp_path: Path, server: str) -> None:
    with house(tmp_path, server, chat(calls=[("c1", "world__hang", {})])) as it:
        with it.talk.streaming("/v1/responses", {**ASKED, "stream": True, "store": False}) as stream:
            stream.until("response.mcp_call.in_progress")
            id = stream.headers["x-request-id"]
        trace = it.traced(id)
        numbers = scrape_until(it.talk, lambda found: found["isthmus_tool_runs_total"] == 1)
        assert numbers["isthmus_tool_runs_total", {"kind": "mcp", "result": "cancelled"}] == 1
    (tool,) = trace["tools"]
    assert (tool["name"], tool["failed"], trace["summary"]["outcome"]) == ("hang", True, "cancelled")


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TOKEN, HEADER, OPERATORS = "tok-91b2f7c4e8a35d06", "hdr-55c1a9e27f40b8d3", "opr-0d6e3b98c7f1a245"
SEARCHES, DRAWS, IN_PATH = "srch-3a7d5e90c2b8f146", "draw-8c4f1b6a0e93d257", "path-7e21c9b04d5f8a63"
SECRETS = [TOKEN, HEADER, OPERATORS, SEARCHES, DRAWS, IN_PATH]


@pytest.mark.parametrize("broken", [False, True], ids=["repeated in results", "repeated in errors"])
def test_no_key_of_a_tool_is_anywhere_when_all_is_captured(tmp_path: Path, server: str, broken: bool) -> None:
    """The MCP server repeats what it was shown, and so do the engine and whoever draws, in what they find or say."""
    page = {"url": f"https://x.example/?k={SEARCHES}", "title": SEARCHES, "content": f"key {SEARCHES}"}
    found = error(401, f"not with {SEARCHES}") if broken else reply({"results": [page]})
    drawn = {"data": [{"b64_json": PNG, "revised_prompt": f"a fox with {DRAWS}"}]}
    painted = error(400, f"not with {DRAWS}") if broken else reply(drawn)
    calls = [CALLS[0], ("c2", "world__whoami", {}), CALLS[2], *([] if broken else [("c4", "theirs__whoami", {})])]
    place = server.removeprefix("http://").partition("/")[0]
    away = f"{server.removesuffix('/mcp')}/{IN_PATH}" if broken else server
    with (
        ScriptedUpstream.running(default=found, strict=False) as engine,
        ScriptedUpstream.running(default=painted, strict=False) as painter,
        house(
            tmp_path,
            server,
            chat(calls=calls),
            chat("Done."),
            capture="full",
            search=f'backend = "searxng"\nurl = "{engine.url}"\napi_key = "{SEARCHES}"',
            images=f'url = "{painter.base_url}"\napi_key = "{DRAWS}"\nmodel = "painter"',
            mcp=f'headers = {{ "X-Operator" = "{OPERATORS}" }}\n[mcp.hosts]\nprivate_hosts = ["{place}"]',
        ) as it,
    ):
        shown = {"authorization": TOKEN, "headers": {"X-Team": HEADER}}
        own = {**TOOLS[1], **shown}
        theirs = {**TOOLS[1], **shown, "server_label": "theirs", "server_url": away}
        made = it.ask(tools=[TOOLS[0], own, theirs, TOOLS[2]])
        assert painter.requests[0].headers["authorization"] == f"Bearer {DRAWS}"
        assert SEARCHES in json.dumps(dict(engine.requests[0].headers)) + engine.requests[0].target
        trace = it.traced(made["id"])
        id = trace["summary"]["id"]
        assert trace["summary"]["capture"] == "full"
        failed = {(tool["kind"], tool.get("server", "")): tool.get("failed", False) for tool in trace["tools"]}
        assert failed["mcp", "world"] is False
        assert failed["web_search", ""] is failed["image_generation", ""] is broken
        numbers = scrape_until(it.talk, lambda found: found["isthmus_tool_runs_total"] >= 3)
        assert numbers["isthmus_tool_runs_total", {"kind": "web_search", "result": "failed" if broken else "completed"}]
        places: Json = {
            "answer": json.dumps(made),
            "trace": json.dumps(trace),
            "list": it.talk.get(TRACES).body,
            "shown": it.run("trace", "show", id, "--full"),
            "export": it.run("trace", "export"),
            "explained": it.run("explain", made["id"], "--full"),
            "replay": it.run("trace", "replay", id, "--json"),
            "page": it.look(f"/ui/requests/{id}"),
            "again": it.look(f"/ui/requests/{id}/replay?model={MODEL}"),
            "settings": it.look("/ui/settings"),
            "config": it.run("config", "print"),
            "home": it.look("/ui"),
            "metrics": it.talk.get("/metrics").body,
            "upstream": b"".join(request.body for request in it.upstream.requests),
        }
        it.collector.spans(3)
        spans = it.collector.everything
    kept = [path for path in tmp_path.iterdir() if path.name.startswith("x.") and path.suffix != ".key"]
    assert any(".traces." in path.name for path in kept)
    log = (tmp_path / "gateway.log").read_text()
    assert "tool.ended" in log
    assert_silent(SECRETS, **places, spans=spans, log=log, disk=b"".join(path.read_bytes() for path in kept))
