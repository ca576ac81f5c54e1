"""A configuration that cannot work says so, with the fix."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from isthmus.config import read_config
from isthmus.values.problems import dotted

LOCAL = 'uses = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\n'


def _problems(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    file = tmp_path / "isthmus.toml"
    file.write_text(text)
    file.chmod(0o600)
    problems = read_config(file, environ={"HOME": str(tmp_path)}).problems
    return [(problem.severity, dotted(problem.key), f"{problem.message}. {problem.fix}") for problem in problems]


@pytest.mark.parametrize(
    ("text", "severity", "key", "says"),
    [
        pytest.param(
            '[models]\ndefault = "deepsek/x"\n[providers.deepseek]\napi_key = "k"',
            "error",
            "models.default",
            "did you mean `deepseek/x`",
            id="default with a misspelt provider",
        ),
        pytest.param(
            '[trace]\nscrub = ["fine", "(open"]',
            "error",
            "trace.scrub[1]",
            "is no regular expression",
            id="a pattern that is none",
        ),
        pytest.param('[models]\ndefault = "x"', "error", "models.default", "nor an alias", id="default without slash"),
        pytest.param(
            '[models.aliases]\n"a/b" = "demo/x"', "error", 'models.aliases."a/b"', "slash", id="alias with a slash"
        ),
        pytest.param(
            '[models.aliases]\na = "demo"', "error", "models.aliases.a", "`demo/MODEL`", id="alias to a bare name"
        ),
        pytest.param(
            '[models.aliases]\na = "nope/x"', "error", "models.aliases.a", "[providers.nope]", id="alias to nowhere"
        ),
        pytest.param(
            '[models.aliases]\nfast = "demo/x"\n[models.fallbacks]\nfats = ["demo/y"]',
            "error",
            "models.fallbacks.fats",
            "did you mean `fast`",
            id="fallback of nothing",
        ),
        pytest.param(
            '[models.fallbacks]\n"*" = ["x"]',
            "error",
            'models.fallbacks."*"',
            "provider/model",
            id="fallback to a bare name",
        ),
        pytest.param(
            '[images]\nprovider = "dmo"',
            "error",
            "images.provider",
            "did you mean `demo`",
            id="no such painter",
        ),
        pytest.param(
            '[images]\nurl = "ftp://x"\nmodel = "m"', "error", "images.url", "http or https", id="a painter far away"
        ),
        pytest.param(
            '[images]\nurl = "https://x/v1"', "error", "images.model", "name the model", id="a painter without a model"
        ),
        pytest.param(
            '[images]\nurl = "https://x/v1"\nmodel = "m"\nprovider = "demo"',
            "error",
            "images.url",
            "excludes `provider`",
            id="two painters",
        ),
        pytest.param(
            '[images]\nprovider = "demo"\napi_key = "k"',
            "error",
            "images.api_key",
            "only with `url`",
            id="a painter's key for nobody",
        ),
        pytest.param(
            '[images]\nurl = "http://x.example/v1"\nmodel = "m"\napi_key = "k"',
            "warning",
            "images.url",
            "plain HTTP",
            id="a painter's key in the clear",
        ),
        pytest.param(
            "[providers.deepsek]", "error", "providers.deepsek", "did you mean `deepseek`", id="provider without a file"
        ),
        pytest.param(
            '[providers.mine]\nuses = "groqq"',
            "error",
            "providers.mine.uses",
            "did you mean `groq`",
            id="uses without a file",
        ),
        pytest.param(f'[providers."a/b"]\n{LOCAL}', "error", 'providers."a/b"', "slash", id="provider with a slash"),
        pytest.param(
            '[providers.mine]\nuses = "vllm"\nbase_url = "127.0.0.1:80"',
            "error",
            "providers.mine.base_url",
            "URL",
            id="no URL",
        ),
        pytest.param(
            '[providers.mine]\nuses = "vllm"\nbase_url = "http://h:99999/"',
            "error",
            "providers.mine.base_url",
            "URL",
            id="bad port",
        ),
        pytest.param(
            f'[providers.mine]\n{LOCAL}proxy = "socks5://h:1"',
            "error",
            "providers.mine.proxy",
            "http or https",
            id="proxy",
        ),
        pytest.param(
            f'[providers.mine]\n{LOCAL}api_key = "a"\napi_keys = ["b"]',
            "error",
            "providers.mine.api_keys",
            "keep one",
            id="two keys",
        ),
        pytest.param(
            f'[providers.mine]\n{LOCAL}api_keys = [""]',
            "error",
            "providers.mine.api_keys[0]",
            "empty",
            id="empty key",
        ),
        pytest.param(
            f"[providers.mine]\n{LOCAL}endpoints = [{{}}]",
            "error",
            "providers.mine.endpoints",
            "`base_url`",
            id="two addresses",
        ),
        pytest.param(
            f'[providers.mine]\n{LOCAL}api_key = "a\\n"', "error", "providers.mine.api_key", "trim", id="line break"
        ),
        pytest.param(
            f'[providers.mine]\n{LOCAL}headers = {{ X = "é" }}',
            "error",
            "providers.mine.headers.X",
            "ASCII",
            id="header",
        ),
        pytest.param(
            f"[providers.mine]\n{LOCAL}codex = {{ home = 'x' }}", "error", "providers.mine.codex", "codex", id="codex"
        ),
        pytest.param(
            f"[providers.mine.models.x.limits]\ncontxt = 5\n[providers.mine]\n{LOCAL}",
            "error",
            "providers.mine.models.x.limits.contxt",
            "did you mean `providers.mine.models.x.limits.context`",
            id="model facts",
        ),
        pytest.param(
            '[providers.zhipu]\nendpoint = "zia"\napi_key = "k"',
            "error",
            "providers.zhipu.endpoint",
            "`zai`",
            id="endpoint",
        ),
        pytest.param('[store]\nurl = "sqlit:x"', "error", "store.url", "did you mean `sqlite:`", id="store"),
        pytest.param('[store]\nurl = "sqlite:"', "error", "store.url", "names no file", id="store without a file"),
        pytest.param('[store]\nurl = "sqlite::memory:"', "error", "store.url", "write `memory:`", id="sqlite memory"),
        pytest.param('[store]\nurl = "isthmus.db"', "error", "store.url", "sqlite:PATH", id="store without a scheme"),
        pytest.param('[store]\nurl = "postgresq://x"', "error", "store.url", "`postgresql:`", id="server misspelt"),
        pytest.param(
            '[store]\nenvelope_key = "short"', "error", "store.envelope_key", "fewer than 16", id="envelope key"
        ),
        pytest.param('[store]\nurl = ""', "error", "store.url", "not empty", id="empty store"),
        pytest.param(
            "[models]\ndefault='groq/x'",
            "error",
            "providers.groq.api_key",
            "set `GROQ_API_KEY`",
            id="default without its key",
        ),
        pytest.param(
            "[providers.groq]", "warning", "providers.groq.api_key", "is missing. set", id="another without its key"
        ),
        pytest.param('[server]\nhost = "0.0.0.0"', "warning", "server.host", "127.0.0.1", id="open to the world"),
        pytest.param(
            f"[providers.mine]\n{LOCAL}verify_tls = false",
            "warning",
            "providers.mine.verify_tls",
            "certificate",
            id="no TLS",
        ),
        pytest.param(
            '[providers.mine]\nuses = "vllm"\nbase_url = "http://far.example/v1"\napi_key = "k"',
            "warning",
            "providers.mine.base_url",
            "plain HTTP",
            id="key over plain HTTP",
        ),
        pytest.param(
            '[providers.mine]\nuses = "vllm"\nbase_url = "http://127.evil.example/v1"\napi_keys = ["a", "b"]',
            "warning",
            "providers.mine.base_url",
            "plain HTTP",
            id="several keys over plain HTTP, to a name that looks local",
        ),
    ],
)
def test_a_problem_is_found_alone_with_its_fix(tmp_path: Path, text: str, severity: str, key: str, says: str) -> None:
    ((found_severity, found_key, found_text),) = _problems(tmp_path, text)
    assert (found_severity, found_key) == (severity, key)
    assert says in found_text


def test_a_store_on_a_server_needs_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, found = '[store]\nurl = "postgresql://me:word@db.example/isthmus"', importlib.util.find_spec
    assert _problems(tmp_path, text) == []
    monkeypatch.setattr("isthmus.config.check.find_spec", lambda name: None if name == "psycopg" else found(name))
    ((severity, key, says),) = _problems(tmp_path, text)
    assert (severity, key) == ("error", "store.url")
    assert "install `isthmus[postgres]`" in says
    assert "word" not in says


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[models]\ndefault = "fast"\n[models.aliases]\nfast = "demo/x"', id="default is an alias"),
        pytest.param('[providers.mine]\nuses = "codex"\ncodex = { home = "~/x", approvals = "allow" }', id="codex"),
        pytest.param(
            '[providers.zhipu]\nendpoints = [{ api_key = "a" }, { base_url = "https://x.example", api_key = "b" }]',
            id="keys per endpoint",
        ),
        pytest.param("[providers.llama-cpp]", id="local server without a key"),
        pytest.param(
            f'[providers.mine]\n{LOCAL}[providers.mine.models."x*"]\nexample = "x1"\nlimits = {{ context = 5 }}',
            id="facts",
        ),
        pytest.param(f'[providers.mine]\n{LOCAL}proxy = "direct"', id="no proxy"),
        pytest.param('[server]\nhost = "::1"\nport = 0', id="loopback of IPv6"),
        pytest.param('[models.fallbacks]\n"demo/demo" = ["demo/other"]\n"*" = ["demo/x"]', id="fallbacks of a model"),
        pytest.param('[providers.demo]\ntimeouts = { idle = "1s" }', id="the demo has settings too"),
    ],
)
def test_a_sound_configuration_has_no_problems(tmp_path: Path, text: str) -> None:
    assert _problems(tmp_path, text) == []
