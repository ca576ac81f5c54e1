"""File, environment and flags become one configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.config import Reading, load_config, read_config
from isthmus.errors import ConfigError
from isthmus.values.problems import dotted

Read = Callable[..., Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a configuration from text, with an environment of its own."""

    def _read(text: str = "", overrides: dict[str, object] | None = None, **environ: str) -> Reading:
        file = tmp_path / "isthmus.toml"
        file.write_text(text)
        file.chmod(0o600)
        return read_config(file, overrides=overrides, environ={"HOME": str(tmp_path), **environ}, cwd=tmp_path)

    return _read


EXAMPLE = """
[server]
host = "127.0.0.1"
port = 8484
[models]
default = "deepseek/deepseek-v4-pro"
[models.aliases]
"gpt-5.5" = "deepseek/deepseek-v4-pro"
[providers.deepseek]
api_key = "${DEEPSEEK_API_KEY}"
[providers.mine]                      # any OpenAI-compatible server
uses = "openai-compatible"
base_url = "http://127.0.0.1:8080/v1"
[store]
url = "sqlite:isthmus.db"
"""


def test_the_example_of_the_guide_is_sound(read: Read, tmp_path: Path) -> None:
    reading = read(EXAMPLE, DEEPSEEK_API_KEY="sk-1")
    assert reading.problems == ()
    config = reading.config
    assert (config.server.host, config.server.port) == ("127.0.0.1", 8484)
    assert config.models.default == "deepseek/deepseek-v4-pro"
    assert config.models.aliases == {"gpt-5.5": "deepseek/deepseek-v4-pro"}
    assert list(config.providers) == ["deepseek", "mine", "demo"]
    assert config.providers["deepseek"].api_key == "sk-1"
    assert config.providers["mine"].uses == "openai-compatible"
    assert config.store.url == f"sqlite:{tmp_path / 'isthmus.db'}"


def test_flags_come_before_variables_before_the_file_before_defaults(read: Read) -> None:
    text = "[server]\nport = 1\n"
    assert read("").config.server.port == 8484
    assert read(text).config.server.port == 1
    assert read(text, ISTHMUS_PORT="2").config.server.port == 2
    assert read(text, ISTHMUS_PORT="2", ISTHMUS_SERVER_PORT="3").config.server.port == 3
    reading = read(text, {"server.port": 4}, ISTHMUS_PORT="2", ISTHMUS_SERVER_PORT="3")
    assert reading.config.server.port == 4
    assert reading.origins[("server", "port")].text == "flag"
    assert read(text, {"server.port": None}).config.server.port == 1


@pytest.mark.parametrize(
    ("variable", "value", "path", "expected"),
    [
        pytest.param("ISTHMUS_HOST", "::1", "server.host", "::1", id="short host"),
        pytest.param("ISTHMUS_SERVER_GRACE", "1m", "server.grace", 60.0, id="duration"),
        pytest.param("ISTHMUS_SERVER_MAX_BODY", "2MB", "server.max_body", 2_000_000, id="size"),
        pytest.param("ISTHMUS_STORE_URL", "memory:", "store.url", "memory:", id="store"),
        pytest.param("ISTHMUS_STORE_MAX_CHAIN", "5", "store.max_chain", 5, id="key with underscore"),
        pytest.param("ISTHMUS_PLAN_STRICT", "true", "plan.strict", True, id="boolean"),
        pytest.param("ISTHMUS_LOG_LEVEL", "debug", "log.level", "debug", id="word"),
        pytest.param("ISTHMUS_MODELS_DEFAULT", "demo/x", "models.default", "demo/x", id="default"),
        pytest.param(
            "ISTHMUS_MODELS_ALIASES", "a=demo/x, b=demo/y", "models.aliases", {"a": "demo/x", "b": "demo/y"}, id="table"
        ),
        pytest.param(
            "ISTHMUS_PROVIDERS_OPENAI_COMPATIBLE_BASE_URL",
            "http://127.0.0.1:1/v1",
            "providers.openai-compatible.base_url",
            "http://127.0.0.1:1/v1",
            id="provider with a dash",
        ),
        pytest.param(
            "ISTHMUS_PROVIDERS_GROQ_TIMEOUTS_IDLE", "5s", "providers.groq.timeouts.idle", 5.0, id="nested in a provider"
        ),
        pytest.param("ISTHMUS_PROVIDERS_GROQ_API_KEYS", "a1, b2", "providers.groq.api_keys", ["a1", "b2"], id="list"),
    ],
)
def test_every_key_has_its_variable(read: Read, variable: str, value: str, path: str, expected: object) -> None:
    reading = read("", **{variable: value})
    assert reading.errors == ()
    found: Any = reading.config
    for part in path.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    assert found == expected


def test_a_misspelt_variable_is_a_warning_with_a_suggestion(read: Read) -> None:
    reading = read("", ISTHMUS_SERVER_PROT="1", ISTHMUS_CONFIG="", ISTHMUS_API_KEY="x")
    assert [problem.text for problem in reading.warnings] == [
        "$ISTHMUS_SERVER_PROT: sets no known key. Fix: did you mean `ISTHMUS_SERVER_PORT`?"
    ]


@pytest.mark.parametrize(
    ("text", "key", "line", "says"),
    [
        pytest.param("[server]\n\nprot = 1", "server.prot", 3, "did you mean `server.port`", id="unknown key"),
        pytest.param("[sever]\nport = 1", "sever", 1, "did you mean `server`", id="unknown section"),
        pytest.param("[log]\nzzzz = 1", "log.zzzz", 2, "has `level`, `format`", id="nothing near: the keys are listed"),
        pytest.param(
            "[providers.groq]\ntimeouts = { conect = 1 }", "providers.groq.timeouts.conect", 2, "connect", id="nested"
        ),
        pytest.param(
            '[server]\nport = "x"', "server.port", 2, "an integer from 0 to 65535, not the string 'x'", id="type"
        ),
        pytest.param("[server]\nport = 70000", "server.port", 2, "from 0 to 65535, not the number 70000", id="range"),
        pytest.param("[server]\nport = true", "server.port", 2, "not the boolean true", id="boolean is no number"),
        pytest.param("[server]\nport = '1'", "server.port", 2, "not the string '1'", id="the file is strict"),
        pytest.param('[server]\ngrace = "3x"', "server.grace", 2, '"30s"', id="duration"),
        pytest.param('[server]\nmax_body = "3x"', "server.max_body", 2, '"10MB"', id="size"),
        pytest.param("[server]\ngrace = -1", "server.grace", 2, "a duration", id="negative duration"),
        pytest.param(
            "[providers.groq.timeouts]\nidle = 0", "providers.groq.timeouts.idle", 2, "a duration above 0", id="zero"
        ),
        pytest.param(
            '[log]\nlevel = "warn"',
            "log.level",
            2,
            '"debug", "info", "warning", "error" (did you mean "warning"?)',
            id="word",
        ),
        pytest.param("[models]\naliases = 3", "models.aliases", 2, "a table of strings", id="table"),
        pytest.param("[models.aliases]\na = 3", "models.aliases.a", 2, "a string, not the number 3", id="entry"),
        pytest.param("server = 3", "server", 1, "must be a table", id="section"),
        pytest.param("[providers]\ngroq = 3", "providers.groq", 2, "must be a table", id="provider"),
        pytest.param("[providers.groq]\napi_keys = 'x'", "providers.groq.api_keys", 2, "a list of strings", id="list"),
        pytest.param(
            "[providers.groq]\nendpoints = [1]", "providers.groq.endpoints[0]", 2, "must be a table", id="list entry"
        ),
        pytest.param(
            '[providers.groq]\ndialect = "chatt"',
            "providers.groq.dialect",
            2,
            'did you mean "chat"',
            id="optional word",
        ),
        pytest.param(
            "[models.fallbacks]\na = 'x/y'", "models.fallbacks.a", 2, "a list of strings", id="list in a table"
        ),
    ],
)
def test_a_wrong_file_names_key_line_and_expectation(
    read: Read, tmp_path: Path, text: str, key: str, line: int, says: str
) -> None:
    problem = read(text).errors[0]
    assert dotted(problem.key) == key
    assert problem.place == f"{tmp_path / 'isthmus.toml'}:{line}"
    assert says in problem.text


def test_all_problems_are_found_at_once(read: Read) -> None:
    reading = read(
        '[server]\nport = "x"\nhots = 1\n[models]\ndefault = "nope/x"\n[store]\nurl = "redis:"\n[log]\nlevel = 5\n'
        "[providers.groq]\napi_key = '${UNSET}'\nretries = 99\n[providers.what]\n"
    )
    assert [dotted(problem.key) for problem in reading.errors] == [
        "providers.groq.api_key",
        "server.port",
        "server.hots",
        "log.level",
        "providers.groq.retries",
        "providers.what",
        "models.default",
        "store.url",
    ]


def test_loading_raises_one_error_with_all_problems(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text("[server]\nport = -1\nx = 2\n")
    with pytest.raises(ConfigError) as caught:
        load_config(file, environ={"HOME": str(tmp_path)})
    assert "the configuration has 2 problems:\n- " in caught.value.message
    assert len(caught.value.metadata["problems"]) == 2
    file.write_text("[server]\nport = -1\n")
    with pytest.raises(ConfigError, match=r"isthmus\.toml:2: `server\.port` must be"):
        load_config(file, environ={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"[server\n", "not valid TOML", id="syntax"),
        pytest.param(b"a = '\xff'", "not UTF-8", id="encoding"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "isthmus.toml").write_bytes(data)
    with pytest.raises(ConfigError, match=says):
        read_config(environ={"HOME": "/nowhere"}, cwd=tmp_path)


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "isthmus.toml").write_bytes(b"\xef\xbb\xbf[server]\r\nport = 5\r\n")
    assert load_config(environ={"HOME": "/nowhere"}, cwd=tmp_path).config.server.port == 5


def test_references_stand_for_any_type(read: Read) -> None:
    reading = read(
        '[server]\nport = "${PORT:-9000}"\ngrace = "${GRACE}"\n'
        '[plan]\nstrict = "${STRICT}"\n[log]\nlevel = "${LEVEL}"\n',
        GRACE="5s",
        STRICT="true",
        LEVEL="debug",
    )
    assert reading.errors == ()
    config = reading.config
    assert (config.server.port, config.server.grace, config.plan.strict, config.log.level) == (9000, 5.0, True, "debug")


def test_a_wrong_value_from_a_variable_is_not_shown(read: Read) -> None:
    (problem,) = read('[server]\nport = "${PORT}"', PORT="sesame").errors
    assert "sesame" not in problem.text
    (problem,) = read("", ISTHMUS_PORT="sesame").errors
    assert problem.text.startswith(
        "$ISTHMUS_PORT: `server.port` must be an integer from 0 to 65535. Fix: write for example"
    )


def test_a_wrong_secret_is_not_shown(read: Read) -> None:
    (problem,) = read("[providers.groq]\napi_key = 12345\n[models]\ndefault='demo/x'").errors
    assert "12345" not in problem.text


def test_an_unset_variable_is_no_problem_where_something_stronger_speaks(read: Read) -> None:
    text = "[providers.groq]\napi_key = '${UNSET}'"
    assert read(text).errors != ()
    assert read(text, ISTHMUS_PROVIDERS_GROQ_API_KEY="k").errors == ()
    reading = read(text, {"providers.groq.api_key": "k"})
    assert reading.errors == ()
    assert reading.config.providers["groq"].api_key == "k"


def test_flags_may_quote_keys_as_toml_does(read: Read) -> None:
    reading = read("", {'models.aliases."gpt-5.5"': "demo/x", "server.port": "81"})
    assert reading.config.models.aliases == {"gpt-5.5": "demo/x"}
    assert reading.config.server.port == 81
    with pytest.raises(ConfigError, match=r"`a b` is not a key"):
        read("", {"a b": 1})


def test_no_secret_shows_when_a_config_is_printed(read: Read) -> None:
    reading = read(
        """
        [providers.mine]
        uses = "openai-compatible"
        base_url = "http://u:SECRET-1@127.0.0.1/v1?token=SECRET-2"
        api_keys = ["SECRET-3"]
        proxy = "http://u:SECRET-4@proxy:1"
        headers = { Authorization = "Bearer SECRET-5", X-Team = "Bearer SECRET-6" }
        query = { key = "SECRET-7" }
        [[providers.two.endpoints]]
        base_url = "http://127.0.0.1/v1"
        api_key = "SECRET-8"
        [providers.two]
        uses = "openai-compatible"
        [providers.groq]
        """,
        GROQ_API_KEY="SECRET-9",
    )
    assert reading.config.providers["groq"].api_key == "SECRET-9"
    for shown in (repr(reading.config), str(reading.config), f"{reading.config.providers}", repr(reading)):
        assert "SECRET" not in shown


def test_a_key_in_a_file_for_all_to_read_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text("[providers.groq]\napi_key = 'k'\n[providers.xai]\napi_key = '${K}'")
    file.chmod(0o644)
    reading = read_config(file, environ={"HOME": str(tmp_path), "K": "k"})
    assert [dotted(problem.key) for problem in reading.warnings] == ["providers.groq.api_key"]
    assert "chmod 600" in reading.warnings[0].fix
    file.chmod(0o600)
    assert read_config(file, environ={"HOME": str(tmp_path), "K": "k"}).warnings == ()


_LEAVES = (
    st.booleans() | st.integers(-5, 99999) | st.floats() | st.sampled_from(["", "x", "a/b", "memory:", "${X}", "5s"])
)
_KEYS = st.sampled_from(
    [
        "server",
        "models",
        "providers",
        "store",
        "plan",
        "log",
        "port",
        "host",
        "aliases",
        "fallbacks",
        "default",
        "url",
        "groq",
        "mine",
        "uses",
        "api_key",
        "api_keys",
        "headers",
        "timeouts",
        "idle",
        "endpoints",
        "codex",
        "provider_folders",
        "level",
        "demo",
        "x",
    ]
)
_TREES = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(_KEYS, st.dictionaries(_KEYS, _TREES, max_size=4) | _LEAVES, max_size=5))
def test_any_toml_gives_a_config_or_problems_and_never_another_error(read: Read, tree: dict[str, Any]) -> None:
    from isthmus.values.toml_text import toml_key, toml_value

    text = "".join(f"{toml_key(key)} = {toml_value(value)}\n" for key, value in tree.items())
    for problem in read(text).problems:
        assert problem.message
        assert problem.fix
