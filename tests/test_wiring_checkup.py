"""One provider as it is configured: every dialect, every way to show who asks, and what to do if it is no good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_program import alive, install
from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.testing import RecordedRequest, ScriptedUpstream, Step, chat, error, reply
from isthmus.wiring_checkup import Checkup, check_providers, check_up
from speaking_messages import claude, said
from speaking_responses import native
from strict_clouds import AWS, AZURE_KEY, REGION, TokenServer, refused_signature, service_account
from waiting import until

SECRET = "sk-checkup-2d7e91b0c4"
LISTED = reply({"data": [{"id": "a"}, {"id": "b"}, {"id": "c"}]})


def wants(header: str, value: str) -> Step:
    """A list for those who show this."""
    return lambda request: LISTED if request.headers.get(header) == value else error(401, f"bad {SECRET}")


async def check(
    folder: Path, text: str, name: str = "mine", *, environ: dict[str, str] | None = None, **options: Any
) -> Checkup:
    files = f'provider_folders = ["{folder / "files"}"]\n' if (folder / "files").is_dir() else ""
    (folder / "isthmus.toml").write_text(f'{files}[store]\nurl = "memory:"\n[models]\ndemo = false\n{text}')
    said = {"HOME": str(folder), **(environ or {})}
    config = load_config(folder / "isthmus.toml", environ=said).config
    found = await check_up(name, config, environ=said, **options)
    assert SECRET not in repr(found)
    return found


DIALECTS = {
    "chat": ("deepseek", "/v1/models", "authorization", f"Bearer {SECRET}", ""),
    "responses": ("openai", "/v1/models", "authorization", f"Bearer {SECRET}", "dialect = 'responses'\n"),
    "messages": ("anthropic", "/v1/models", "x-api-key", SECRET, ""),
    "messages beside chat": (
        "openai-compatible",
        "/v1/models",
        "authorization",
        f"Bearer {SECRET}",
        "dialect = 'messages'\n",
    ),
    "a header of its own": ("azure", "/v1/models", "api-key", SECRET, ""),
    "the user's own header": (
        "openai-compatible",
        "/v1/models",
        "x-api-token",
        SECRET,
        f"headers = {{ x-api-token = '{SECRET}' }}\n",
    ),
}


@pytest.mark.parametrize(("uses", "path", "header", "value", "more"), DIALECTS.values(), ids=list(DIALECTS))
async def test_a_good_key_is_proven_and_a_wrong_one_told_in_every_dialect(
    tmp_path: Path, uses: str, path: str, header: str, value: str, more: str
) -> None:
    own = "headers" in more
    async with ScriptedUpstream(routes={path: wants(header, value)}) as upstream:
        section = f"[providers.mine]\nuses = '{uses}'\nbase_url = '{upstream.base_url}'\n"
        good = await check(tmp_path, section + (more if own else f"api_key = '{SECRET}'\n{more}"))
        wrong = await check(
            tmp_path, section + (more.replace(SECRET, "wrong") if own else f"api_key = 'wrong'\n{more}")
        )
    assert (good.verdict, good.sound, good.by, good.paid) == ("ready", True, "list", False)
    assert good.models == ("a", "b", "c")
    assert good.address == upstream.base_url
    assert good.remedy == ""
    assert (wrong.verdict, wrong.sound) == ("key_refused", False)
    assert "providers.mine" in wrong.told
    assert wrong.remedy


async def test_messages_are_listed_where_they_are_spoken(tmp_path: Path) -> None:
    """Vendors name that address without its version."""
    async with ScriptedUpstream(routes={"/anthropic/v1/models": LISTED}) as upstream:
        section = f"[providers.mine]\nuses = 'anthropic'\napi_key = '{SECRET}'\nbase_url = '{upstream.url}/anthropic'\n"
        assert (await check(tmp_path, section)).models == ("a", "b", "c")


async def test_a_missing_key_names_its_variable_and_nothing_is_sent(tmp_path: Path) -> None:
    folder = tmp_path / "providers"
    folder.mkdir()
    async with ScriptedUpstream() as upstream:
        (folder / "house.toml").write_text(
            f"[endpoint]\nbase_url = '{upstream.base_url}'\nkey_env = ['HOUSE_API_KEY']\n"
        )
        text = f"provider_folders = ['{folder}']\n"
        (tmp_path / "isthmus.toml").write_text(f"{text}[models]\ndefault = 'demo/demo'\n")
        config = load_config(tmp_path / "isthmus.toml", environ={"HOME": str(tmp_path)}).config
        found = await check_up("house", config, environ={})
        assert upstream.requests == upstream.questions == []
    assert (found.verdict, found.by) == ("no_key", "connection")
    assert found.told == "can be reached, and has no key"
    assert found.remedy == "set `$HOUSE_API_KEY` or `providers.house.api_key`"


async def test_a_key_that_is_withheld_is_told_with_the_line_that_sends_it(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes={"/v1/models": wants("authorization", f"Bearer {SECRET}")}) as upstream:
        section = f"[providers.deepseek]\nbase_url = '{upstream.base_url}'\n"
        withheld = await check(tmp_path, section, "deepseek", environ={"DEEPSEEK_API_KEY": SECRET})
        none = await check(tmp_path, section, "deepseek")
        assert not any("authorization" in request.headers for request in upstream.requests)
    assert withheld.verdict == "key_withheld"
    assert "`$DEEPSEEK_API_KEY` was not sent" in withheld.told
    assert withheld.remedy == 'write `providers.deepseek.api_key = "${DEEPSEEK_API_KEY}"` if it is for this host, too'
    assert none.verdict == "no_key"
    assert none.remedy == "set `$DEEPSEEK_API_KEY` or `providers.deepseek.api_key`"


async def test_a_local_server_that_wants_no_key_is_ready_though_one_was_withheld(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes={"/v1/models": LISTED}) as upstream:
        section = f"[providers.deepseek]\nbase_url = '{upstream.base_url}'\n"
        found = await check(tmp_path, section, "deepseek", environ={"DEEPSEEK_API_KEY": SECRET})
    assert found.verdict == "ready"


async def test_of_several_keys_the_bad_one_is_found(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes={"/v1/models": wants("authorization", f"Bearer {SECRET}")}) as upstream:
        section = (
            f"[providers.mine]\nuses = 'deepseek'\nbase_url = '{upstream.base_url}'\napi_keys = ['{SECRET}', 'wrong']\n"
        )
        found = await check(tmp_path, section)
        both = await check(tmp_path, section.replace("wrong", SECRET))
    assert found.verdict == "key_refused"
    assert found.told.startswith("place 2 of 2: refused our credentials")
    assert "api_keys[1]" in found.told
    assert both.told.startswith("all 2 places: takes the key")


async def test_a_signed_list_proves_the_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("ACCESS_KEY_ID", AWS.access_key),
        ("SECRET_ACCESS_KEY", AWS.secret_key),
        ("SESSION_TOKEN", AWS.token),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)

    def judged(request: RecordedRequest) -> Step:
        why = refused_signature(request) if "authorization" in request.headers else (403, "no signature")
        return LISTED if why is None else error(*why)

    async with ScriptedUpstream(routes={"/v1/models": judged}) as upstream:
        signed = f"auth = 'sigv4'\nsign = {{ service = 'bedrock-mantle', region = '{REGION}' }}\n"
        text = cloud(tmp_path, "bedrock", f"[endpoint]\nbase_url = '{upstream.base_url}'\nkey_env = []\n{signed}")
        found = await check(tmp_path, text)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        wrong = await check(tmp_path, text)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        none = await check(tmp_path, text)
    assert (found.verdict, found.models) == ("ready", ("a", "b", "c"))
    assert wrong.verdict == "key_refused"
    assert none.verdict == "no_key"
    assert "there are no AWS credentials" in none.told


async def test_a_token_is_fetched_for_a_cloud_that_has_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = TokenServer()
    async with ScriptedUpstream(routes={"/token": tokens}) as upstream:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(service_account(tmp_path, f"{upstream.url}/token")))
        text = cloud(tmp_path, "vertex", f"[endpoint]\nbase_url = '{upstream.base_url}'\n")
        found = await check(tmp_path, text)
        assert [question.headers["authorization"] for question in upstream.questions] == [f"Bearer {tokens.issued[0]}"]
    assert found.verdict == "unproven"
    assert "--ask" in found.remedy


def cloud(folder: Path, extends: str, endpoint: str) -> str:
    """A provider file at another address, and the configuration that uses it."""
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "mine.toml").write_text(f"extends = '{extends}'\n{endpoint}")
    return "[providers.mine]\n"


async def test_the_demo_needs_nobody(tmp_path: Path) -> None:
    found = await check(tmp_path, "[providers.demo]\n", "demo")
    assert (found.verdict, found.by) == ("ready", "itself")
    assert "demo" in (found.models or ())


async def test_codex_is_started_asked_and_ended(tmp_path: Path) -> None:
    program = install(tmp_path)
    section = f"[providers.codex]\n[providers.codex.codex]\nbinary = '{program}'\n"
    found = await check(tmp_path, section, "codex")
    assert (found.verdict, found.by) == ("ready", "program")
    until(lambda: not alive(program))


async def test_no_codex_is_told_with_what_to_install(tmp_path: Path) -> None:
    found = await check(tmp_path, "[providers.deepseek]\n", "codex", environ={})
    assert found.verdict in ("not_configured", "no_key", "ready")
    missing = f"[providers.codex]\n[providers.codex.codex]\nbinary = '{tmp_path / 'none'}'\n"
    gone = await check(tmp_path, missing, "codex")
    assert gone.verdict == "not_configured"
    assert "set `binary`" in gone.told


ASKED = {
    "chat": ("openai-compatible", "/v1/chat/completions", chat("ready"), ""),
    "responses": ("openai", "/v1/responses", native("ready"), "dialect = 'responses'\n"),
    "messages": ("anthropic", "/v1/messages", claude(said("ready")), ""),
}


@pytest.mark.parametrize(("uses", "path", "answer", "more"), ASKED.values(), ids=list(ASKED))
async def test_a_request_tells_what_a_list_cannot(
    tmp_path: Path, uses: str, path: str, answer: Step, more: str
) -> None:
    async with ScriptedUpstream([answer], routes={"/v1/models": LISTED}) as upstream:
        text = f"[providers.mine]\nuses = '{uses}'\nbase_url = '{upstream.base_url}'\napi_key = '{SECRET}'\n{more}"
        free = await check(tmp_path, text)
        assert not any(request.path == path for request in upstream.requests), "nothing is paid for unasked"
        asked = await check(tmp_path, text, ask=True, model="a")
        (sent,) = [request for request in upstream.requests if request.path == path]
        assert sent.json["model"] == "a"
    assert free.verdict == "unproven"
    assert (asked.verdict, asked.by) == ("ready", "request")
    assert "`a`" in asked.told


async def test_a_request_that_fails_says_of_which_model(tmp_path: Path) -> None:
    async with ScriptedUpstream(
        [error(404, "The model `nope` does not exist")], routes={"/v1/models": LISTED}
    ) as upstream:
        text = f"[providers.mine]\nuses = 'openai-compatible'\nbase_url = '{upstream.base_url}'\napi_key = '{SECRET}'\n"
        found = await check(tmp_path, text, ask=True, model="nope")
    assert found.verdict == "not_found"
    assert found.told.startswith("asked for `nope`: ")
    assert found.remedy == "name another model with `--model`"


async def test_a_request_without_a_model_to_ask_is_not_made(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes={"/v1/models": reply({"data": []})}) as upstream:
        text = f"[providers.mine]\nuses = 'openai-compatible'\nbase_url = '{upstream.base_url}'\n"
        found = await check(tmp_path, text, ask=True)
    assert "name one with `--model`" in found.told


async def test_nobody_there_says_what_to_start_or_where_to_look(tmp_path: Path) -> None:
    here = await check(tmp_path, "[providers.mine]\nuses = 'ollama'\nbase_url = 'http://127.0.0.1:1/v1'\n")
    there = await check(tmp_path, "[providers.mine]\nuses = 'ollama'\nbase_url = 'http://nobody.invalid/v1'\n")
    assert (here.verdict, there.verdict) == ("unreachable", "unreachable")
    assert here.remedy == "start it, or correct `providers.mine.base_url`"
    assert "HTTPS_PROXY" in there.remedy


async def test_what_is_wrong_in_the_configuration_is_told_and_nobody_asked(tmp_path: Path) -> None:
    config = load_config(environ={"HOME": str(tmp_path)}, cwd=tmp_path).config
    azure = await check_up("azure", config, environ={"AZURE_OPENAI_API_KEY": AZURE_KEY})
    assert azure.verdict == "not_configured"
    assert "AZURE_RESOURCE_NAME" in azure.told
    assert "export AZURE_RESOURCE_NAME" in azure.remedy
    (broken, demo) = await check_providers(config, ["mine", "demo"], {"mine": "`x` is wrong. Fix: remove it"})
    assert (broken.verdict, broken.told, broken.remedy) == ("not_configured", "`x` is wrong", "remove it")
    assert demo.sound
    with pytest.raises(ConfigError, match="did you mean `openai`"):
        await check_up("opnai", config)
