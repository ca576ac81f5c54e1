"""From a configuration to those who watch: which words name a model, and what keeps a collector from being told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.providers.word.told import Told
from isthmus.wiring import running_gateway
from isthmus.wiring_watch import Names

TOML = """
[models]
demo = false
default = "main/by-default"
aliases = { fast = "main/By-Alias" }
fallbacks = { "main/by-key" = ["main/by-fallback"] }
[store]
url = "memory:"
[providers.main]
uses = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
models = { "by-entry" = {}, "glob-*" = {} }
"""


def config(folder: Path, more: str = "") -> Any:
    (folder / "isthmus.toml").write_text(TOML + more)
    return load_config(folder / "isthmus.toml", environ={"HOME": str(folder)}).config


async def test_a_model_is_known_by_whoever_names_it_in_the_configuration_or_at_its_server(tmp_path: Path) -> None:
    settings = config(tmp_path)
    async with running_gateway(settings) as gateway:
        served = gateway.directory.served
        names = Names()
        names.adopt(settings, served)
        assert names("main") == {"by-default", "by-alias", "by-key", "by-fallback", "by-entry"}
        served["main"].hear(Told(at=1.0, models=("from-its-server",)))
        assert "from-its-server" in names("main")
        names.adopt(msgspec.structs.replace(settings, providers={}), {})
        assert names("main") == frozenset(), "it was taken out, and a request to it may still be under way"


async def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("isthmus.observe.otel")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    with pytest.raises(ConfigError, match=r"pip install 'isthmus\[otel\]'") as refused:
        async with running_gateway(config(tmp_path, "[otel]\nenabled = true\n")):
            pass
    assert refused.value.param == "otel.enabled"


async def test_a_trace_is_passed_on_to_providers_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`otel\.pass_on` names `other`, which is no provider here; these are: main"):
        async with running_gateway(config(tmp_path, '[otel]\nenabled = true\npass_on = ["other"]\n')):
            pass


async def test_whatever_the_environment_says_nothing_leaves_unless_it_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "isthmus.observe.otel.open", None)  # loading it would fail
    async with running_gateway(config(tmp_path)) as gateway:
        assert gateway.directory.served
