"""`isthmus explain`, as a shell sees it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from isthmus.bridge.doors.chat.read import receive_chat_request
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.managed import Listing, Ran
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.cli.commands import app
from isthmus.conduct.hosted import Hosted
from isthmus.gateway.attempts import HONOURED
from isthmus.providers import load_provider, provider_names
from isthmus.providers.dialects import capabilities_for
from isthmus.testing import ScriptedTool

EXAMPLES = Path(__file__).parents[2] / "examples"
RESPONSES = ("codex.json", "structured.json", "tools.json", "images.json")
WIDTHS = (80, 120, 200)
FEW = ("deepseek", "zhipu", "mistral", "gemini", "openai", "openai-compatible")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def run(*arguments: str, columns: int = 120, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], env={"COLUMNS": str(columns)}, input=stdin)


def example(name: str) -> str:
    return str(EXAMPLES / name)


def plan_of(name: str, provider: str, model: str = "") -> Plan:
    facts = load_provider(provider)
    raw = (EXAMPLES / name).read_bytes()
    request = receive_chat_request(raw).request if name == "chat.json" else parse_request(raw)
    model = model or facts.default_model or str(request.body.get("model"))
    return plan_request(request, Target(facts.name, model, capabilities_for(facts, model)), Host(HONOURED))


def unwrapped(output: str) -> str:
    """What is on the screen, without the breaks that the width made."""
    return re.sub(r"\s+", "", output)


def write(folder: Path, body: Mapping[str, Any]) -> str:
    path = folder / "request.json"
    path.write_text(json.dumps(body))
    return str(path)


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", RESPONSES)
def test_every_decision_of_the_plan_is_on_the_screen(name: str, columns: int) -> None:
    done = run(example(name), "--provider", "deepseek", columns=columns)
    assert done.exit_code == 0, done.output
    lines = done.output.split("\nUpstream body")[0].splitlines()
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
    first_words = unwrapped(" ".join(cell[0] for cell in cells if cell)) + unwrapped(" ".join(lines))
    for decision in plan_of(name, "deepseek").decisions:
        assert unwrapped(decision.path) in first_words
        assert decision.action in done.output


def test_the_reason_and_the_value_of_a_decision_stand_beside_it() -> None:
    done = run(example("codex.json"), "-p", "deepseek", columns=200)
    row = next(line for line in done.output.splitlines() if line.strip().startswith("reasoning.effort"))
    assert "~ degraded" in row
    assert "the provider takes low, high, max; medium is sent as high" in row
    assert "thinking.type = enabled" in row
    assert "reasoning_effort = high" in done.output


@pytest.mark.parametrize("columns", WIDTHS)
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    for arguments in (["-p", "deepseek"], ["--all"]):
        done = run(example("codex.json"), *arguments, columns=columns)
        assert max(len(line) for line in done.output.splitlines()) <= columns


def test_tools_show_both_names_their_fate_and_what_is_held_back() -> None:
    done = run(example("tools.json"), "-p", "zhipu", columns=200)
    rows = {line.split()[0]: line for line in done.output.splitlines() if line.strip().startswith("tools[")}
    assert re.search(r"ferries / next_boat\s+~ degraded\s+→ ferries__next_boat", rows["tools[0].tools[0]"])
    assert re.search(r"custom\s+announce\s+~ degraded\s+→ announce \(function\)", rows["tools[2]"])
    assert "held back by tool_choice" in rows["tools[3]"]
    assert "6 offered" in done.output


def test_the_search_engine_of_the_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "isthmus.toml").write_text('[search]\nbackend = "searxng"\nurl = "http://127.0.0.1:9"\n')
    file = tmp_path / "request.json"
    tool = {"type": "web_search", "user_location": {"type": "approximate", "country": "DE"}}
    file.write_text(json.dumps({"input": "hi", "tools": [tool]}))
    done = run(str(file), "-p", "deepseek", columns=240)
    assert "runs here (searxng)" in done.output
    assert "cannot be taken into account" in " ".join(done.output.split())


def test_tools_that_run_here_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ask = {"name": "ask", "input_schema": {"type": "object", "properties": {}}}
    docs, late = Listing((ask,), asks=frozenset({"ask"})), Listing(later=True)
    tools = [
        ScriptedTool("web_search", Ran(""), search="searxng"),
        ScriptedTool("mcp", Ran(""), mcp={"docs": docs, "late": late}),
    ]
    monkeypatch.setattr("isthmus.cli.foreseen.open_hosted", lambda *_: Hosted(tools))
    servers = [{"type": "mcp", "server_label": label} for label in ("docs", "late")]
    offered = [{"type": "web_search_preview"}, *servers, {"type": "image_generation"}]
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"input": "hi", "tools": offered}))
    done = run(str(file), "-p", "deepseek", columns=200)
    rows = {line.split()[0]: line for line in done.output.splitlines() if line.strip().startswith("tools[")}
    assert re.search(r"web_search_preview\s+✓ supported\s+→ web_search \(function\)\s+runs here", rows["tools[0]"])
    assert re.search(r"docs / ask\s+✓ supported\s+→ docs__ask \(function\)\s+runs here", rows["tools[1].tools[0]"])
    assert "approves" in rows["tools[1].tools[0]"]
    assert "listed when the request is made" in rows["tools[2]"]
    assert "ignored" in rows["tools[3]"]
    told = json.loads(run(str(file), "-p", "deepseek", "--json").output)["tools"]
    assert [(it["name"], it["runs_here"], it["sent"]) for it in told] == [
        ("web_search_preview", True, True),
        ("ask", True, True),
        ("late", False, False),
        ("image_generation", False, False),
    ]


def test_hooks_of_the_configuration_are_asked_and_named(tmp_path: Path) -> None:
    (tmp_path / "isthmus.toml").write_text(
        f'[hooks]\nuses = ["redact.py:Redact", "guard.py:Guard"]\nfolder = "{EXAMPLES}/hooks"\n'
    )
    asked = json.dumps({"input": "write to ann@example.org"})
    shown = json.loads(run("-", "--provider", "deepseek", "--json", stdin=asked).stdout)
    assert shown["body"]["messages"][0]["content"] == "write to <email-1>"
    told = [(said["code"], said["path"], said["metadata"]["hook"]) for said in shown["diagnostics"]]
    assert told == [("bridge.hook.changed", "upstream.messages[0].content", "redact.py:Redact")]
    assert "redact.py:Redact" in run("-", "--provider", "deepseek", stdin=asked).stdout
    refused = run("-", "--provider", "deepseek", stdin=json.dumps({"input": "Project Heron"}))
    assert refused.exit_code == 2
    assert "refusedbythehook`guard.py:Guard`" in unwrapped(refused.output)


def test_a_contract_says_how_it_is_kept() -> None:
    done = run(example("structured.json"), "-p", "zhipu")
    assert "json_schema crew_report, strict" in done.output
    assert "Your final answer must be JSON that conforms to the JSON Schema below." in done.output
    assert "against the schema, and binding" in done.output
    native = run(example("structured.json"), "-p", "openai")
    assert "native: the provider enforces it" in native.output
    assert "instruction   " not in native.output
    assert "none: the answer is plain text" in run(example("codex.json"), "-p", "openai").output


def test_long_strings_are_cut_with_a_note_and_shown_whole_when_asked() -> None:
    cut = run(example("codex.json"), "-p", "deepseek", "--body")
    assert re.search(r"\d+ long strings cut", cut.output)
    assert "…+" in cut.output
    full = run(example("codex.json"), "-p", "deepseek", "--full")
    assert "…+" not in full.output
    shown, _, summary = full.output[full.output.index("\n{\n") :].partition("\nIn short")
    assert json.loads(shown) == plan_of("codex.json", "deepseek").body
    assert summary.splitlines()[-1].split()[0] == "upstream", "what it comes to stands last"


def test_the_body_only_comes_when_it_is_asked_for() -> None:
    brief = run(example("codex.json"), "-p", "deepseek").output
    assert "Upstream body" not in brief
    assert len(brief.splitlines()) < 150
    assert brief.rstrip().splitlines()[-1].split()[0] == "upstream"


def test_the_model_that_is_planned_for_is_named_beside_the_one_that_was_asked_for() -> None:
    done = run(example("codex.json"), "-p", "deepseek")
    assert "deepseek-v4-pro   the request says gpt-5.5" in done.output
    assert "model       other" in run(example("codex.json"), "-p", "deepseek", "-m", "other").output


def test_a_terminal_gets_no_control_characters_of_the_request(tmp_path: Path) -> None:
    tool = {"type": "function", "name": "a\x1b[31mb", "parameters": {"type": "object", "properties": {}}}
    body = {"model": "m\x1b[2J", "input": "\x1b]0;title\x07 \x9b31m", "tools": [tool], "x\x1b": 1}
    for flags in (["-p", "deepseek"], ["-p", "deepseek", "--full"], ["--all"], ["-p", "deepseek", "--strict"]):
        done = run(write(tmp_path, body), *flags)
        assert done.exit_code in (0, 2), done.output
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.output)


# ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", FEW)
@pytest.mark.parametrize("name", RESPONSES)
def test_json_holds_the_whole_plan(name: str, provider: str) -> None:
    done = run(example(name), "--provider", provider, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    plan = plan_of(name, provider, told["model"])
    assert told["provider"] == provider
    assert told["body"] == plan.body
    assert [(it["path"], it["action"], it["reason"]) for it in told["decisions"]] == [
        (it.path, it.action, it.reason) for it in plan.decisions
    ]
    assert told["diagnostics"] == json.loads(json.dumps([it.to_json() for it in plan.diagnostics]))
    assert [it["provider_name"] for it in told["tools"] if it["sent"]] == [
        it.identity.provider_name for it in plan.tools.declarations if it.identity is not None
    ]
    assert told["contract"]["mode"] == plan.contract.mode
    assert told["contract"]["validated"] == (plan.contract.mode != "none")


def test_body_only_is_the_body_and_nothing_else() -> None:
    plan = plan_of("codex.json", "deepseek")
    pretty = run(example("codex.json"), "-p", "deepseek", "--body-only")
    assert json.loads(pretty.stdout) == plan.body
    dense = run(example("codex.json"), "-p", "deepseek", "--body-only", "--json")
    assert json.loads(dense.stdout) == plan.body
    assert len(dense.stdout.splitlines()) == 1


def test_a_chat_request_is_explained_in_its_own_words() -> None:
    done = run(example("chat.json"), "--chat", "-p", "deepseek", "--json")
    told = json.loads(done.stdout)
    assert told["body"] == plan_of("chat.json", "deepseek").body
    paths = {it["path"] for it in told["decisions"]}
    assert {"messages", "max_completion_tokens", "reasoning_effort"} <= paths
    assert not paths & {"input", "max_output_tokens", "reasoning.effort"}


def test_standard_input_and_recorded_requests_are_read(tmp_path: Path) -> None:
    body = json.loads((EXAMPLES / "tools.json").read_text())
    told = json.loads(run(example("tools.json"), "-p", "kimi", "--json").stdout)
    piped = run("-", "-p", "kimi", "--json", stdin=json.dumps(body))
    wrapped = run(write(tmp_path, {"method": "POST", "body": body}), "-p", "kimi", "--json")
    assert json.loads(piped.stdout) == json.loads(wrapped.stdout) == told


@pytest.mark.parametrize(
    ("model", "flags", "expected"),
    [
        ("gpt-5.5", ["-p", "deepseek"], ("deepseek", "deepseek-v4-pro")),
        ("deepseek-flash", ["-p", "deepseek"], ("deepseek", "deepseek-flash")),
        ("deepseek/deepseek-flash", [], ("deepseek", "deepseek-flash")),
        ("glm/glm-5", ["-p", "glm"], ("zhipu", "glm-5")),
        ("deepseek/deepseek-flash", ["-p", "zhipu"], ("zhipu", "glm-5.2")),
        ("gpt-5.5", ["-p", "deepseek", "-m", "x"], ("deepseek", "x")),
        ("qwen3:8b", ["-p", "vllm"], ("vllm", "qwen3:8b")),
    ],
    ids=["default", "known", "reference", "alias", "other provider", "told", "no default"],
)
def test_the_model_is_found(tmp_path: Path, model: str, flags: list[str], expected: tuple[str, str]) -> None:
    done = run(write(tmp_path, {"model": model, "input": "hi"}), *flags, "--json")
    told = json.loads(done.stdout)
    assert (told["provider"], told["model"], told["body"]["model"]) == (*expected, expected[1])


# ── refusals and errors ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_refused_request_shows_what_rejects_it_and_leaves_with_two() -> None:
    done = run(example("images.json"), "-p", "zhipu", "--strict")
    assert done.exit_code == 2
    assert "✗ Refused" in done.output
    assert "strictmoderefuseswhatwouldbedegraded" in unwrapped(done.output)
    assert "Upstream body" not in done.output
    told = run(example("images.json"), "-p", "zhipu", "--strict", "--json")
    assert told.exit_code == 2
    shown = json.loads(told.stdout)
    assert shown["body"] is None
    assert shown["refused"]["code"] == "bridge.request.unsupported_parameter"
    rejected = [it["path"] for it in shown["decisions"] if it["action"] == "rejected"]
    assert rejected == ["input[0].content[1]", "input[0].content[2]", "input[0].content[3]", "input[2].output[1]"]


def test_a_refused_body_leaves_stdout_empty() -> None:
    done = run(example("images.json"), "-p", "zhipu", "--strict", "--body-only")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "✗ Refused" in done.stderr


@pytest.mark.parametrize("inside", [False, True])
def test_too_many_tools_are_a_refusal_too_and_the_other_fields_are_told_beside_it(tmp_path: Path, inside: bool) -> None:
    tools = [{"type": "function", "name": f"tool{n}"} for n in range(200)]
    given = [{"type": "namespace", "name": "box", "tools": tools}] if inside else tools
    done = run(write(tmp_path, {"input": "hi", "temperature": 9, "tools": given}), "-p", "deepseek")
    assert done.exit_code == 2
    assert "200 tools for a provider that takes 128" in done.output
    assert "9 is sent as 2" in done.output


def test_a_request_that_nobody_takes_is_refused_before_a_provider_is_asked(tmp_path: Path) -> None:
    done = run(write(tmp_path, {"input": [{"type": "function_call"}]}), "-p", "deepseek", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["refused"]["param"] == "input[0].call_id"
    assert done.stderr.startswith("error: the request is refused, whatever the provider: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no request; name a JSON file"),
        (["missing.json", "-p", "deepseek"], "`missing.json` cannot be read"),
        (["codex.json"], "no provider; add `--provider NAME`"),
        (["codex.json", "-p", "depseek"], "did you mean `deepseek`?"),
        (["broken.json", "-p", "deepseek"], "`broken.json`: the request body is not valid JSON"),
        (["list.json", "-p", "deepseek"], "does not hold a JSON object"),
        (["codex.json", "--all", "--folder", "nowhere"], "`--folder nowhere` is not a folder"),
    ],
)
def test_an_error_is_one_line_with_the_next_step(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "codex.json").write_bytes((EXAMPLES / "codex.json").read_bytes())
    (tmp_path / "broken.json").write_text('{"input": ')
    (tmp_path / "list.json").write_text("[]")
    done = run(*arguments)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_request_in_the_other_language_is_recognised() -> None:
    done = run(example("chat.json"), "-p", "deepseek")
    assert done.exit_code == 2
    assert "add `--chat`" in done.stderr


# ── comparison ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_compares_every_provider_with_its_own_plan() -> None:
    told = json.loads(run(example("codex.json"), "--all", "--json").stdout)
    assert [it["provider"] for it in told["providers"]] == provider_names()
    rows = {row["name"]: row["fates"] for row in told["rows"]}
    for column in told["providers"]:
        name = column["provider"]
        plan = plan_of("codex.json", name, column["model"])
        for decision in plan.decisions:
            tool = decision.metadata.get("tool")
            if tool is None and decision.path in rows:
                assert rows[decision.path][name]["action"] == decision.action
        native = "custom" in plan.target.capabilities.tools.native
        assert rows["tool custom apply_patch"][name]["action"] == ("supported" if native else "degraded")
        assert sum(column["counts"].values()) == len(plan.decisions)


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_comparison_names_every_provider_and_every_fate(columns: int) -> None:
    done = run(example("codex.json"), "--all", columns=columns)
    assert done.exit_code == 0
    assert all(name in done.output for name in provider_names())
    assert "✓ supported   model, instructions, input" in done.output
    assert all(sign in done.output for sign in ("✓ supported", "~ degraded", "– ignored"))


def test_the_comparison_is_split_into_as_many_tables_as_the_width_asks_for() -> None:
    tables = [run(example("codex.json"), "--all", columns=w).output.count("Where they differ") for w in (80, 120, 900)]
    assert tables[0] > tables[1] > tables[2] == 1


def test_a_full_comparison_has_a_row_for_everything() -> None:
    told = json.loads(run(example("codex.json"), "--all", "--json").stdout)
    done = run(example("codex.json"), "--all", "--full", columns=400)
    labels = {re.split(r"\s{3,}", line.strip())[0] for line in done.output.splitlines()}
    assert {row["name"] for row in told["rows"]} <= labels


def test_refused_columns_say_so() -> None:
    done = run(example("images.json"), "--all", "--strict")
    assert done.exit_code == 0
    assert "✗ refused" in done.output
    assert "✗ rejected" in done.output


def test_list_shows_the_providers() -> None:
    done = run("--list")
    assert done.exit_code == 0
    assert all(name in done.output for name in provider_names())


# ── as a process ─────────────────────────────────────────────────────────────────────────────────────────────────────


def process(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "COLUMNS": "100", **environ}
    return subprocess.run(
        [sys.executable, "-c", "from isthmus.cli.main import main; main()", *arguments],
        env=kept,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_pipe_gets_no_colour_and_no_talk() -> None:
    done = process("explain", example("codex.json"), "-p", "deepseek", TERM="xterm-256color")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_a_process_tells_errors_on_stderr_without_a_traceback() -> None:
    done = process("explain", "missing.json", "-p", "deepseek")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert process("explain", example("images.json"), "-p", "zhipu", "--strict").returncode == 2


def test_json_is_utf8_wherever_it_goes() -> None:
    done = process("explain", example("chat.json"), "--chat", "-p", "deepseek", "--json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Bodø" in json.loads(done.stdout)["body"]["messages"][1]["content"]


def test_a_poor_terminal_still_gets_the_table() -> None:
    done = process("explain", example("chat.json"), "--chat", "-p", "deepseek", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "? supported" in done.stdout


@pytest.mark.parametrize(
    "how", [(), ("--full",), ("--json",), ("--body-only",), ("--body-only", "--json")], ids=" ".join
)
@pytest.mark.parametrize("provider", ["openai", "deepseek"])
def test_the_credentials_of_an_mcp_server_are_not_shown(tmp_path: Path, provider: str, how: tuple[str, ...]) -> None:
    tool = {
        "type": "mcp",
        "server_label": "files",
        "server_url": "https://joe:hush-1@mcp.example/hush-2?k=hush-3",
        "authorization": "hush-4",
        "headers": {"X-Key": "hush-5"},
    }
    (tmp_path / "asked.json").write_text(json.dumps({"model": "m", "input": "Hi", "tools": [tool]}))
    shown = run("asked.json", "--provider", provider, *how, columns=200)
    assert shown.exit_code == 0, shown.output
    assert "hush" not in unwrapped(shown.output)


def test_the_limits_of_the_configuration_are_those_of_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "isthmus.toml").write_text("[limits]\nmax_items = 1\n")
    said = json.dumps({"input": [{"role": "user", "content": "hi"}] * 2})
    shown = run("-", "-p", "deepseek", stdin=said)
    assert shown.exit_code != 0
    assert "`limits.max_items`" in shown.stderr
    (tmp_path / "isthmus.toml").write_text("[limits]\nmax_items = 2\n")
    assert run("-", "-p", "deepseek", stdin=said).exit_code == 0


def test_a_model_behind_messages_says_its_dialect_and_shows_blocks(tmp_path: Path) -> None:
    items = [
        {"role": "user", "content": "Look."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"n":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "blue"},
    ]
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    body = {"model": "m", "instructions": "Be kind.", "input": items, "tools": [tool]}
    shown = run(write(tmp_path, body), "--provider", "anthropic", columns=160).output
    assert re.search(r"dialect\s+messages", shown)
    for words in ("Be kind.", 'look({"n": 1})', "[c1] blue"):
        assert words in shown, words


def test_a_request_of_claude_code_is_explained_in_its_own_words() -> None:
    folder = Path(__file__).parents[1] / "recordings" / "claude-code"
    done = run(str(folder / "tool-search-mcp.json"), "--messages", "-p", "deepseek", "--json")
    told = json.loads(done.stdout)
    paths = [it["path"] for it in told["decisions"]]
    assert {"messages", "max_tokens", "output_config.effort", "system[0]", "metadata.user_id", "thinking"} <= set(paths)
    assert not {"input", "max_output_tokens", "reasoning.effort"} & set(paths)
    assert "tools[12]" in paths  # the placeholder, which is not sent
    assert [tool["path"] for tool in told["tools"]][-1] == "tools[13]"
    refused = run(str(folder / "web-search-side-call.json"), "--messages", "-p", "deepseek", "--json")
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["refused"]["param"] == "tools[0]"
    shown = run(str(folder / "web-search-side-call.json"), "--messages", "-p", "deepseek")
    assert "tools[0]" in shown.stdout


def test_a_request_is_written_for_one_api() -> None:
    done = run(example("chat.json"), "--messages", "--chat", "-p", "deepseek")
    assert done.exit_code == 1
    assert "--messages" in done.stderr
    hint = run(example("chat.json"), "-p", "deepseek")
    assert "wants `--messages`" in hint.stderr


@pytest.mark.parametrize("images", ['provider = "demo"', 'url = "http://127.0.0.1:1/v1"\nmodel = "flux"'])
def test_a_plan_says_who_would_draw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, images: str) -> None:
    config = tmp_path / "isthmus.toml"
    config.write_text(f'[store]\nurl = "memory:"\n[images]\n{images}\n')
    config.chmod(0o600)
    monkeypatch.setenv("ISTHMUS_CONFIG", str(config))
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"input": "hi", "tools": [{"type": "image_generation"}]}))
    done = run(str(file), "-p", "deepseek", columns=200)
    who = "demo/demo-image" if "demo" in images else "images/flux"
    assert f"runs here ({who})" in done.output
