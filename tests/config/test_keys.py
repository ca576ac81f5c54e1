"""A provider gets its key from where its owner put it, and nobody has to guess which one was sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.config import Reading, read_config
from isthmus.config.keys import Key, tell_key
from isthmus.config.render import render_toml
from isthmus.values.problems import dotted

Read = Callable[..., Reading]
SECRET = "sk-file-4f1b7c9e2d"
LOCAL = 'uses = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def _read(text: str = "", **environ: str) -> Reading:
        file = tmp_path / "isthmus.toml"
        file.write_text(text)
        file.chmod(0o600)
        return read_config(file, environ={"HOME": str(tmp_path), **environ}, cwd=tmp_path.parent)

    return _read


def told(reading: Reading, name: str) -> str:
    return tell_key(name, reading.config.providers[name].api_key)


# ── from a file ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"], ids=ascii)
@pytest.mark.parametrize("place", ["relative", "absolute"])
def test_a_key_is_read_from_a_file_without_its_line_end(read: Read, tmp_path: Path, end: str, place: str) -> None:
    (tmp_path / "secret").write_bytes((SECRET + end).encode())
    name = "secret" if place == "relative" else str(tmp_path / "secret")
    reading = read(f'[providers.deepseek]\napi_key_file = "{name}"\n', DEEPSEEK_API_KEY="sk-env")
    assert reading.problems == ()
    assert reading.config.providers["deepseek"].api_key == SECRET
    assert reading.config.models.default.startswith("deepseek/")
    assert told(reading, "deepseek") == "the key in the file of `providers.deepseek.api_key_file`"


def test_a_place_may_have_a_file_of_its_own(read: Read, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("sk-one\n")
    reading = read('[providers.deepseek]\nendpoints = [{ api_key_file = "one" }, { api_key = "sk-two" }]\n')
    assert reading.problems == ()
    assert [place.api_key for place in reading.config.providers["deepseek"].endpoints] == ["sk-one", "sk-two"]


def test_a_variable_may_name_the_file(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    reading = read("", ISTHMUS_PROVIDERS_DEEPSEEK_API_KEY_FILE=str(tmp_path / "secret"))
    assert reading.config.providers["deepseek"].api_key == SECRET


def test_a_variable_may_be_that_of_a_provider_with_a_file_of_its_own(read: Read, tmp_path: Path) -> None:
    _file(tmp_path, REMOTE + NAMED)
    reading = read("", ISTHMUS_PROVIDERS_CORP_API_KEY=SECRET)
    assert reading.problems == ()
    assert reading.config.providers["corp"].api_key == SECRET


def test_the_servers_keys_may_come_from_files(read: Read, tmp_path: Path) -> None:
    (tmp_path / "clients").write_text("sk-one\n\n sk-two \n")
    (tmp_path / "chief").write_text("sk-chief\n")
    reading = read('[server]\napi_keys_file = "clients"\nadmin_key_file = "chief"\n')
    assert reading.problems == ()
    assert reading.config.server.api_keys == ["sk-one", "sk-two"]
    assert reading.config.server.admin_key == "sk-chief"


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("providers.deepseek", "api_key_file"),
        ("server", "api_keys_file"),
        ("server", "admin_key_file"),
        ("metrics", "key_file"),
    ],
)
@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "which cannot be read: No such file or directory", id="missing"),
        pytest.param("folder", "which cannot be read: Is a directory", id="a folder"),
        pytest.param(b"", "which is empty", id="empty"),
        pytest.param(b" \n\n", "which is empty", id="nothing but space"),
        pytest.param(b"\xff\xfe\x00", "which is not text", id="not text"),
        pytest.param(b"k" * 70_000, "which is too large for a key", id="something else"),
    ],
)
def test_a_file_without_a_key_is_one_error_that_names_key_and_path(
    read: Read, tmp_path: Path, section: str, key: str, content: bytes | str | None, says: str
) -> None:
    file = tmp_path / "secret"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content:
        file.mkdir()
    reading = read(f'[{section}]\n{key} = "secret"\n', DEEPSEEK_API_KEY="sk-env")
    (problem,) = reading.errors
    assert problem.text.startswith(f"{tmp_path / 'isthmus.toml'}:2: `{section}.{key}` names `{file}`, {says}. Fix: ")
    if section.startswith("providers"):
        assert reading.config.providers["deepseek"].api_key == "", "another key than the one that was asked for"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_says_so(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "secret").chmod(0)
    (problem,) = read('[providers.deepseek]\napi_key_file = "secret"\n').errors
    assert "Permission denied" in problem.text


def test_a_file_of_several_lines_is_no_key(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"# mine\n{SECRET}\n")
    (problem,) = read('[providers.deepseek]\napi_key_file = "secret"\n').errors
    assert "line break" in problem.text
    assert SECRET not in problem.text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[providers.deepseek]\napi_key = "a"\napi_key_file = "secret"\n', "providers.deepseek.api_key_file"),
        ('[providers.deepseek]\napi_keys = ["a"]\napi_key_file = "secret"\n', "providers.deepseek.api_keys"),
        ('[server]\napi_keys = ["a"]\napi_keys_file = "secret"\n', "server.api_keys_file"),
        ('[server]\nadmin_key = "a"\nadmin_key_file = "secret"\n', "server.admin_key_file"),
        ('[metrics]\nkey = "a"\nkey_file = "secret"\n', "metrics.key_file"),
    ],
)
def test_a_key_and_a_file_exclude_each_other(read: Read, tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (problem,) = read(text).errors
    assert dotted(problem.key) == key
    assert "keep one" in problem.fix


def test_what_a_file_holds_is_never_shown_and_its_name_always(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    server = '[server]\napi_keys_file = "secret"\nadmin_key_file = "secret"\n'
    metrics = '[metrics]\nkey_file = "secret"\n'
    reading = read(f'{server}{metrics}[providers.mine]\n{LOCAL}api_key_file = "secret"\n')
    assert reading.config.metrics.key == SECRET
    shown = render_toml(reading, origins=True)
    assert SECRET not in shown + repr(reading)
    assert shown.count('key_file = "secret"') + shown.count('keys_file = "secret"') == 4
    (tmp_path / "isthmus.toml").write_text(shown)
    again = read_config(tmp_path / "isthmus.toml", environ={"HOME": str(tmp_path)})
    assert again.errors == ()
    assert again.config == reading.config


# ── from the environment ───────────────────────────────────────────────────────────────────────────


def test_a_key_that_is_kept_from_a_changed_address_is_told(read: Read) -> None:
    reading = read('[providers.deepseek]\nbase_url = "https://proxy.example/v1"\n', DEEPSEEK_API_KEY=SECRET)
    (warning,) = reading.warnings
    assert dotted(warning.key) == "providers.deepseek.base_url"
    assert "another host than `api.deepseek.com`, so the key in `$DEEPSEEK_API_KEY` is not sent there" in warning.text
    assert '`providers.deepseek.api_key = "${DEEPSEEK_API_KEY}"`' in warning.fix
    assert reading.config.providers["deepseek"].api_key == ""
    assert told(reading, "deepseek").startswith("no key: the one in `$DEEPSEEK_API_KEY` is for `api.deepseek.com` only")
    assert getattr(reading.config.providers["deepseek"].api_key, "withheld", "") == "DEEPSEEK_API_KEY"


@pytest.mark.parametrize(
    "section",
    [
        'endpoints = [{ base_url = "https://a.example/v1", api_key = "sk-a" }, {}]',
        'base_url = "https://a.example/v1"\nheaders = { Authorization = "Bearer x" }',
        'base_url = "https://a.example/v1"\napi_key = "sk-a"',
    ],
    ids=["places with keys of their own", "a header", "a key"],
)
def test_who_says_what_is_sent_there_needs_no_warning(read: Read, section: str) -> None:
    reading = read(f"[providers.deepseek]\n{section}\n", DEEPSEEK_API_KEY=SECRET)
    assert reading.problems == ()
    if "endpoints" in section:  # the place without one is the vendor's own
        assert reading.config.providers["deepseek"].api_key == SECRET


def test_a_broken_file_is_no_reason_to_go_elsewhere_with_another_key(read: Read) -> None:
    reading = read('[providers.zhipu]\napi_key_file = "gone"\n', ZAI_API_KEY=SECRET)
    assert len(reading.errors) == 1
    assert reading.config.providers["zhipu"].endpoint == ""


def test_a_server_of_ones_own_is_no_reason_to_warn(read: Read) -> None:
    reading = read('[providers.deepseek]\nbase_url = "http://127.0.0.1:1/v1"\n', DEEPSEEK_API_KEY=SECRET)
    assert reading.warnings == ()
    assert "is for `api.deepseek.com` only" in told(reading, "deepseek")


@pytest.mark.parametrize("url", ["http://[", "http://[::1"])
def test_an_address_that_is_none_is_a_problem_and_gets_no_key(read: Read, url: str) -> None:
    reading = read(f'[providers.deepseek]\nbase_url = "{url}"\n', DEEPSEEK_API_KEY=SECRET)
    assert "must be a URL" in reading.errors[0].text
    assert reading.config.providers["deepseek"].api_key == ""


@pytest.mark.parametrize(
    ("text", "environ", "words"),
    [
        pytest.param("", {"DEEPSEEK_API_KEY": SECRET}, "the key in `$DEEPSEEK_API_KEY`", id="environment"),
        pytest.param(
            '[providers.deepseek]\napi_key = "${MINE}"',
            {"MINE": SECRET},
            "the key in `$MINE` (by `providers.deepseek.api_key`)",
            id="reference",
        ),
        pytest.param(
            "",
            {"ISTHMUS_PROVIDERS_DEEPSEEK_API_KEY": SECRET},
            "the key in `$ISTHMUS_PROVIDERS_DEEPSEEK_API_KEY` (by `providers.deepseek.api_key`)",
            id="variable of ours",
        ),
        pytest.param(
            f'[providers.deepseek]\napi_key = "{SECRET}"', {}, "the key in `providers.deepseek.api_key`", id="file"
        ),
        pytest.param(
            "[providers.deepseek]",
            {},
            "no key, for want of one: set `$DEEPSEEK_API_KEY` or `providers.deepseek.api_key`",
            id="none",
        ),
    ],
)
def test_a_key_tells_where_it_comes_from_and_never_what_it_is(
    read: Read, text: str, environ: dict[str, str], words: str
) -> None:
    assert told(read(text, **environ), "deepseek") == words


def test_each_of_several_keys_tells_its_own_place(read: Read) -> None:
    reading = read('[providers.deepseek]\napi_keys = ["${A}", "literal"]', A=SECRET)
    assert [tell_key("deepseek", key) for key in reading.config.providers["deepseek"].api_keys] == [
        "the key in `$A` (by `providers.deepseek.api_keys[0]`)",
        "the key in `providers.deepseek.api_keys[1]`",
    ]


def test_a_key_is_a_text_like_any_other() -> None:
    key = Key("abc", "somewhere")
    assert (key, f"Bearer {key}", bool(Key("", "why"))) == ("abc", "Bearer abc", False)
    assert tell_key("x", "plain") == "the key in `providers.x.api_key`"


# ── needed or not ──────────────────────────────────────────────────────────────────────────────────


def _file(tmp_path: Path, endpoint: str, head: str = "") -> None:
    folder = tmp_path / ".config/isthmus/providers"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corp.toml").write_text(f'default_model = "m"\n{head}[endpoint]\n{endpoint}')


REMOTE, HERE = 'base_url = "https://corp.example/v1"\n', 'base_url = "http://127.0.0.1:1/v1"\n'
NAMED, OPTIONAL = 'key_env = ["CORP_KEY"]\n', "key_optional = true\n"
VLLM = 'extends = "vllm"\n'


@pytest.mark.parametrize(
    ("endpoint", "head", "needed"),
    [
        pytest.param(REMOTE + NAMED, "", True, id="a server elsewhere"),
        pytest.param(HERE + NAMED, "", True, id="a local server that wants its key"),
        pytest.param(HERE + NAMED + OPTIONAL, "", False, id="a local server that does not"),
        pytest.param(REMOTE + NAMED + OPTIONAL, "", False, id="one elsewhere that does not"),
        pytest.param(HERE, VLLM, False, id="as the file that it extends"),
        pytest.param(REMOTE + NAMED, VLLM, True, id="with another key than the file that it extends"),
    ],
)
def test_whether_a_key_is_needed_is_what_the_provider_file_says(
    read: Read, tmp_path: Path, endpoint: str, head: str, needed: bool
) -> None:
    _file(tmp_path, endpoint, head)
    reading = read('[providers.corp]\n[models]\ndefault = "corp/m"\n')
    assert [dotted(problem.key) for problem in reading.errors] == (["providers.corp.api_key"] if needed else [])
    assert (
        read('[providers.corp]\nheaders = { Authorization = "Basic x" }\n[models]\ndefault = "corp/m"\n').errors == ()
    )
    if needed:
        assert "set `CORP_KEY` in the environment" in reading.errors[0].fix
