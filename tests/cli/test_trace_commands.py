"""`isthmus trace`: what a person sees of traces in a real file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.ports.traced import Trace, TracedError, TraceSummary
from isthmus.store.open import open_traces
from postgres import database_of
from traced import keep_in
from traced_plans import NOW, keep, traced

SAID = {"model": "deepseek/deepseek-v4-pro", "input": "Hi", "user": "me", "temperature": 1.9, "seed": 5}
WIDTHS = (80, 110, 140, 200)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def ask(*arguments: str, columns: int = 140, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["trace", *arguments], env={"NO_COLOR": "1", "COLUMNS": str(columns)})
    assert done.exit_code == code, done.output
    return done


def refused(index: int) -> Trace:
    told = TraceSummary(
        id=f"req_{index:024x}",
        at=NOW + index,
        ended_at=NOW + index,
        outcome="refused",
        code="invalid_api_key",
        status=401,
    )
    return Trace(summary=told, error=TracedError("invalid_api_key", "this API key is not known here"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Five requests: three of one conversation, one at another provider that failed, one that was refused."""
    turns = [{**SAID, "input": [{"role": "user", "content": f"turn {n}"} for n in range(index)]} for index in (1, 2, 3)]
    failed = traced(
        4, SAID, provider="zhipu", full=False, outcome="failed", code="upstream_timeout", thread="thread_2", door="chat"
    )
    made = [traced(index, body) for index, body in enumerate(turns, 1)]
    return keep(tmp_path / "x.db", *made, failed, refused(5))


def test_traces_on_a_server_are_read_there(tmp_path: Path) -> None:
    url = database_of(tmp_path)
    opened = open_traces(url)
    keep_in(opened, [traced(1, SAID), refused(2)])
    opened.close()
    assert f"req_{2:024x}" in ask("list", "--store", url, columns=200).stdout


def ids(done: Result) -> list[str]:
    return [line["id"][-1] for line in json.loads(done.stdout)["traces"]]


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


# ── list ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_list_is_newest_first_and_its_ids_can_be_copied_at_every_width(store: str, columns: int) -> None:
    lines = ask("list", "--store", store, columns=columns).stdout.splitlines()
    assert [found[0][-1] for line in lines if (found := re.findall(r"req_\w{24}", line))] == ["5", "4", "3", "2", "1"]
    assert all(len(line) <= columns for line in lines)


def test_a_wide_list_says_what_it_cost_and_what_was_changed(store: str) -> None:
    row = next(line for line in ask("list", "--store", store).stdout.splitlines() if line.count("0003"))
    assert {"3,000", "2,000", "1.5", "✓", "completed"} <= set(row.split())
    assert re.search(r"–\d", row)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], "54321"),
        (["--provider", "zhipu"], "4"),
        (["--model", "deepseek/deepseek-v4-pro"], "321"),
        (["--model", "deepseek-v4-pro"], "321"),
        (["--status", "completed"], "321"),
        (["--status", "refused"], "5"),
        (["--errors"], "54"),
        (["--door", "chat"], "4"),
        (["--conversation", "thread_1"], "321"),
        (["--conversation", f"resp_{2:032x}"], "321"),
        (["--decision", "ignored"], "4321"),
        (["--decision", "seed", "--provider", "deepseek"], "321"),
        (["--decision", "input"], ""),
        (["--since", "1h"], "54321"),
        (["--since", "5s"], ""),
        (["--since", "2000-01-01"], "54321"),
        (["-n", "2"], "54"),
        (["--errors", "-n", "1"], "5"),
    ],
    ids=" ".join,
)
def test_a_filter_finds_what_it_names(store: str, options: list[str], found: str) -> None:
    assert ids(ask("list", "--store", store, "--json", *options)) == list(found)


def test_more_than_were_asked_for_is_said(store: str) -> None:
    done = ask("list", "--store", store, "-n", "2")
    assert "there are more; `--most 10`" in done.stderr
    assert json.loads(ask("list", "--store", store, "-n", "2", "--json").stdout)["has_more"] is True
    assert json.loads(ask("list", "--store", store, "--errors", "-n", "1", "--json").stdout)["has_more"] is True


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--status", "done"], "`completed`, `incomplete`"), (["--since", "soon"], "how long ago (`15m`, `2h`)")],
)
def test_a_filter_that_nobody_understands_says_what_is_understood(store: str, options: list[str], words: str) -> None:
    assert words in flat(ask("list", "--store", store, *options, code=1).output)


def test_nothing_that_fits_is_said_and_is_no_error(store: str) -> None:
    done = ask("list", "--store", store, "--provider", "nobody")
    assert (done.stdout, "no request was traced that fits" in done.stderr) == ("", True)
    assert json.loads(ask("list", "--store", store, "--provider", "nobody", "--json").stdout) == {
        "traces": [],
        "has_more": False,
    }


def test_where_there_are_no_traces_the_reason_is_told_and_none_are_made(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/gone.db"
    said = flat(ask("list", "--store", url, code=1).output)
    assert f"there are no traces at `{tmp_path}/gone.traces.db`" in said
    assert "no gateway has answered a request on this store yet" in said
    assert "--gateway" in flat(ask("list", "--store", "memory:", code=1).output)
    off = tmp_path / "off.toml"
    off.write_text(f'[store]\nurl = "{url}"\n[trace]\ncapture = "off"\n')
    assert 'set `trace.capture = "metadata"`' in flat(ask("list", "--config", str(off), code=1).output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["off.toml"]


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("id", [f"req_{3:024x}", f"resp_{3:032x}"])
def test_every_decision_is_shown_with_its_reason(store: str, id: str, columns: int) -> None:
    said = re.sub(r"\s+", "", ask("show", id, "--store", store, columns=columns).stdout)
    whole = json.loads(ask("show", id, "--store", store, "--json").stdout)
    assert len(whole["decisions"]) > 4
    for decision in whole["decisions"]:
        assert decision["action"] in said
        assert re.sub(r"\s+", "", decision["path"]) in said


def test_the_last_one_that_went_to_a_model_needs_no_id(store: str) -> None:
    assert json.loads(ask("show", "last", "--store", store, "--json").stdout)["summary"]["id"][-1] == "4"


def test_both_sides_are_shown_by_their_fields_or_whole(store: str) -> None:
    shown = ask("show", f"req_{3:024x}", "--store", store).stdout
    assert "the client sent" in shown
    assert "sent upstream" in shown
    assert "input[2]" in shown
    assert "messages[2]" in shown
    assert '"turn 2"' not in shown
    assert '"turn 2"' in ask("show", f"req_{3:024x}", "--store", store, "--body").stdout
    bare = ask("show", f"req_{4:024x}", "--store", store).stdout
    assert "sizes and hashes;" in flat(bare)
    assert '"Hi"' not in bare
    assert re.search(r"messages\[0\] +user +\d+", bare)


def test_a_refusal_is_shown_with_its_words(store: str) -> None:
    shown = flat(ask("show", f"req_{5:024x}", "--store", store).stdout)
    assert "this API key is not known here" in shown
    assert "nobody was asked" in shown


def test_what_is_not_there_is_told(store: str) -> None:
    assert "no request `req_nobody` was traced here" in flat(ask("show", "req_nobody", "--store", store, code=1).output)


def test_what_somebody_wrote_cannot_paint_the_terminal(tmp_path: Path) -> None:
    store = keep(
        tmp_path / "x.db", traced(1, {**SAID, "input": "\x1b[31mred\x07", "user": "\x9b2J"}, client="\x1b]0;x\x07")
    )
    for command in (["list"], ["show", f"req_{1:024x}"], ["show", f"req_{1:024x}", "--full"]):
        shown = ask(*command, "--store", store).stdout
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


# ── export ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_export_has_one_whole_trace_per_line_oldest_first(store: str, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert "exported 5 traces" in ask("export", "--store", store, "-o", str(target)).stderr
    lines = [msgspec.json.decode(line, type=Trace) for line in target.read_bytes().splitlines()]
    assert [line.summary.id[-1] for line in lines] == list("12345")
    assert msgspec.json.decode(lines[2].calls[0].body.content)["messages"][-1]["content"] == "turn 2"
    errors = ask("export", "--store", store, "--errors", "--json").stdout.splitlines()
    assert [json.loads(line)["summary"]["id"][-1] for line in errors] == list("45")


# ── the cache doctor ─────────────────────────────────────────────────────────────────────────────────────────────────


def session(*, full: bool, prices: str = "deepseek") -> list[Trace]:
    """Three turns; the second one tells another time."""

    def body(index: int) -> dict[str, Any]:
        said = [{"role": "user", "content": f"turn {n}"} for n in range(index)]
        return {**SAID, "instructions": f"You are an agent. It is 09:4{int(index > 1)}.", "input": said}

    return [traced(index, body(index), provider=prices, full=full) for index in (1, 2, 3)]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("full", [True, False], ids=["full", "metadata"])
def test_the_doctor_names_the_first_difference(tmp_path: Path, full: bool, columns: int) -> None:
    store = keep(tmp_path / "x.db", *session(full=full))
    shown = ask("cache", f"resp_{2:032x}", "--store", store, columns=columns).stdout
    assert all(len(line) <= columns for line in shown.splitlines())
    said = flat(shown)
    assert "3, 1 break in the prefix" in said
    assert "messages[0] (system) was changed" in said
    assert "a time, a date or an id" in said
    assert ("It is 09:41." in said) == full


def test_the_doctors_figures_are_those_of_the_provider_and_its_prices(tmp_path: Path) -> None:
    found = json.loads(
        ask("cache", f"req_{1:024x}", "--store", keep(tmp_path / "x.db", *session(full=False)), "--json").stdout
    )
    assert [turn["verdict"] for turn in found["turns"]] == ["first", "broken", "hit"]
    assert [turn["cached_tokens"] for turn in found["turns"]] == [0, 1000, 2000]
    assert found["turns"][1]["could_be_cached"] == 1000
    assert found["cost"] > 0
    assert found["turns"][1]["broken"]["path"] == "messages[0]"


def test_without_an_id_all_conversations_are_listed(tmp_path: Path) -> None:
    alone = traced(9, SAID, thread="thread_9")
    store = keep(tmp_path / "x.db", *session(full=False), alone)
    found = json.loads(ask("cache", "--store", store, "--json").stdout)["conversations"]
    assert [(each["conversation"], len(each["turns"]), each["breaks"]) for each in found] == [("thread_1", 3, 1)]
    row = next(line for line in ask("cache", "--store", store, columns=80).stdout.splitlines() if "resp_" in line)
    assert row.split()[1:3] == ["3", "1"]
    only = keep(tmp_path / "y.db", alone)
    assert "no conversation with more than one turn" in ask("cache", "--store", only).stderr


# ── replay ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_replay_shows_where_two_plans_part(store: str) -> None:
    found = json.loads(ask("replay", f"req_{1:024x}", "--provider", "anthropic", "--store", store, "--json").stdout)
    assert [found["before"]["provider"], found["after"]["provider"]] == ["deepseek", "anthropic"]
    assert found["before"]["origin"] == "sent"
    paths = {change["path"]: change["kind"] for change in found["differences"]["decisions"]}
    assert "temperature" in paths
    fields = {difference["path"] for difference in found["differences"]["body"]}
    assert {"model", "max_tokens"} & fields
    shown = ask("replay", f"req_{1:024x}", "-p", "anthropic", "--store", store, columns=80).stdout
    assert "temperature" in shown


def test_a_replay_for_the_same_provider_finds_nothing(store: str) -> None:
    found = json.loads(ask("replay", f"req_{1:024x}", "--store", store, "--json").stdout)
    assert found["differences"]["body"] == []


def test_a_replay_of_what_was_not_kept_says_what_is_missing_and_how_to_keep_it(store: str) -> None:
    said = flat(ask("replay", f"req_{4:024x}", "-p", "deepseek", "--store", store, code=1).output)
    assert "its trace holds no contents, and no response of it is stored" in said
    assert 'trace.capture = "full"' in said
    assert "was refused before there was a request" in flat(
        ask("replay", f"req_{5:024x}", "--store", store, code=1).output
    )


def test_a_provider_that_would_refuse_it_is_exit_code_two(store: str) -> None:
    done = ask("replay", f"req_{1:024x}", "-p", "anthropic", "--strict", "--store", store, code=2)
    assert "✗ Refused" in done.stdout
