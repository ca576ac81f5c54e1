"""What is left open is filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.config import Reading, read_config
from isthmus.config.known import find_known, known_key_variables, known_names


def _read(tmp_path: Path, text: str | None = None, **environ: str) -> Reading:
    if text is not None:
        (tmp_path / "isthmus.toml").write_text(text)
        (tmp_path / "isthmus.toml").chmod(0o600)
    return read_config(environ={"HOME": str(tmp_path / "home"), **environ}, cwd=tmp_path)


def test_with_nothing_at_all_the_demo_answers(tmp_path: Path) -> None:
    reading = _read(tmp_path)
    assert reading.problems == ()
    assert reading.path is None
    assert list(reading.config.providers) == ["demo"]
    assert reading.config.models.default == "demo/demo"
    assert reading.config.store.url == f"sqlite:{tmp_path}/home/.local/share/isthmus/isthmus.db"
    assert (reading.config.server.host, reading.config.server.port) == ("127.0.0.1", 8484)


@pytest.mark.parametrize(("variable", "provider"), sorted(known_key_variables().items()))
def test_every_key_variable_enables_its_provider_alone(tmp_path: Path, variable: str, provider: str) -> None:
    known = find_known(provider)
    reading = _read(tmp_path, **{variable: "k-1"}, **dict.fromkeys(known.variables, "mine"))  # and its address
    assert reading.errors == ()
    assert list(reading.config.providers) == [provider, "demo"]
    assert reading.config.providers[provider].api_key == "k-1"
    assert reading.origins[("providers", provider, "api_key")].text == f"environment: ${variable}"
    model = find_known(provider).default_model
    assert reading.config.models.default == (f"{provider}/{model}" if model else "")


def test_several_keys_come_in_the_documented_order(tmp_path: Path) -> None:
    reading = _read(tmp_path, OPENAI_API_KEY="a", GROQ_API_KEY="b", DEEPSEEK_API_KEY="c")
    assert list(reading.config.providers) == ["deepseek", "groq", "openai", "demo"]
    assert reading.config.models.default.startswith("deepseek/")
    order = known_names()
    assert order.index("deepseek") < order.index("groq") < order.index("openai")


def test_an_openai_key_for_another_server_enables_nothing(tmp_path: Path) -> None:
    reading = _read(tmp_path, OPENAI_API_KEY="x", OPENAI_BASE_URL="http://127.0.0.1:8484/v1")
    assert list(reading.config.providers) == ["demo"]


def test_an_empty_key_enables_nothing(tmp_path: Path) -> None:
    assert list(_read(tmp_path, GROQ_API_KEY=" ").config.providers) == ["demo"]


def test_a_file_that_names_providers_is_the_whole_list(tmp_path: Path) -> None:
    reading = _read(tmp_path, "[providers.xai]\n", GROQ_API_KEY="a", XAI_API_KEY="b")
    assert list(reading.config.providers) == ["xai", "demo"]
    assert reading.config.providers["xai"].api_key == "b"


def test_a_file_without_providers_leaves_them_to_the_environment(tmp_path: Path) -> None:
    reading = _read(tmp_path, "[server]\nport = 1\n", GROQ_API_KEY="a")
    assert list(reading.config.providers) == ["groq", "demo"]


def test_a_variable_for_one_provider_hides_no_other(tmp_path: Path) -> None:
    reading = _read(tmp_path, ISTHMUS_PROVIDERS_XAI_API_KEY="b", GROQ_API_KEY="a")
    assert set(reading.config.providers) == {"groq", "xai", "demo"}


def test_a_provider_that_models_refer_to_needs_no_section(tmp_path: Path) -> None:
    reading = _read(tmp_path, '[models]\ndefault = "ollama/llama3"\n[models.fallbacks]\n"ollama/llama3" = ["vllm/x"]\n')
    assert reading.problems == ()
    assert list(reading.config.providers) == ["ollama", "vllm", "demo"]


def test_the_demo_can_be_left_out(tmp_path: Path) -> None:
    reading = _read(tmp_path, "[models]\ndemo = false\n", GROQ_API_KEY="a")
    assert list(reading.config.providers) == ["groq"]
    (problem,) = _read(tmp_path, "[models]\ndemo = false\n").errors
    assert "has no provider" in problem.message


def test_the_first_provider_with_a_key_gives_the_default_model(tmp_path: Path) -> None:
    reading = _read(tmp_path, "[providers.xai]\n[providers.groq]\n", GROQ_API_KEY="a")
    assert reading.config.models.default.startswith("groq/")
    assert [problem.severity for problem in reading.problems] == ["warning"]


def test_a_server_whose_models_are_unknown_leaves_the_default_open(tmp_path: Path) -> None:
    reading = _read(tmp_path, '[providers.mine]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\n')
    assert reading.errors == ()
    assert reading.config.models.default == ""
    assert next(iter(reading.config.providers)) == "mine"


@pytest.mark.parametrize(
    "section",
    [
        pytest.param('base_url = "https://evil.example/v1"', id="base_url"),
        pytest.param('endpoints = [{ base_url = "https://evil.example/v1" }]', id="endpoints"),
    ],
)
def test_a_key_of_the_environment_goes_to_no_foreign_host(tmp_path: Path, section: str) -> None:
    reading = _read(
        tmp_path, f'[models]\ndefault = "mine/x"\n[providers.mine]\nuses = "openai"\n{section}\n', OPENAI_API_KEY="a"
    )
    assert reading.config.providers["mine"].api_key == ""
    assert reading.errors == ()


def test_a_key_goes_to_another_path_of_the_same_host(tmp_path: Path) -> None:
    text = '[providers.deepseek]\nbase_url = "https://api.deepseek.com/beta"\n'
    assert _read(tmp_path, text, DEEPSEEK_API_KEY="a").config.providers["deepseek"].api_key == "a"


def test_an_alternative_address_has_its_own_key(tmp_path: Path) -> None:
    reading = _read(tmp_path, '[providers.zhipu]\nendpoint = "zai-coding"\n', ZHIPU_API_KEY="a", ZAI_API_KEY="b")
    assert reading.config.providers["zhipu"].api_key == "b"
    reading = _read(tmp_path, "[providers.zhipu]\n", ZAI_API_KEY="b")
    assert (reading.config.providers["zhipu"].endpoint, reading.config.providers["zhipu"].api_key) == ("zai", "b")


def test_a_local_server_stays_local_whatever_keys_there_are(tmp_path: Path) -> None:
    reading = _read(tmp_path, "[providers.ollama]\n", OLLAMA_API_KEY="a")
    assert reading.config.providers["ollama"].endpoint == ""


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        pytest.param('[store]\nurl = "sqlite:data/x.db"', {}, "sqlite:{file}/data/x.db", id="from the file: beside it"),
        pytest.param(
            "", {"ISTHMUS_STORE_URL": "sqlite:x.db"}, "sqlite:{cwd}/x.db", id="from a variable: working folder"
        ),
        pytest.param('[store]\nurl = "sqlite:/a/x.db"', {}, "sqlite:/a/x.db", id="absolute"),
        pytest.param('[store]\nurl = "sqlite:///a/x.db"', {}, "sqlite:///a/x.db", id="absolute as a URL"),
        pytest.param('[store]\nurl = "memory:"', {}, "memory:", id="memory"),
    ],
)
def test_where_the_store_is(tmp_path: Path, text: str, environ: dict[str, str], expected: str) -> None:
    folder, cwd = tmp_path / "etc", tmp_path / "cwd"
    folder.mkdir()
    cwd.mkdir()
    (folder / "isthmus.toml").write_text(text)
    reading = read_config(folder, environ={"HOME": str(tmp_path), **environ}, cwd=cwd)
    assert reading.errors == ()
    assert reading.config.store.url == expected.format(file=folder, cwd=cwd)


def test_own_provider_files_count(tmp_path: Path) -> None:
    own = tmp_path / "home/.config/isthmus/providers"
    own.mkdir(parents=True)
    (own / "corp.toml").write_text(
        'extends = "openai-compatible"\ndefault_model = "m"\nchecked = "2026-01-01"\n'
        '[endpoint]\nbase_url = "https://corp.example/v1"\nkey_env = ["CORP_KEY"]\n'
    )
    reading = _read(tmp_path, CORP_KEY="k")
    assert reading.errors == ()
    assert list(reading.config.providers) == ["corp", "demo"]
    assert reading.config.models.default == "corp/m"
    more = tmp_path / "more"
    more.mkdir()
    (more / "other.toml").write_text((own / "corp.toml").read_text())
    reading = _read(tmp_path, 'provider_folders = ["more"]\n[providers.other]\n', CORP_KEY="k")
    assert reading.errors == ()
    assert reading.config.provider_folders == [str(own), str(more)]
    (problem,) = _read(tmp_path, 'provider_folders = ["gone"]\n').errors
    assert "not a folder" in problem.message


def test_a_broken_provider_file_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    own = tmp_path / "home/.config/isthmus/providers"
    own.mkdir(parents=True)
    (own / "corp.toml").write_text("nonsense = 1\n")
    (problem,) = _read(tmp_path, "[providers.corp]\n").errors
    assert "nonsense" in problem.text
    assert any("nonsense" in problem.text for problem in _read(tmp_path, "").errors)


def test_the_demo_draws_where_it_is_all_there_is(tmp_path: Path) -> None:
    assert _read(tmp_path).config.images.provider == "demo"
    assert _read(tmp_path, DEEPSEEK_API_KEY="k").config.images.provider == ""
    assert _read(tmp_path, '[images]\nprovider = "none"').config.images.provider == "none"
    own = _read(tmp_path, '[images]\nurl = "http://127.0.0.1:1/v1"\nmodel = "flux"').config.images
    assert (own.provider, own.model) == ("", "flux")


def test_who_draws_needs_no_section_and_its_key_may_come_from_a_file(tmp_path: Path) -> None:
    assert "zhipu" in _read(tmp_path, '[images]\nprovider = "zhipu"').config.providers
    (tmp_path / "key").write_text("sk-from-a-file\n")
    text = '[images]\nurl = "https://x.example/v1"\nmodel = "m"\napi_key_file = "key"\n'
    assert _read(tmp_path, text).config.images.api_key == "sk-from-a-file"
    both = _read(tmp_path, f'{text}api_key = "k"')
    assert [problem.key for problem in both.errors] == [("images", "api_key_file")]
