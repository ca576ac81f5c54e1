"""`isthmus providers list | show | check`, as a shell sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.providers import load_provider, provider_names
from isthmus.providers.find import snapshot_names
from isthmus.providers.origins import origins_of
from isthmus.providers.snapshot import snapshot_head

DATA = Path(__file__).parents[2] / "src" / "isthmus" / "providers" / "data"
WIDTHS = (80, 120, 200)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def run(*arguments: str, columns: int = 200, **environ: str) -> Result:
    return CliRunner().invoke(app, ["providers", *arguments], env={"COLUMNS": str(columns), **environ})


@pytest.mark.parametrize("columns", WIDTHS)
def test_list_shows_every_provider_within_the_width(columns: int) -> None:
    done = run("list", columns=columns)
    assert done.exit_code == 0, done.output
    for name in provider_names():
        assert name in done.output
        assert load_provider(name).title.split()[0] in done.output
    assert max(len(line) for line in done.output.splitlines()) <= columns


def test_list_tells_whether_a_key_is_set_and_never_what_it_is() -> None:
    done = run("list", columns=200, DEEPSEEK_API_KEY="sk-very-secret")
    assert "sk-very-secret" not in done.output
    row = next(line for line in done.output.splitlines() if line.startswith("deepseek "))
    assert "DEEPSEEK_API_KEY ✓ set" in row
    assert "low high max" in row
    assert "json_object" in row
    other = next(line for line in done.output.splitlines() if line.startswith("zhipu "))
    assert "ZHIPU_API_KEY – not set" in other
    told = json.loads(run("list", "--json", DEEPSEEK_API_KEY="sk-very-secret").stdout)
    assert [it["name"] for it in told] == provider_names()
    mine = next(it for it in told if it["name"] == "deepseek")
    assert mine["key_variables"] == [{"name": "DEEPSEEK_API_KEY", "set": True}]


def test_list_tells_what_a_cloud_needs_in_place_of_a_key() -> None:
    done = run("list", columns=300)
    vertex = next(line for line in done.output.splitlines() if line.startswith("vertex "))
    assert "a Google account" in vertex
    told = {each["name"]: each for each in json.loads(run("list", "--json", AZURE_RESOURCE_NAME="acme").stdout)}
    assert told["azure"]["variables"] == [{"name": "AZURE_RESOURCE_NAME", "set": True}]
    assert told["bedrock"]["variables"] == [{"name": "AWS_REGION", "set": False}]
    assert told["vertex"]["key_needed"] is False


def test_list_is_short_unless_all_are_asked_for() -> None:
    short = run("list")
    assert "nebius" not in short.output
    assert f"adds {len(snapshot_names())} of {snapshot_head().label}" in short.output
    told = json.loads(run("list", "--all", "--json").stdout)
    assert [it["name"] for it in told] == [*provider_names(), *snapshot_names()]
    gitlab = next(it for it in told if it["name"] == "gitlab")
    assert gitlab["protocol"] is None
    assert "a protocol of its own" in gitlab["obstacle"]


@pytest.mark.parametrize("columns", WIDTHS)
def test_all_of_them_fit_the_width(columns: int) -> None:
    done = run("list", "--all", columns=columns)
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.output.splitlines()) <= columns
    assert all(name in done.output for name in snapshot_names())


@pytest.mark.parametrize("word", ["nebius", "NEBIUS_API", "tokenfactory"])
def test_a_word_is_looked_for_in_names_keys_and_addresses(word: str) -> None:
    done = run("list", word, NEBIUS_API_KEY="sk-very-secret")
    assert done.exit_code == 0, done.output
    row = next(line for line in done.output.splitlines() if line.startswith("nebius "))
    assert "NEBIUS_API_KEY ✓ set" in row
    assert "api.tokenfactory.nebius.com/v1" in row
    assert "sk-very-secret" not in done.output
    assert "deepseek" not in done.output


def test_a_word_finds_those_with_a_file_as_well() -> None:
    told = json.loads(run("list", "moonshot", "--json").stdout)
    assert [it["name"] for it in told] == ["kimi", "moonshotai-cn"]
    nothing = run("list", "no-such-word")
    assert nothing.exit_code == 1
    assert nothing.stderr.startswith("error: no provider has `no-such-word` in its name, key or address;")


def test_show_of_a_provider_of_the_snapshot_says_what_is_from_where() -> None:
    done = run("show", "nebius", "--model", "zai-org/GLM-5.2")
    assert done.exit_code == 0, done.output
    row = next(line for line in done.output.splitlines() if line.strip().startswith("context "))
    assert f'{snapshot_head().label} [models."zai-org/GLM-5.2".limits]' in row
    known = load_provider("nebius").snapshot
    assert known is not None
    assert f"{len(known.rows) - 10} more are known" in done.output
    told = json.loads(run("show", "nebius", "--json").stdout)
    assert len(told["models"]) == 10
    assert told["files"] == ["openai-compatible.toml", snapshot_head().label]


@pytest.mark.parametrize("name", provider_names())
def test_show_has_every_fact_with_its_origin(name: str) -> None:
    provider = load_provider(name)
    told = json.loads(run("show", name, "--json").stdout)
    assert {it["path"]: it["from"] for it in told["facts"]} == origins_of(provider)
    assert told["checked"] == provider.checked
    assert told["sources"] == list(provider.sources)
    values = {it["path"]: it["value"] for it in told["facts"]}
    capabilities = provider.capabilities()
    assert values["messages.replay"] == capabilities.messages.replay
    assert values["reasoning.effort"] == capabilities.reasoning.effort
    for path, value in values.items():
        if path.startswith("parameters.") and path.endswith(".to"):
            assert value == capabilities.parameters[path.removeprefix("parameters.").removesuffix(".to")].to


@pytest.mark.parametrize("columns", WIDTHS)
def test_show_fits_the_width_and_names_what_it_was_checked_against(columns: int) -> None:
    done = run("show", "zhipu", columns=columns)
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.output.splitlines()) <= columns
    provider = load_provider("zhipu")
    assert provider.checked in done.output
    screen = "".join(done.output.split())
    assert all("".join(source.split()) in screen for source in provider.sources)
    for section in ("[parameters]", "[tools]", "[reasoning]", "[messages]", "[reply]", "[limits]", "[cost]"):
        assert section in done.output


def test_show_follows_the_model() -> None:
    done = run("show", "deepseek", "--model", "deepseek-flash")
    row = next(line for line in done.output.splitlines() if line.strip().startswith("top_p.low"))
    assert "0.95" in row
    assert 'deepseek.toml [models."deepseek-flash".parameters.top_p]' in row


def test_show_of_an_unknown_provider_suggests_one() -> None:
    done = run("show", "zhipo")
    assert done.exit_code == 1
    assert done.stderr == "error: there is no provider `zhipo`; did you mean `zhipu`?\n"


def test_a_users_own_file_is_shown_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    own = folder / "deepseek.toml"
    own.write_text("[parameters]\nseed = {}\n")
    done = run("show", "deepseek", "--folder", str(folder), "--json")
    told = {it["path"]: it["from"] for it in json.loads(done.stdout)["facts"]}
    assert told["parameters.seed"] == f"{own} [parameters]"


def test_folders_of_the_configuration_count_as_well(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "harbour.toml").write_text('title = "Harbour"\nextends = "vllm"\n')
    (tmp_path / "isthmus.toml").write_text('provider_folders = ["files"]\n')
    assert "harbour" in run("list").output


@pytest.mark.parametrize("path", sorted(DATA.glob("*.toml")), ids=lambda path: path.stem)
def test_our_own_files_are_sound(path: Path) -> None:
    done = run("check", str(path))
    assert done.exit_code == 0, done.output
    assert "✓ sound" in done.output


def test_check_lists_every_problem_with_the_next_step(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('checked = "yesterday"\n[reasoning]\nefort = "native"\n[endpoint]\nbase_url = "ftp://x"\n')
    good = tmp_path / "good.toml"
    good.write_text('extends = "openai-compatible"\n[endpoint]\nbase_url = "http://127.0.0.1:1/v1"\n')
    done = run("check", str(bad), str(good))
    assert done.exit_code == 1
    assert f"✗ 3 problems  {bad}" in done.stdout
    assert "line 3: reasoning.efort is not a known key. Fix: did you mean reasoning.effort?" in done.stdout
    assert f"✓ sound  {good}" in done.stdout
    told = json.loads(run("check", str(bad), "--json").stdout)
    assert [it["file"] for it in told] == [str(bad)]
    assert len(told[0]["problems"]) == 3


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.toml", None, "cannot be read"),
        ("broken.toml", "name = ", "not valid TOML"),
        ("notes.txt", 'title = "x"\n', "providers are found as name.toml"),
        ("Upper.toml", 'title = "x"\n', "in lower case"),
        ("lost.toml", 'extends = "nowhere"\n', "there is no provider nowhere"),
        ("ring.toml", 'extends = "rong"\n', "extend each other in a circle"),
    ],
)
def test_what_only_shows_when_it_is_loaded_is_found_too(
    tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    (tmp_path / "rong.toml").write_text('extends = "ring"\n')
    if text is not None:
        (tmp_path / name).write_text(text)
    done = run("check", str(tmp_path / name))
    assert done.exit_code == 1
    assert words in done.stdout


def test_a_name_is_guessed_only_where_it_is_near() -> None:
    assert "did you mean `deepseek`?" in run("show", "depseek").stderr
    far = run("show", "nope").stderr
    assert "did you mean" not in far
    assert "known providers: anthropic, " in far
