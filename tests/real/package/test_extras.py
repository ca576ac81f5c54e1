"""Each extra alone: what it promises works with nothing else installed, and without it the error says its name."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doc_pages import ROOT
from isthmus.testing import ScriptedUpstream, chat, reply
from mcp_world import running_server
from postgres import empty_database
from real.codex_backend.house import make_home
from real.codex_backend.rig import says
from real.package.conftest import Built, Installed, add
from real.redis.conftest import Redis
from strict_clouds import TokenServer, service_account

pytestmark = pytest.mark.real

BASE = "[log]\nlevel = 'error'\n[store]\nurl = '{store}'\n"
HELLO = ("isthmus", "chat", "hello", "--config")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def use_bedrock(here: Installed) -> None:
    """A profile's credentials, which need botocore."""
    (here.folder / "credentials").write_text("[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = secret\n")
    where = {"AWS_PROFILE": "work", "AWS_SHARED_CREDENTIALS_FILE": str(here.folder / "credentials")}
    with ScriptedUpstream.running([chat("Signed for.")]) as upstream:
        sign = "auth = 'sigv4'\nsign = { service = 'bedrock-mantle', region = 'eu-west-1' }\n"
        config = own_provider(here, "bedrock", f"base_url = '{upstream.base_url}'\nkey_env = []\n{sign}")
        assert "Signed for." in here.run(*HELLO, config, "-m", "mine/acme.chat", **where)
        (asked,) = upstream.requests
    assert asked.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDWORK/")


def use_vertex(here: Installed) -> None:
    """A token for a service account's file, which needs google-auth."""
    tokens = TokenServer()
    with ScriptedUpstream.running(default=tokens) as google, ScriptedUpstream.running([chat("Let in.")]) as upstream:
        account = service_account(here.folder, f"{google.base_url}/token")
        config = own_provider(here, "vertex", f"base_url = '{upstream.base_url}'\n")
        model = "mine/google/gemini-3.5-flash"
        assert "Let in." in here.run(*HELLO, config, "-m", model, GOOGLE_APPLICATION_CREDENTIALS=str(account))
        assert upstream.requests[0].headers["authorization"] == f"Bearer {tokens.issued[0]}"


def use_codex(here: Installed) -> None:
    """The real program is found, started and asked; the model behind it is scripted."""
    with ScriptedUpstream.running([says("By Codex.")]) as upstream:
        home = make_home(here.folder, upstream.base_url)
        config = here.config(
            BASE.format(store="memory:")
            + "[models]\ndemo = false\ndefault = 'codex/gpt-5.5'\n[providers.codex]\nuses = 'codex'\n"
            + f"[providers.codex.codex]\nhome = '{home}'\n"
        )
        assert "By Codex." in here.run(*HELLO, config)


def use_mcp(here: Installed) -> None:
    with running_server() as url:
        config = here.config(BASE.format(store="memory:") + f"[mcp.world]\nurl = '{url}'\n")
        assert "weather" in here.run("isthmus", "mcp", "list", "--config", config)


def use_otel(here: Installed) -> None:
    with ScriptedUpstream.running(default=reply({})) as collector:
        where = f"http://127.0.0.1:{collector.port}"
        config = here.config(BASE.format(store="memory:") + f"[otel]\nenabled = true\nendpoint = '{where}'\n")
        with here.serving("--config", config) as gateway:
            assert gateway.post("/v1/responses", {"input": "hi"})["status"] == "completed"
        sent = {request.path: request.body for request in collector.requests}
    assert b"POST /v1/responses" in sent["/v1/traces"]


def use_pages(here: Installed) -> None:
    """What a worker process does with a page: nothing here is public enough to be opened."""
    config = here.config(BASE.format(store="memory:") + CONFIGS["pages"])
    here.run("isthmus", "config", "check", "--config", config)
    code = (
        "import msgspec; from isthmus.upstream.search.extract import Extraction, extract\n"
        "html = b'<html><head><title>Tides</title></head><body><article><p>' + b'High water at ten. ' * 20 + b'</p>'\n"
        "print(extract(Extraction(html, 'text/html', 'utf-8', 'https://a.example/', 200)))"
    )
    assert "High water at ten." in here.run("python", "-c", code)


def use_postgres(here: Installed) -> None:
    config = here.config(BASE.format(store=empty_database()))
    with here.serving("--config", config) as gateway:
        made = gateway.post("/v1/responses", {"input": "hi"})["id"]
    with here.serving("--config", config) as gateway:
        assert made in gateway.get(f"/v1/responses/{made}")


def use_redis(here: Installed) -> None:
    server = Redis(here.folder)
    server.start()
    try:
        limits = f"[limits]\nredis = '{server.url}'\nrequests_per_minute = 1\n"
        config = here.config(BASE.format(store="memory:") + limits)
        for status in ("completed", "rate_limit"):  # another process, and it knows what the first one has used
            with here.serving("--config", config) as gateway:
                assert status in str(gateway.post("/v1/responses", {"input": "hi"}))
    finally:
        server.stop()


USES: dict[str, Callable[[Installed], None]] = {
    name.removeprefix("use_"): use for name, use in list(globals().items()) if name.startswith("use_")
}


def test_every_extra_is_used() -> None:
    assert set(USES) | {"all"} == set(EXTRAS)


@pytest.mark.parametrize("extra", sorted(USES))
def test_an_extra_works_alone(extra: str, bare: Installed, built: Built, cache: Path, tmp_path: Path) -> None:
    here = bare.copy(tmp_path)
    add(here, cache, f"isthmus[{extra}] @ {built.wheel.as_uri()}")
    USES[extra](here)


CONFIGS = {
    "bedrock": "[models]\ndefault = 'bedrock/a'\n[providers.bedrock]\nendpoint = 'sigv4'\n"
    "[providers.bedrock.variables]\nAWS_REGION = 'eu-west-1'\n",
    "codex": "[models]\ndefault = 'codex/a'\n[providers.codex]\nuses = 'codex'\n",
    "mcp": "[mcp.world]\nurl = 'http://127.0.0.1:1/mcp'\n",
    "otel": "[otel]\nenabled = true\n",
    "pages": "[search]\nbackend = 'searxng'\nurl = 'http://127.0.0.1:1'\nopen_pages = true\n",
    "postgres": "[store]\nurl = 'postgresql://nobody@127.0.0.1:1/none'\n",
    "redis": "[limits]\nredis = 'redis://127.0.0.1:1/0'\n",
    "vertex": "[models]\ndefault = 'vertex/a'\n[providers.vertex]\n[providers.vertex.variables]\n"
    "GOOGLE_VERTEX_PROJECT = 'p-1'\n",
}


@pytest.mark.parametrize("extra", sorted(USES))
def test_without_it_the_error_names_it(extra: str, bare: Installed) -> None:
    config = bare.config(CONFIGS[extra])
    said = " ".join(bare.run("isthmus", "serve", "--port", "0", "--config", config, fails=True).split())
    assert f"isthmus[{extra}]" in said
    assert "Traceback" not in said


def own_provider(here: Installed, extends: str, endpoint: str) -> Path:
    folder = here.folder / "providers"
    folder.mkdir()
    (folder / "mine.toml").write_text(f"extends = '{extends}'\n[endpoint]\n{endpoint}")
    head = f"provider_folders = ['{folder}']\n{BASE.format(store='memory:')}"
    return here.config(head + "[models]\ndemo = false\ndefault = 'mine/a'\n[providers.mine]\n")
