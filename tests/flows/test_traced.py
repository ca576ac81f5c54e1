"""Why a request was shaped as it was, asked afterwards: requests through every door of a real gateway, then the command
line beside it, held against the bytes that the providers got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from claude_requests import recorded
from isthmus.cli.commands import app
from isthmus.testing import ScriptedUpstream, chat, error
from serving import running_gateway_process
from speaking_messages import claude, said
from speaking_responses import native
from talking import ANTHROPIC, Talk
from waiting import until

Json = dict[str, Any]
CHAT, MESSAGES, NATIVE = "deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5", "openai/gpt-5.6"
STEPS: Final[dict[str, Callable[[], Any]]] = {
    CHAT: lambda: chat("Hello"),
    MESSAGES: lambda: claude(said("Hello")),
    NATIVE: lambda: native("Hello"),
}
DOORS = ("responses", "chat", "messages")
TOOLS = [
    {"type": "function", "name": name, "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
    for name in ("read", "write", "run")
]


@dataclass(frozen=True)
class House:
    """A gateway process, the providers behind it, and the command line beside it."""

    url: str
    talk: Talk
    upstream: ScriptedUpstream
    folder: Path

    @property
    def config(self) -> str:
        return str(self.folder / "isthmus.toml")

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.folder), "NO_COLOR": "1", "COLUMNS": "140", "PATH": os.environ["PATH"]}

    def run(self, *arguments: str, code: int = 0) -> str:
        """A command in this process; what it prints."""
        done = CliRunner().invoke(app, list(arguments), env=self.environment)
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.output

    def trace(self, *arguments: str, code: int = 0) -> str:
        return self.run("trace", *arguments, "--config", self.config, code=code)

    def explain(self, *arguments: str, code: int = 0) -> str:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return self.run("explain", *arguments, code=code)
        finally:
            os.chdir(before)

    def listed(self, count: int, *options: str) -> list[Json]:
        """So many traces, newest first, once they are written."""

        def found() -> list[Json]:
            arguments = ["trace", "list", "--json", "-n", "1000", *options, "--config", self.config]
            done = CliRunner().invoke(app, arguments, env=self.environment)
            if done.exit_code:
                assert "there are no traces at" in done.output, done.output
                return []
            traces: list[Json] = json.loads(done.stdout)["traces"]
            return traces if len(traces) >= count else []

        return until(found, f"there were never {count} traces")

    def ask(self, door: str, model: str, text: str = "Hi", **fields: Any) -> Json:
        """One request through a door; gives the answer."""
        self.upstream.push(STEPS[model]())
        match door:
            case "responses":
                reply = self.talk.post("/v1/responses", {"model": model, "input": text, **fields})
            case "chat":
                body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
                reply = self.talk.post("/v1/chat/completions", body)
            case _:
                body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **fields}
                reply = self.talk.post("/v1/messages", body, headers=ANTHROPIC)
        assert reply.status == 200, reply.body
        answer: Json = reply.json
        return answer


@contextmanager
def running_house(folder: Path, capture: str = "full", extra: str = "") -> Iterator[House]:
    with ScriptedUpstream.running() as upstream:
        providers = "".join(
            f"[providers.{name}]\nbase_url = {base!r}\napi_key = 'sk-upstream-secret'\nretries = 0\nask = false\n"
            for name, base in (
                ("deepseek", upstream.base_url),
                ("anthropic", upstream.base_url),
                ("openai", upstream.base_url),
                ("zhipu", upstream.base_url),
            )
        )
        toml = (
            f'[models]\ndemo = false\ndefault = "{CHAT}"\n{providers}[store]\nurl = "sqlite:{folder / "x.db"}"\n'
            f'[trace]\ncapture = "{capture}"\n{extra}'
        )
        with running_gateway_process(toml, folder) as gateway:
            yield House(gateway.url, Talk(gateway.url), upstream, folder)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with running_house(tmp_path) as made:
        yield made


# ── what was really sent ─────────────────────────────────────────────────────────────────────────────────────────────


def test_what_explain_shows_is_what_the_upstream_got_through_every_door_in_every_dialect(house: House) -> None:
    asked = [(door, model) for door in DOORS for model in (CHAT, MESSAGES, NATIVE)]
    for door, model in asked:
        house.ask(door, model, f"{door} to {model}")
    traces = house.listed(len(asked))[::-1]
    assert [(trace["door"], f"{trace['provider']}/{trace['model']}") for trace in traces] == asked
    for trace, request in zip(traces, house.upstream.requests, strict=True):
        for id in (trace["id"], trace["response"]):
            assert house.explain(id, "--body-only", "--json").encode() == request.body + b"\n"
        told = json.loads(house.explain(trace["id"], "--json"))
        assert told["body"] == request.json
        assert told["body_origin"] == "sent"
        assert told["decisions"]
        shown = house.explain(trace["id"], "--body")
        assert "Decisions" in shown
        assert "as it was sent" in shown or "Upstream body" in shown


@pytest.mark.parametrize("door", DOORS)
def test_explain_says_what_the_client_was_told_at_every_door(house: House, door: str) -> None:
    """None of these fields has a counterpart at this provider."""
    fields: Json = {"responses": {"seed": 7}, "chat": {"logit_bias": {"50256": -100}}, "messages": {"top_k": 5}}[door]
    answer = house.ask(door, CHAT, **fields)
    told = json.loads(house.explain(house.listed(1)[0]["id"], "--json"))
    assert told["diagnostics"]
    assert told["diagnostics"] == json.loads(house.trace("show", "last", "--json"))["diagnostics"]
    if door != "messages":  # a client of Messages is told in a header alone
        assert [(each["path"], each["action"]) for each in answer["isthmus"]["diagnostics"]] == [
            (each["path"], each["action"]) for each in told["diagnostics"]
        ]
    shown = " ".join(house.explain("last").split())
    for each in told["diagnostics"]:
        assert each["path"] in shown
        assert each["message"].replace("`", "") in shown


def test_a_stream_is_explained_and_proven_like_any_other(tmp_path: Path) -> None:
    with running_house(tmp_path, "metadata") as house:
        house.upstream.push(chat("Hello"))
        asked = {"model": CHAT, "input": "Hi", "stream": True, "reasoning": {"effort": "high"}}
        _, response = house.talk.stream(asked)
        house.listed(1)
        told = json.loads(house.explain(response["id"], "--json"))
        assert (told["body_origin"], told["body"]) == ("proven", house.upstream.requests[0].json)
        assert told["body"]["stream"] is True
        assert "streamed" in house.trace("show", "last")


@pytest.mark.parametrize("model", [CHAT, MESSAGES, NATIVE])
def test_without_contents_a_stored_response_is_planned_again_and_proven_by_its_hashes(
    tmp_path: Path, model: str
) -> None:
    with running_house(tmp_path, "metadata") as house:
        first = house.ask("responses", model, instructions="Be brief.", tools=TOOLS, tool_choice="auto")
        then = house.ask("responses", model, "And now?", previous_response_id=first["id"], temperature=0.3)
        house.listed(2)
        for answer, request in zip((first, then), house.upstream.requests, strict=True):
            told = json.loads(house.explain(answer["id"], "--json"))
            assert (told["body_origin"], told["body"]) == ("proven", request.json)
            assert house.explain(answer["id"], "--body-only", "--json").encode() == request.body + b"\n"
        shown = house.trace("show", first["id"])
        assert "sizes and hashes;" in " ".join(shown.split())
        assert "Be brief." not in shown


def test_a_response_without_a_trace_is_explained_as_it_would_be_planned_today(tmp_path: Path) -> None:
    with running_house(tmp_path, "off") as house:
        answer = house.ask("responses", CHAT, instructions="Be brief.", seed=7)
        told = json.loads(house.explain(answer["id"], "--json"))
        assert (told["body_origin"], told["body"]) == ("planned", house.upstream.requests[0].json)
        assert "this is what would be decided today" in house.explain(answer["id"])
        assert "nothing is kept of `resp_nobody1`" in house.explain("resp_nobody1", code=1)
        said_off = " ".join(house.trace("list", code=1).split())
        assert "they are switched off here" in said_off


# ── list, show, tail, export ─────────────────────────────────────────────────────────────────────────────────────────


def test_failures_refusals_and_filters(house: House) -> None:
    house.ask("responses", CHAT, seed=7)
    house.upstream.push(error(500, "broken"))
    assert (
        house.talk.post("/v1/chat/completions", {"model": CHAT, "messages": [{"role": "user", "content": "x"}]}).status
        == 502
    )
    assert house.talk.post("/v1/responses", {"model": CHAT, "input": 5}).status == 400
    house.listed(3)
    failed = house.listed(2, "--errors")
    assert [(trace["door"], trace["outcome"], trace["status"]) for trace in failed] == [
        ("responses", "refused", 400),
        ("chat", "refused", 502),
    ]
    assert len(house.listed(1, "--status", "completed")) == 1
    assert len(house.listed(1, "--decision", "seed")) == 1
    shown = " ".join(house.trace("show", failed[1]["id"]).split())
    assert "broken" in shown
    exported = [json.loads(line) for line in house.trace("export").splitlines()]
    assert [line["summary"]["status"] for line in exported] == [200, 502, 400]
    assert exported[0]["calls"][0]["body"]["content"] == house.upstream.requests[0].json


def test_tail_tells_of_each_request_as_it_ends(house: House) -> None:
    house.ask("responses", CHAT, "before")
    house.listed(1)
    command = [sys.executable, "-c", "from isthmus.cli.main import main; main()", "trace", "tail", "--json", "-n", "1"]
    with subprocess.Popen(
        [*command, "--config", house.config], stdout=subprocess.PIPE, text=True, env=house.environment
    ) as process:
        assert process.stdout is not None
        try:
            first = json.loads(process.stdout.readline())
            house.ask("chat", NATIVE, "after")
            second = json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(60)
    assert [(line["door"], line["provider"]) for line in (first, second)] == [
        ("responses", "deepseek"),
        ("chat", "openai"),
    ]


# ── replay ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("door", DOORS)
def test_a_replay_plans_for_another_provider_and_sends_only_when_told_to(house: House, door: str) -> None:
    house.ask(door, CHAT, "What is it?", temperature=0.4)
    id = house.listed(1)[0]["id"]
    planned = json.loads(house.trace("replay", id, "--provider", "anthropic", "--json"))
    assert len(house.upstream.requests) == 1, "nothing was sent"
    assert planned["before"]["body"] == house.upstream.requests[0].json
    house.upstream.push(claude(said("Something else")))
    sent = json.loads(house.trace("replay", id, "--provider", "anthropic", "--send", "--json"))
    assert house.upstream.requests[1].path == "/v1/messages"
    assert house.upstream.requests[1].json == sent["after"]["body"] == planned["after"]["body"]
    assert sent["response"]["output"][0]["content"][0]["text"] == "Something else"
    (deed,) = map(json.loads, house.run("audit", "--json", "--config", house.config).splitlines())
    assert (deed["actor"], deed["action"], deed["target"]) == ("cli", "trace.replay", id)
    assert deed["details"]["provider"] == "anthropic"
    house.upstream.push(claude(said("Something else")))
    shown = house.trace("replay", id, "-p", "anthropic", "--send")
    assert "Hello" in shown
    assert "Something else" in shown


def test_a_replay_without_contents_goes_by_the_stored_response(tmp_path: Path) -> None:
    with running_house(tmp_path, "metadata") as house:
        kept = house.ask("responses", CHAT, instructions="Be brief.")
        lost = house.ask("responses", CHAT, store=False)
        house.listed(2)
        found = json.loads(house.trace("replay", kept["id"], "-p", "zhipu", "--json"))
        assert found["request"] == "made again from the stored response"
        assert (found["before"]["origin"], found["before"]["body"]) == ("proven", house.upstream.requests[0].json)
        missing = " ".join(house.trace("replay", lost["id"], "-p", "zhipu", code=1).split())
        assert "no response of it is stored" in missing
        assert 'trace.capture = "full"' in missing


# ── the cache doctor ─────────────────────────────────────────────────────────────────────────────────────────────────


def add_tool(body: Json) -> None:
    body["tools"] = [*body["tools"], {"type": "function", "name": "search", "parameters": {"type": "object"}}]


def tell_the_time(body: Json) -> None:
    body["instructions"] = body["instructions"].replace("09:41", "09:42")


def swap_items(body: Json) -> None:
    body["input"][1:5] = [*body["input"][3:5], *body["input"][1:3]]


SESSIONS = [
    (CHAT, add_tool, "tools[3]", "added", "search"),
    (CHAT, tell_the_time, "messages[0]", "changed", "system"),
    (CHAT, swap_items, "messages[2]", "reordered", "assistant"),
    (MESSAGES, add_tool, "tools[3]", "added", "search"),
    (MESSAGES, tell_the_time, "system[0]", "changed", "text"),
    (NATIVE, tell_the_time, "input[0]", "changed", "system"),
]


def play(house: House, model: str, change: Callable[[Json], None] | None, turns: int = 10) -> list[Json]:
    """An agent's session: in every turn a call and its result are added, in the sixth something is changed."""
    body: Json = {"instructions": "You are an agent. It is 09:41.", "tools": list(TOOLS), "prompt_cache_key": "agent"}
    items: list[Json] = [{"role": "user", "content": "Fix the tests, please."}]
    answers: list[Json] = []
    for turn in range(1, turns + 1):
        if turn > 1:
            call = {"call_id": f"call_{turn}", "name": "read", "arguments": f'{{"path":"{turn}"}}'}
            items += [
                {"type": "function_call", **call},
                {"type": "function_call_output", "call_id": f"call_{turn}", "output": f"result {turn}"},
            ]
        body["input"] = list(items)
        if change is not None and turn >= 6:
            if turn == 6:
                change(body)
            items = list(body["input"])
        spent, cached = 2000 + 1000 * turn, 0 if turn in (1, 6) else 1000 + 1000 * turn
        if model == CHAT:
            usage = {"prompt_tokens": spent, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}}
            house.upstream.push(chat("ok", usage={**usage, "total_tokens": spent + 5}))
        else:
            house.upstream.push(STEPS[model]())
        reply = house.talk.post("/v1/responses", {"model": model, **body})
        assert reply.status == 200, reply.body
        answers.append(reply.json)
    return answers


@pytest.mark.parametrize(("model", "change", "path", "kind", "what"), SESSIONS)
def test_the_doctor_names_what_the_sixth_turn_changed(
    tmp_path: Path, model: str, change: Callable[[Json], None], path: str, kind: str, what: str
) -> None:
    with running_house(tmp_path, "metadata") as house:
        answers = play(house, model, change)
        house.listed(10)
        found = json.loads(house.trace("cache", answers[3]["id"], "--json"))
    assert [turn["id"] for turn in found["turns"]] == [answer["id"] for answer in answers]
    broken = [(index, turn["broken"]) for index, turn in enumerate(found["turns"], 1) if turn["broken"]]
    assert [index for index, _ in broken] == [6]
    assert (broken[0][1]["path"], broken[0][1]["change"], broken[0][1]["what"]) == (path, kind, what)
    assert {turn["kept"] for turn in found["turns"] if turn["against"] and not turn["broken"]} == {1.0}
    if model == CHAT:
        assert [turn["verdict"] for turn in found["turns"]] == ["first", *["hit"] * 4, "broken", *["hit"] * 4]
        sixth = found["turns"][5]
        assert (sixth["input_tokens"], sixth["cached_tokens"], sixth["could_be_cached"]) == (8000, 0, 7000)
        assert sixth["lost"] == pytest.approx(sixth["cost"] - sixth["cost_with_hit"])
        assert found["lost"] == pytest.approx(sixth["lost"])


def test_the_doctor_shows_the_words_where_contents_were_kept(house: House) -> None:
    answers = play(house, CHAT, tell_the_time)
    house.listed(10)
    found = json.loads(house.trace("cache", answers[0]["id"], "--json"))
    assert found["turns"][5]["inside"] == {
        "path": "messages[0].content",
        "before": "…an agent. It is 09:41.",
        "after": "…an agent. It is 09:42.",
    }
    shown = " ".join(house.trace("cache", answers[0]["id"]).split())
    assert "10, 1 break in the prefix" in shown
    assert "messages[0] (system) was changed" in shown
    listed = json.loads(house.trace("cache", "--json"))["conversations"]
    assert [(len(each["turns"]), each["breaks"]) for each in listed] == [(10, 1)]


# ── a gateway at an address ──────────────────────────────────────────────────────────────────────────────────────────


def test_over_http_the_same_is_told_as_by_the_file(house: House) -> None:
    answers = play(house, CHAT, add_tool)
    ids = [trace["id"] for trace in house.listed(10)]
    at = ("--gateway", house.url)
    for command in (
        ["list", "--json", "-n", "7"],
        ["list", "--json", "--decision", "ignored"],
        ["list", "--json", "--conversation", answers[2]["id"]],
        ["show", ids[0], "--json"],
        ["show", answers[0]["id"]],
        ["export"],
        ["cache", "last", "--json"],
        ["cache", "--json"],
        ["replay", ids[0], "-p", "zhipu", "--json"],
    ):
        assert house.trace(*command, *at) == house.trace(*command), command
    body = house.explain(answers[0]["id"], "--body-only", "--json", *at)
    assert body.encode() == house.upstream.requests[0].body + b"\n"


def test_over_http_a_replay_is_sent_by_that_gateway(house: House) -> None:
    house.ask("responses", CHAT, "What is it?")
    house.listed(1)
    house.upstream.push(chat("Something else"))
    sent = house.trace("replay", "last", "-p", "zhipu", "--send", "--json", "--gateway", house.url)
    assert json.loads(sent)["response"]["output_text"] == "Something else"
    assert house.upstream.requests[1].json["model"] == "glm-5.2"
    assert [trace["provider"] for trace in house.listed(2)] == ["zhipu", "deepseek"]


def test_contents_are_kept_for_a_while_and_only_when_the_operator_says_so(tmp_path: Path) -> None:
    keys = '[server]\nport = 0\napi_keys = ["sk-anybody-0001"]\nadmin_key = "sk-operator-0001"\n'
    with running_house(tmp_path, "metadata", keys) as house:
        at, admin = ("--gateway", house.url), ("--key", "sk-operator-0001")
        headers = {"authorization": "Bearer sk-anybody-0001"}

        def ask(text: str) -> str:
            house.upstream.push(chat("Hello"))
            return str(house.talk.post("/v1/responses", {"model": CHAT, "input": text}, headers=headers).json["id"])

        before = ask("a secret of before")
        refused = house.run("trace", "capture", "10m", *at, "--key", "sk-anybody-0001", code=1)
        assert "for operators" in " ".join(refused.split())
        assert "not known here" in " ".join(house.run("trace", "list", *at, "--key", "sk-nobody", code=1).split())
        until_when = json.loads(house.run("trace", "capture", "10m", *at, *admin, "--json"))
        assert until_when["full_until"] > 0
        during = ask("the words of now")
        house.run("trace", "capture", "0", *at, *admin)
        after = ask("a secret of after")
        shown = [house.run("trace", "show", id, *at, *admin) for id in (before, during, after)]
    assert ["the words of now" in text for text in shown] == [False, True, False]
    assert not any("a secret" in text for text in shown)


def test_where_no_gateway_runs_its_address_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["trace", "list", "--gateway", "http://127.0.0.1:1"], env={"HOME": str(tmp_path)})
    assert done.exit_code == 1
    assert "does a gateway run at `http://127.0.0.1:1`?" in " ".join(done.output.split())


# ── deleted ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_a_deleted_response_only_figures_are_shown_and_nothing_is_replayed(house: House) -> None:
    answer = house.ask("responses", CHAT, "words that must go", instructions="Be brief.")
    id = house.listed(1)[0]["id"]
    assert "words that must go" in house.trace("show", id)
    assert house.talk.delete(f"/v1/responses/{answer['id']}").status == 200
    until(lambda: json.loads(house.trace("show", id, "--json"))["summary"].get("deleted"), "it was never forgotten")
    shown = " ".join(house.trace("show", id).split())
    assert "its response was deleted" in shown
    assert "words that must go" not in shown
    assert "was deleted, and its contents with it" in " ".join(house.trace("replay", id, "-p", "zhipu", code=1).split())
    assert "words that must go" not in house.trace("export")


@pytest.mark.parametrize("way", ["chain", "conversation", "session", "opening"])
def test_turns_belong_together_however_the_client_says_so(tmp_path: Path, way: str) -> None:
    with running_house(tmp_path, "metadata") as house:
        said_so_far: list[Json] = []
        fields: Json = {}
        if way == "conversation":
            fields["conversation"] = house.talk.post("/v1/conversations", {}).json["id"]
        answers: list[Json] = []
        for turn in range(3):
            said_so_far.append({"role": "user", "content": f"turn {turn}"})
            if way == "opening":
                answer = house.ask("chat", CHAT, messages=list(said_so_far))
                said_so_far.append({"role": "assistant", "content": "Hello"})
            elif way == "session":
                answer = house.ask("responses", CHAT, input=list(said_so_far), prompt_cache_key="mine", store=False)
                said_so_far.append({"role": "assistant", "content": "Hello"})
            else:
                answer = house.ask("responses", CHAT, f"turn {turn}", **fields)
                if way == "chain":
                    fields["previous_response_id"] = answer["id"]
            answers.append(answer)
        house.ask("responses", CHAT, "somebody else's")
        traces = [trace for trace in house.listed(4 + (way == "conversation")) if "door" in trace]
        found = json.loads(house.trace("cache", traces[-1]["id"], "--json"))
        listed = json.loads(house.trace("list", "--conversation", traces[1]["id"], "--json"))["traces"]
    assert [turn["against"] is None for turn in found["turns"]] == [True, False, False]
    assert [(turn["kept"], turn["broken"]) for turn in found["turns"][1:]] == [(1.0, None)] * 2
    assert [trace["id"] for trace in listed] == [trace["id"] for trace in traces[1:]]


@pytest.mark.parametrize("model", [MESSAGES, CHAT])
def test_a_session_of_claude_code_keeps_its_prefix_although_its_marks_move(tmp_path: Path, model: str) -> None:
    seen = recorded("tool-turns")
    said_so_far = [message for message in seen.body["messages"] if message["role"] != "system"]
    helper = recorded("subagent").body
    # Texts of recordings are filler; a helper's own system prompt is another one.
    helper = {**helper, "system": [{"type": "text", "text": "You are a helper."}]}
    with running_house(tmp_path, "metadata") as house:
        for count in (1, 3, 5, 7):
            *before, last = said_so_far[:count]
            *parts, end = last["content"]
            marked = {**last, "content": [*parts, {**end, "cache_control": {"type": "ephemeral"}}]}
            for body in ({**seen.body, "messages": [*before, marked]}, helper):  # its helpers ask beside it
                house.upstream.push(STEPS[model]())
                asked = {**body, "model": model, "stream": False}
                reply = house.talk.post("/v1/messages?beta=true", asked, headers=dict(seen.headers))
                assert reply.status == 200, reply.body
        first = house.listed(8)[-1]
        found = json.loads(house.trace("cache", first["id"], "--json"))
    ids = [turn["id"] for turn in found["turns"]]
    assert [turn["against"] for turn in found["turns"]] == [None, None, *ids[:6]], "each is compared with its own"
    assert [(turn["kept"], turn["broken"]) for turn in found["turns"][2:]] == [(1.0, None)] * 6
    assert first["client"] == "claude-code"
