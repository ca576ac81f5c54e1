"""`isthmus init` from flags alone, and its questions answered from a pipe."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from isthmus.cli.init_command import init
from isthmus.cli.init_file import Answers, ProviderAnswer, referenced_variables, save_private, write_text
from isthmus.cli.init_wizard import choosable_providers, parse_choice
from isthmus.config import load_config, read_config
from isthmus.errors import ConfigError
from isthmus.testing import RecordedRequest, ScriptedUpstream, Step, error, reply

app = typer.Typer()
app.command()(init)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def _run(*arguments: str, answers: str | None = None, test: bool = False, **environ: str) -> Result:
    """`test`: whether it may ask to test the keys; else it is told not to."""
    if not test and "--test" not in arguments and answers is not None:
        arguments = (*arguments, "--no-test")
    return CliRunner().invoke(app, list(arguments), input=answers, env={"COLUMNS": "200", **environ})


def test_flags_alone_make_a_private_file_that_loads(tmp_path: Path) -> None:
    done = _run(
        *("--provider", "deepseek", "--provider", "mine=http://127.0.0.1:8080/v1", "--key", "mine=MINE_KEY"),
        *("--default", "deepseek/deepseek-v4-pro", "--port", "9000", "--path", "etc/gateway.toml", "--yes"),
    )
    assert done.exit_code == 0, done.output
    file = tmp_path / "etc/gateway.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["gateway.toml"]
    for said in ("export DEEPSEEK_API_KEY=…", "export MINE_KEY=…", f"isthmus serve --config {file}"):
        assert said in done.output
    environ = {"HOME": str(tmp_path), "DEEPSEEK_API_KEY": "a", "MINE_KEY": "b"}
    config = load_config(file, environ=environ).config
    assert config.server.port == 9000
    assert config.models.default == "deepseek/deepseek-v4-pro"
    assert config.models.aliases == {"*": "deepseek/deepseek-v4-pro"}
    assert config.providers["deepseek"].api_key == "a"
    assert (config.providers["mine"].uses, config.providers["mine"].api_key) == ("openai-compatible", "b")
    assert config.store.url == f"sqlite:{file.parent / 'isthmus.db'}"


def test_without_any_flag_but_yes_the_demo_is_configured_in_the_users_folder(tmp_path: Path) -> None:
    done = _run("--yes")
    assert done.exit_code == 0, done.output
    file = tmp_path / "home/.config/isthmus/isthmus.toml"
    config = load_config(environ={"HOME": str(tmp_path / "home")}, cwd=tmp_path).config
    assert config.models.default == "demo/demo"
    assert config.store.url == f"sqlite:{tmp_path}/home/.local/share/isthmus/isthmus.db"
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "isthmus serve\n" in done.output


def test_a_file_that_is_found_before_it_is_named_and_the_next_step_gets_past_it(tmp_path: Path) -> None:
    (tmp_path / "isthmus.toml").write_text("# the one that counts\n")
    file = tmp_path / "home/.config/isthmus/isthmus.toml"
    done = _run("--yes", "--path", str(file))
    assert done.exit_code == 0, done.output
    assert file.exists()
    assert (tmp_path / "isthmus.toml").read_text() == "# the one that counts\n"
    assert f"isthmus serve --config {file}\n" in done.output
    assert f"{tmp_path / 'isthmus.toml'} is found before it" in done.output


@pytest.mark.parametrize("name", choosable_providers(()))
def test_every_provider_can_be_chosen_by_its_name(tmp_path: Path, name: str) -> None:
    done = _run("--provider", name, "--path", "isthmus.toml", "--yes")
    assert done.exit_code == 0, done.output
    text = Path("isthmus.toml").read_text()
    environ = dict.fromkeys(referenced_variables(text), "k") | {"HOME": str(tmp_path)}
    assert list(load_config(environ=environ, cwd=tmp_path).config.providers) == [name, "demo"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--provider", "deepsek"], "did you mean `deepseek`", id="misspelt provider"),
        pytest.param(["--provider", "zzzz"], "zzzz=http://127.0.0.1:8080/v1", id="unknown provider"),
        pytest.param(["--provider", "mine=127.0.0.1"], "has no URL", id="no URL"),
        pytest.param(["--provider", "a/b"], "is no provider", id="slash"),
        pytest.param(["--provider", "groq", "--default", "grok/x"], "did you mean `groq/x`", id="default of another"),
        pytest.param(["--provider", "groq", "--default", "x"], "neither `provider/model`", id="bare default"),
        pytest.param(["--key", "groq=X"], "belongs to no `--provider`", id="key of nobody"),
        pytest.param(
            ["--provider", "groq", "--key", "groq=sk-a-real-key"], "must name an environment variable", id="a real key"
        ),
        pytest.param(["--store", "redis:x"], "sqlite:PATH", id="store"),
    ],
)
def test_flags_that_cannot_work_write_nothing(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = _run(*arguments, "--path", "isthmus.toml", "--yes")
    assert done.exit_code == 1
    assert says in done.stderr
    assert "sk-a-real-key" not in done.output
    assert not (tmp_path / "isthmus.toml").exists()


def test_a_file_that_is_there_is_kept_unless_forced() -> None:
    Path("isthmus.toml").write_text("# mine\n")
    done = _run("--yes", "--path", "isthmus.toml")
    assert done.exit_code == 1
    assert "--force" in done.stderr
    assert Path("isthmus.toml").read_text() == "# mine\n"
    done = _run("--path", "isthmus.toml", answers="n\n")
    assert done.exit_code == 1
    assert "is there already. Replace it?" in done.output
    assert Path("isthmus.toml").read_text() == "# mine\n"
    assert _run("--yes", "--force", "--path", "isthmus.toml").exit_code == 0
    assert Path("isthmus.toml").read_text() != "# mine\n"
    assert Path("isthmus.toml").stat().st_mode & 0o777 == 0o600


def test_a_dry_run_prints_the_file_and_writes_nothing(tmp_path: Path) -> None:
    done = _run("--dry-run", "--yes", "--provider", "groq")
    assert done.exit_code == 0
    assert '[providers.groq]\napi_key = "${GROQ_API_KEY}"' in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_enter_all_the_way_takes_what_the_environment_offers(tmp_path: Path) -> None:
    done = _run(answers="2\n" + "\n" * 12, DEEPSEEK_API_KEY="SECRET")
    assert done.exit_code == 0, done.output
    assert "SECRET" not in done.output
    config = load_config(environ={"HOME": "/x", "DEEPSEEK_API_KEY": "SECRET"}, cwd=tmp_path).config
    assert list(config.providers) == ["deepseek", "demo"]
    assert config.models.default == config.models.aliases["*"] == "deepseek/deepseek-v4-pro"


def test_wrong_answers_are_asked_again(tmp_path: Path) -> None:
    answers = ["isthmus.toml", "deepsek", "99", "18", "box", "http://127.0.0.1:1/v1", "clé", "pasted", "bix/m", "box/m"]
    number = str(choosable_providers(()).index("openai-compatible") + 1)
    answers[3] = number
    done = _run(answers="\n".join([*answers, "n", "70000", "9001", "memory", "y", ""]))
    assert done.exit_code == 0, done.output
    for said in (
        "did you mean `deepseek`",
        "there is no number 99",
        "did you mean `box/m`",
        "was it copied whole",
        "65535",
    ):
        assert said in done.output
    text = (tmp_path / "isthmus.toml").read_text()
    assert 'default = "box/m"' in text
    assert "[models.aliases]" not in text
    assert 'api_key = "pasted"' in text
    assert "pasted" not in done.output


def test_a_refusal_at_the_end_writes_nothing(tmp_path: Path) -> None:
    done = _run("--provider", "groq", "--default", "groq/x", "--port", "1", "--path", "a.toml", answers="sqlite\nn\n")
    assert done.exit_code == 1
    assert "Nothing was written." in done.output
    assert not (tmp_path / "a.toml").exists()


def test_where_nobody_answers_the_way_out_is_told(tmp_path: Path) -> None:
    done = _run(answers="")
    assert done.exit_code == 1
    assert "use `--yes`" in done.output
    done = _run(answers="2\ngroq\n")
    assert done.exit_code == 1
    assert not (tmp_path / "isthmus.toml").exists()


def test_numbers_names_and_urls_choose_providers() -> None:
    names = ["deepseek", "groq"]
    chosen = parse_choice("2, deepseek, mine=https://h/v1, groq", names)
    assert [(provider.name, provider.uses) for provider in chosen] == [
        ("groq", ""),
        ("deepseek", ""),
        ("mine", "openai-compatible"),
    ]
    assert parse_choice("-", names) == parse_choice("", names) == []
    assert parse_choice("nebius, baseten=https://h/v1", names) == [
        ProviderAnswer("nebius"),
        ProviderAnswer("baseten", "", "https://h/v1"),
    ]
    with pytest.raises(ConfigError, match="use 1 to 2"):
        parse_choice("0", names)


def test_the_preview_hides_pasted_keys_only() -> None:
    answers = Answers((ProviderAnswer("a", api_key="sk-1"), ProviderAnswer("b", api_key="${B}")), "a/x")
    text = write_text(answers.masked())
    assert "sk-1" not in text
    assert "${B}" in text
    assert "sk-1" in write_text(answers)


def test_a_pasted_key_with_a_dollar_brace_is_kept_as_it_is(tmp_path: Path) -> None:
    done = _run(answers="\n".join([".", "groq", "a${B}c", *[""] * 6]))
    assert done.exit_code == 0, done.output
    config = load_config(environ={"HOME": "/x"}, cwd=tmp_path).config
    assert config.providers["groq"].api_key == "a${B}c"
    assert "a${B}c" not in done.output


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "link.toml"
    real.write_text("old")
    link.symlink_to(real)
    save_private(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o600


def test_what_an_address_is_written_with_is_read_from_the_environment(tmp_path: Path) -> None:
    done = _run("--provider", "azure", "--path", "isthmus.toml", "--yes")
    assert done.exit_code == 0, done.output
    assert "export AZURE_RESOURCE_NAME=…" in done.output
    environ = {"HOME": str(tmp_path), "AZURE_RESOURCE_NAME": "acme", "AZURE_OPENAI_API_KEY": "k"}
    reading = read_config(environ=environ, cwd=tmp_path)
    assert reading.known["azure"].base_url == "https://acme.openai.azure.com/openai/v1"


def test_what_an_address_is_written_with_is_asked_for(tmp_path: Path) -> None:
    # where, which ones, which address, the resource, the key, the default model, every other name, port, store, write
    answers = "2\nazure\nstandard\nacme\n\nazure/gpt-5.1\n\n\n\n\n"
    done = _run(answers=answers)
    assert done.exit_code == 0, done.output
    assert 'variables = { AZURE_RESOURCE_NAME = "acme" }' in (tmp_path / "isthmus.toml").read_text()


def test_a_key_that_is_there_for_something_else_chooses_nobody(tmp_path: Path) -> None:
    done = _run(answers="2\n\n\n\n\n\n\n", GITHUB_TOKEN="ghp_1", HF_TOKEN="hf_1", AWS_BEARER_TOKEN_BEDROCK="k")
    assert done.exit_code == 0, done.output
    assert "[providers" not in (tmp_path / "isthmus.toml").read_text()


def test_without_a_path_nothing_is_written_where_another_file_would_count(tmp_path: Path) -> None:
    Path("isthmus.toml").write_text("# the one that counts\n")
    refused = _run("--yes")
    assert refused.exit_code == 1
    assert f"`{tmp_path / 'isthmus.toml'}` counts here, before" in refused.stderr
    assert f"--path {tmp_path / 'isthmus.toml'} --force" in refused.stderr
    usual = tmp_path / "home/.config/isthmus/isthmus.toml"
    assert f"--path {usual}`" in refused.stderr
    assert not usual.exists()
    assert Path("isthmus.toml").read_text() == "# the one that counts\n"
    assert _run("--yes", "--path", "isthmus.toml", "--force").exit_code == 0


def test_a_variable_that_names_the_file_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    refused = _run("--yes", ISTHMUS_CONFIG=str(tmp_path / "mine.toml"))
    assert refused.exit_code == 1
    assert "mine.toml` counts here" in refused.stderr


def _vendor() -> AbstractContextManager[ScriptedUpstream]:
    def guarded(request: RecordedRequest) -> Step:
        good = request.headers.get("authorization") == "Bearer sk-good-0123456789"
        return reply({"data": [{"id": "m"}]}) if good else error(401)

    return ScriptedUpstream.running(routes={"/v1/models": guarded})


@pytest.mark.parametrize(("key", "code", "says"), [("sk-good-0123456789", 0, "✓ ready"), ("bad", 1, "✗ key refused")])
def test_keys_are_tested_before_the_file_is_written_and_it_is_written_all_the_same(
    key: str, code: int, says: str
) -> None:
    with _vendor() as upstream:
        provider = f"mine={upstream.base_url}"
        done = _run(
            "--provider", provider, "--key", "mine=MY_KEY", "--path", "isthmus.toml", "--yes", "--test", MY_KEY=key
        )
    assert done.exit_code == code, done.output
    assert says in done.output
    assert "sk-good" not in done.output
    assert Path("isthmus.toml").exists()


def test_nobody_is_asked_unless_somebody_wants_it() -> None:
    with _vendor() as upstream:
        provider = f"mine={upstream.base_url}"
        for flags in (["--yes"], ["--yes", "--no-test"]):
            assert _run("--provider", provider, "--path", "isthmus.toml", "--force", *flags).exit_code == 0
        assert upstream.requests == []


@pytest.mark.parametrize(("answer", "asked"), [("y", True), ("n", False)])
def test_it_is_a_question_where_somebody_answers(answer: str, asked: bool) -> None:
    with _vendor() as upstream:
        given = ["--provider", f"mine={upstream.base_url}", "--default", "mine/m", "--port", "1", "--store", "memory:"]
        done = _run(*given, "--path", "isthmus.toml", answers=f"{answer}\ny\n", test=True)
        assert done.exit_code == 0, done.output
        assert "Test the key now?" in done.output
        assert bool(upstream.requests) is asked


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "isthmus.toml"
    with pytest.raises(ConfigError, match=r"cannot be written: .*; name another file with `--path`"):
        save_private(path, "")
    done = _run("--yes", "--path", str(path))
    assert done.exit_code == 1
    assert "name another file with `--path`" in done.output
