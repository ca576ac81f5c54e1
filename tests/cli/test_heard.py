"""The commands know what servers said of themselves: from the store, or asked just now."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from isthmus.bridge.types.plan import Lesson
from isthmus.cli.commands import app
from isthmus.ports import StoredWord
from isthmus.providers.word.told import Told, Word, encode_told, place_of
from isthmus.store.open import open_store
from isthmus.testing import ScriptedUpstream, error, reply

LISTED = {"data": [{"id": "tiny", "max_model_len": 8192}]}
PROPS = {"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": False, "audio": False}}
LOOK = {
    "model": "mine/tiny",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}],
        }
    ],
}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream.running(routes={"/v1/models": reply(LISTED), "/props": reply(PROPS)}) as upstream:
        yield upstream


def run(*arguments: str, columns: int = 140) -> Result:
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": str(columns)})
    assert done.exit_code == 0, done.output
    return done


def configure(folder: Path, base_url: str, *, uses: str = "openai-compatible", more: str = "") -> None:
    file = folder / "isthmus.toml"
    file.write_text(
        f'[models]\ndefault = "mine/tiny"\ndemo = false\n[store]\nurl = "sqlite:s.db"\n[providers.mine]\n'
        f'uses = "{uses}"\nbase_url = "{base_url}"\n{more}\n'
    )
    file.chmod(0o600)


def keep(folder: Path, base_url: str, *, ago: float = 0.0, lessons: tuple[Lesson, ...] = ()) -> None:
    """What a gateway would have kept."""
    at = time.time() - ago
    word = Word(context=8192, senses={"image": False})
    data = encode_told(Told(at=at, own=True, models=("tiny",), words={"tiny": word}))

    async def fill() -> None:
        store = open_store(f"sqlite:{folder / 's.db'}")
        await store.hear(StoredWord("mine", place_of(base_url), data, at))
        for lesson in lessons:
            await store.learn(lesson)
        await store.aclose()

    asyncio.run(fill())


def facts(told: Any) -> dict[str, tuple[Any, str]]:
    return {it["path"]: (it["value"], it["from"]) for it in told["facts"]}


NOWHERE = "http://127.0.0.1:9/v1"


def test_show_says_of_each_fact_who_said_it(tmp_path: Path) -> None:
    entry = '[providers.mine.models."tiny"]\nlimits = { output = 512 }'
    configure(tmp_path, NOWHERE, more=entry)
    lesson = Lesson("mine", "tiny", "tool_choice", "required", time.time() - 3 * 86_400 - 60)
    keep(tmp_path, NOWHERE, ago=12 * 60 + 5, lessons=(lesson,))
    told = json.loads(run("providers", "show", "mine", "--model", "tiny", "--json").stdout)
    found = facts(told)
    assert found["limits.context"] == (8192, "server, 12 min ago")
    assert found["messages.input"] == ([], "server, 12 min ago")
    assert found["limits.output"] == (512, 'providers.mine in the configuration [models."tiny".limits]')
    assert found["messages.system"] == ("leading", "openai-compatible.toml [messages]")
    assert found["tools.max"] == (128, "default")
    choices, origin = found["tool_choice.supported"]
    assert (sorted(choices), origin) == (["auto", "function", "none"], "a 400, 3 d ago")
    assert told["server"]["models"] == ["tiny"]
    assert 720 <= told["server"]["age_seconds"] < 900
    assert told["lessons"] == [{"parameter": "tool_choice", "value": "required", "learned_at": int(lesson.learned_at)}]


@pytest.mark.parametrize("columns", [80, 140])
def test_show_can_be_read_at_every_width(tmp_path: Path, columns: int) -> None:
    configure(tmp_path, NOWHERE)
    keep(tmp_path, NOWHERE, ago=12 * 60 + 5)
    done = run("providers", "show", "mine", "--model", "tiny", columns=columns)
    assert max(len(line) for line in done.output.splitlines()) <= columns
    row = next(line for line in done.output.splitlines() if line.strip().startswith("context "))
    assert "8192" in row
    assert row.rstrip().endswith("server, 12 min ago")
    assert "heard 12 min ago" in done.output
    assert "has tiny" in done.output
    assert NOWHERE in done.output
    assert "openai-compatible.toml" in done.output, "no name is broken inside"


def test_show_asks_the_server_when_it_is_told_to(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    configure(tmp_path, upstream.base_url, more='api_key = "sk-1"')
    before = json.loads(run("providers", "show", "mine", "--model", "tiny", "--json").stdout)
    assert (before["server"], upstream.requests, upstream.questions) == (None, [], [])
    told = json.loads(run("providers", "show", "mine", "--model", "tiny", "--ask", "--json").stdout)
    assert facts(told)["limits.context"] == (8192, "server, just now")
    assert facts(told)["messages.input"] == ([], "server, just now")
    assert upstream.requests[0].headers["authorization"] == "Bearer sk-1"


def test_a_server_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    configure(tmp_path, NOWHERE)
    done = CliRunner().invoke(app, ["providers", "show", "mine", "--ask"])
    assert done.exit_code != 0
    assert "cannot be reached" in done.output


def test_another_address_is_another_server(tmp_path: Path) -> None:
    configure(tmp_path, NOWHERE)
    keep(tmp_path, "http://127.0.0.1:8/v1")
    told = json.loads(run("providers", "show", "mine", "--model", "tiny", "--json").stdout)
    assert told["server"] is None


@pytest.mark.parametrize("off", ["ask = false", ""], ids=["ask", "refresh"])
def test_what_is_switched_off_is_not_told(tmp_path: Path, off: str) -> None:
    configure(tmp_path, NOWHERE, more=off)
    if not off:
        file = tmp_path / "isthmus.toml"
        file.write_text(file.read_text().replace("demo = false", "demo = false\nrefresh = 0"))
    keep(tmp_path, NOWHERE)
    assert json.loads(run("providers", "show", "mine", "--json").stdout)["server"] is None


def test_explain_plans_as_the_gateway_would(tmp_path: Path) -> None:
    configure(tmp_path, NOWHERE)
    (tmp_path / "look.json").write_text(json.dumps(LOOK))
    sent = run("explain", "look.json", "--body-only", "--json").stdout
    assert "image_url" in sent
    keep(tmp_path, NOWHERE)
    assert "image_url" not in run("explain", "look.json", "--body-only", "--json").stdout


def catalogue(folder: Path) -> Any:
    run("codex", "setup", "--codex-home", str(folder / "codex"), "--yes")
    (file,) = [path for path in (folder / "codex").iterdir() if path.suffix == ".json"]
    return json.loads(file.read_text())["models"][0]


def test_codex_setup_writes_what_the_server_has(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    configure(tmp_path, upstream.base_url)
    entry = catalogue(tmp_path)
    assert (entry["slug"], entry["context_window"], entry["input_modalities"]) == ("mine/tiny", 8192, ["text"])


def test_codex_setup_does_without_a_server_that_is_down(tmp_path: Path) -> None:
    configure(tmp_path, NOWHERE)
    assert catalogue(tmp_path)["context_window"] == 128_000
    keep(tmp_path, NOWHERE)
    assert catalogue(tmp_path)["context_window"] == 8192


def test_a_vendor_is_not_asked_by_codex_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, "http://model.example/v1")
    monkeypatch.setattr("isthmus.upstream.asking.Asking.ask", lambda _: pytest.fail("it was asked"))
    assert catalogue(tmp_path)["context_window"] == 128_000


def test_a_refusal_is_no_traceback(tmp_path: Path) -> None:
    with ScriptedUpstream.running(routes={"/v1/models": error(401)}) as upstream:
        configure(tmp_path, upstream.base_url)
        done = CliRunner().invoke(app, ["providers", "show", "mine", "--ask"])
    assert done.exit_code != 0
    assert "401" in done.output


@pytest.mark.parametrize("columns", [80, 140])
def test_show_tells_the_facts_of_the_dialect_that_is_spoken(tmp_path: Path, columns: int) -> None:
    configure(tmp_path, NOWHERE, uses="llama-cpp", more='dialect = "responses"')
    keep(tmp_path, NOWHERE, ago=12 * 60 + 5)
    told = json.loads(run("providers", "show", "mine", "--model", "tiny", "--json").stdout)
    assert told["dialect"] == "responses"
    assert facts(told)["response_formats.supported"] == (["text"], "default")
    assert facts(told)["reply.tells_length"] == (False, "llama-cpp.toml [responses]")
    assert facts(told)["messages.input"] == ([], "server, 12 min ago")
    chat = json.loads(run("providers", "show", "mine", "--model", "tiny", "--dialect", "chat", "--json").stdout)
    assert chat["dialect"] == "chat"
    assert "json_schema" in facts(chat)["response_formats.supported"][0]
    shown = run("providers", "show", "mine", "--model", "tiny", columns=columns).output
    assert "spoken to in Responses" in shown
    assert max(len(line) for line in shown.splitlines()) <= columns


def test_show_plans_and_lists_alike(tmp_path: Path) -> None:
    """The planner, the page for programs and Codex's catalogue have one answer."""
    configure(tmp_path, NOWHERE, uses="llama-cpp", more='dialect = "messages"')
    told = json.loads(run("providers", "show", "mine", "--model", "tiny", "--json").stdout)
    assert facts(told)["reasoning.effort"][0] == "none"
    assert catalogue(tmp_path)["supported_reasoning_levels"] == []
    body = {"model": "mine/tiny", "input": "hi", "reasoning": {"effort": "low"}}
    (tmp_path / "think.json").write_text(json.dumps(body))
    explained = json.loads(run("explain", "think.json", "--json").stdout)
    assert "low" not in json.dumps(explained["body"])


@pytest.mark.parametrize(
    ("dialect", "words"),
    [("mess", "there is no dialect `mess`; there is `chat`"), ("messages", "no Messages endpoint that we know of")],
)
def test_a_dialect_that_is_not_spoken_is_said_so(dialect: str, words: str) -> None:
    done = CliRunner().invoke(app, ["providers", "show", "groq", "--dialect", dialect])
    assert done.exit_code != 0
    assert words in " ".join(done.output.split())
