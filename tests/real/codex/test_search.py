"""The real Codex searches the web on chat models: by its own search (`/v1/alpha/search`), and by `web_search`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.changes import carry_out
from isthmus.cli.codex_keys import CATALOGUE, Settings
from isthmus.cli.codex_setup import plan_setup
from isthmus.providers.catalog import known_models
from isthmus.providers.codex_catalog import codex_catalogue
from isthmus.testing import ScriptedUpstream, chat, error
from real.codex.rig import CLASSIC, DEEPSEEK, LITE, OURS, Outcome, Rig, calls_named, real, result_of, rig, tool_names
from real.codex.test_commands import FLAGS, codex, isthmus
from strict_search import strict

pytestmark = real

STANDALONE = "request_max_retries = 0\nstream_max_retries = 0\nsupports_standalone_web_search = true"
DEMO = '[search]\nbackend = "demo"\nopen_pages = true\n'
LIVE = 'web_search = "live"'


def run_web(slug: str, id: str, **commands: Any) -> Any:
    """The model's call of Codex's own search tool."""
    if slug == LITE:
        script = f"text(await tools.web__run({json.dumps(commands)}))"
        return chat(None, reasoning="Search.", calls=[(id, "exec", {"input": script})])
    return chat(None, reasoning="Search.", calls=[(id, "web__run", commands)])


def search(it: Rig, slug: str, root: str = LIVE) -> Outcome:
    switch = () if slug == LITE else ("-c", "features.standalone_web_search=true")
    return it.exec("what do otters eat?", *switch, slug=slug, root=root, provider=STANDALONE)


def told(it: Rig, *ids: str) -> list[str]:
    """What the model read of its calls."""
    return [str(result_of(it.bodies[-1], id)).replace("\\n", "\n") for id in ids]


@pytest.mark.parametrize("slug", [CLASSIC, OURS, LITE])
def test_its_own_search_finds_opens_clicks_and_looks_through_pages(tmp_path: Path, slug: str) -> None:
    steps = [
        run_web(slug, "call_1", search_query=[{"q": "otters"}], time=[{"utc_offset": "+01:00"}]),
        run_web(slug, "call_2", open=[{"ref_id": "turn0search0"}], weather=[{"location": "Berlin"}]),
        run_web(
            slug,
            "call_3",
            click=[{"ref_id": "turn1view0", "id": 1}],
            find=[{"ref_id": "turn1view0", "pattern": "short"}],
        ),
        chat("They eat fish."),
    ]
    with rig(tmp_path, *steps, server=DEMO) as it:
        outcome = search(it, slug).worked()
    assert outcome.said[-1] == "They eat fish."
    found, opened, further = told(it, "call_1", "call_2", "call_3")
    assert "[turn0search0] otters: wiki\nhttps://demo.example/wiki/otters" in found
    assert "at UTC+01:00." in found
    assert "L1: # otters: wiki" in opened
    assert "There are no weather forecasts here" in opened
    assert "L1: # otters: guide" in further
    assert "`short` stands in one place." in further


@pytest.mark.parametrize("slug", [OURS, LITE])
def test_its_own_search_reaches_a_searxng_with_its_filters(tmp_path: Path, slug: str) -> None:
    call = run_web(slug, "call_1", search_query=[{"q": "otters", "recency": 7, "domains": ["otters.example"]}])
    with ScriptedUpstream.running(default=strict("searxng")) as engine:
        server = f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n'
        with rig(tmp_path, call, chat("Done."), server=server) as it:
            search(it, slug).worked()
    (request,) = engine.requests
    assert request.query == {"q": ["otters site:otters.example"], "format": ["json"], "time_range": ["week"]}
    (read,) = told(it, "call_1")
    assert "https://otters.example/play" in read
    assert "https://docs.otters.example/food" in read
    assert "https://rivers.example/otters" not in read, "it is of another domain, whatever the engine finds"


def test_a_codex_that_wants_only_what_is_cached_lets_nothing_leave(tmp_path: Path) -> None:
    with ScriptedUpstream.running() as engine:
        server = f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n'
        call = run_web(OURS, "call_1", search_query=[{"q": "otters"}])
        with rig(tmp_path, call, chat("Done."), server=server) as it:
            search(it, OURS, root="").worked()
    assert engine.requests == []
    (read,) = told(it, "call_1")
    assert "lets nothing leave (`external_web_access: false`)" in read


@pytest.mark.parametrize(
    ("server", "words"),
    [
        pytest.param("", "its operator must set `[search] backend`", id="nobody searches"),
        pytest.param('[search]\nbackend = "brave"\nurl = "@URL@"\napi_key = "wrong"\n', "HTTP 500", id="it breaks"),
        pytest.param(
            '[search]\nbackend = "searxng"\nurl = "http://127.0.0.1:9"\n', "cannot be reached", id="not there"
        ),
    ],
)
def test_whatever_goes_wrong_the_model_reads_why(tmp_path: Path, server: str, words: str) -> None:
    with ScriptedUpstream.running(default=error(500), strict=False) as engine:
        steps = [run_web(OURS, "call_1", search_query=[{"q": "otters"}]), chat("I could not search.")]
        with rig(tmp_path, *steps, server=server.replace("@URL@", engine.url)) as it:
            assert search(it, OURS).worked().said[-1] == "I could not search."
    (read,) = told(it, "call_1")
    assert words in read
    assert "aborted" not in read


@pytest.mark.parametrize("slug", [CLASSIC, OURS])
def test_hosted_web_search_runs_in_the_gateway(tmp_path: Path, slug: str) -> None:
    asked = chat(None, reasoning="Search.", calls=[("call_1", "web_search", {"query": "otters"})])
    with rig(tmp_path, asked, chat("They eat fish."), server=DEMO) as it:
        outcome = it.exec("what do otters eat?", slug=slug, root=LIVE).worked()
    assert outcome.said[-1] == "They eat fish."
    assert [item["query"] for item in outcome.items("web_search")] == ["otters"]
    first, second = it.bodies
    assert "web_search" in tool_names(first)
    (call,) = calls_named(second, "web_search")
    assert "https://demo.example/wiki/otters" in str(result_of(second, call["id"]))


def test_hosted_web_search_reaches_a_searxng(tmp_path: Path) -> None:
    asked = chat(None, reasoning="Search.", calls=[("call_1", "web_search", {"query": "otters"})])
    with ScriptedUpstream.running(default=strict("searxng")) as engine:
        server = f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n'
        with rig(tmp_path, asked, chat("Done."), server=server) as it:
            it.exec("what do otters eat?", slug=OURS, root=LIVE).worked()
    assert [request.query["q"] for request in engine.requests] == [["otters"]]
    (call,) = calls_named(it.bodies[1], "web_search")
    assert "https://rivers.example/otters" in str(result_of(it.bodies[1], call["id"]))


def test_what_setup_writes_makes_codex_search_live_through_the_gateway(tmp_path: Path) -> None:
    asked = chat(None, reasoning="Search.", calls=[("call_1", "web_search", {"query": "otters"})])
    with ScriptedUpstream.running(default=strict("searxng")) as engine:
        server = f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n'
        with rig(tmp_path, asked, chat("They eat fish."), server=server) as it:
            models = {model.name: model for model in known_models() if model.name == DEEPSEEK}
            settings = Settings(f"{it.gateway.url}/v1", DEEPSEEK, str(it.home / CATALOGUE), search=True)
            carry_out(plan_setup(it.home, settings, codex_catalogue(models), None))
            said = codex(it.home, it.work, *FLAGS, "exec", "--skip-git-repo-check", "--json", "what do otters eat?")
            assert "They eat fish." in said.stdout, said.stderr
    assert [request.query["q"] for request in engine.requests] == [["otters"]]


def test_run_searches_too_and_leaves_what_the_user_says_of_it(tmp_path: Path) -> None:
    with ScriptedUpstream.running(default=strict("searxng")) as engine:
        ask = ("exec", "--skip-git-repo-check", "Search the web for otters.")
        for own, count in (("", 1), ('web_search = "disabled"\n', 1)):
            folder = tmp_path / str(len(own))
            (folder / "work").mkdir(parents=True)
            (folder / "codex").mkdir()
            (folder / "codex" / "config.toml").write_text(own)
            (folder / "work" / "isthmus.toml").write_text(f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n')
            ended = isthmus(folder, "codex", "run", "--", *FLAGS, *ask)
            assert ended.returncode == 0, ended.stderr
            assert len(engine.requests) == count
            assert (folder / "codex" / "config.toml").read_text() == own
