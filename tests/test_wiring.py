"""From a configuration to a gateway: which key a provider is sent is told at the start, and when it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.parse import parse_request
from isthmus.config import load_config
from isthmus.config.schema import ProviderConfig, Timeouts
from isthmus.errors import CredentialsRefused, UpstreamFailed
from isthmus.gateway.caller import LOCAL
from isthmus.providers import load_provider
from isthmus.testing import ScriptedUpstream, error
from isthmus.wiring import http_endpoint, running_gateway
from leaking import assert_silent, everything_of, listening

SECRET = "sk-wiring-8c1d4e7f90"
FAR = {"base_url": '"@UPSTREAM@"'}


async def refuse(
    folder: Path, name: str, settings: dict[str, str], status: int = 401, **environ: str
) -> tuple[Any, str]:
    """How the gateway fails a request whose credentials a provider refuses, and all that it logged since its start."""
    with ScriptedUpstream.running(default=error(status, f"Invalid key {SECRET}")) as upstream, listening() as said:
        lines = [f"{key} = {value}" for key, value in {"retries": "0", **settings}.items()]
        text = "\n".join(["[store]", 'url = "memory:"', "[models]", "demo = false", f"[providers.{name}]", *lines])
        (folder / "isthmus.toml").write_text(text.replace("@UPSTREAM@", upstream.base_url))
        config = load_config(folder / "isthmus.toml", environ={"HOME": str(folder), **environ}).config
        async with running_gateway(config) as gateway:
            run = await gateway.create(LOCAL, parse_request({"model": f"{name}/m", "input": "hi"}))
            with pytest.raises(UpstreamFailed) as caught:
                async for _ in run.events():
                    pass
    assert_silent([SECRET], error=everything_of(caught.value), log=said.text)
    return caught.value, said.text


CASES = {
    "a key in the file": ({"api_key": f'"{SECRET}"'}, {}, "the key in `providers.deepseek.api_key`"),
    "a variable that the file names": (
        {"api_key": '"${MINE}"'},
        {"MINE": SECRET},
        "the key in `$MINE` (by `providers.deepseek.api_key`)",
    ),
    "one of several keys": ({"api_keys": f'["{SECRET}"]'}, {}, "the key in `providers.deepseek.api_keys[0]`"),
    "a file": ({"api_key_file": '"secret"'}, {}, "the key in the file of `providers.deepseek.api_key_file`"),
    "a key that is kept for its own host": (
        {},
        {"DEEPSEEK_API_KEY": SECRET},
        "no key: the one in `$DEEPSEEK_API_KEY` is for `api.deepseek.com` only; "
        'write `providers.deepseek.api_key = "${DEEPSEEK_API_KEY}"` if it is for this host, too',
    ),
    "no key at all": ({}, {}, "no key, for want of one: set `$DEEPSEEK_API_KEY` or `providers.deepseek.api_key`"),
    "a header": (
        {"headers": f'{{ Authorization = "Bearer {SECRET}" }}'},
        {},
        "what stands in `headers` or `query` of `providers.deepseek`",
    ),
}


@pytest.mark.parametrize(("settings", "environ", "words"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named_by_its_source_at_the_start_and_in_the_error(
    tmp_path: Path, settings: dict[str, str], environ: dict[str, str], words: str, status: int
) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    failure, log = await refuse(tmp_path, "deepseek", {**FAR, **settings}, status, **environ)
    assert failure.code == "upstream_unauthorized"
    assert failure.message == f"provider `deepseek` refused our credentials (HTTP {status}); it was sent {words}"
    assert "provider.credential provider=deepseek sent=" in log
    assert words.replace("'", "\\'") in log


async def test_a_local_server_that_wants_a_key_after_all_says_where_to_put_it(tmp_path: Path) -> None:
    failure, _ = await refuse(tmp_path, "vllm", FAR)
    assert "no key, for want of one: set `$VLLM_API_KEY` or `providers.vllm.api_key`" in failure.message


def test_timeouts_are_what_the_wire_waits_by_and_nothing_is_copied() -> None:
    settings = ProviderConfig(timeouts=Timeouts(idle=7.0))
    assert http_endpoint("deepseek", load_provider("deepseek"), settings, "").patience is settings.timeouts


async def test_the_library_names_the_profile(tmp_path: Path) -> None:
    from isthmus import Bridge

    with ScriptedUpstream.running(default=error(401, "no")) as upstream:
        profiles = {"openai": {"prod": {"base_url": upstream.base_url, "api_key": SECRET, "dialect": "chat"}}}
        async with Bridge(profiles) as bridge:
            with pytest.raises(CredentialsRefused) as caught:
                await bridge.chat("openai@prod/gpt-5", "hi")
    assert "it was sent the key in `profiles.openai.prod.api_key`" in str(caught.value)
    assert_silent([SECRET], error=everything_of(caught.value))
