"""The guides about providers are followed to the letter: their files are used, their three lines are enough."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from doc_pages import ROOT, Block, read_blocks
from isthmus.cli.commands import app
from isthmus.config import read_config
from isthmus.providers import check_provider_file, load_provider
from isthmus.testing import ScriptedUpstream, chat
from serving import running_gateway_server
from talking import Talk, message_text

LOCAL = ROOT / "docs" / "guides" / "local-models.md"
ADD = ROOT / "docs" / "guides" / "add-a-provider.md"
CLOUDS = ROOT / "docs" / "guides" / "clouds.md"
ADDRESS = re.compile(r"http://localhost:\d+/v1")


def toml_blocks(page: Path) -> list[Block]:
    return [block for block in read_blocks(page) if block.language == "toml"]


THREE_LINES = [block.text for block in toml_blocks(LOCAL) if block.text.startswith("models.default")]


@pytest.mark.parametrize("lines", THREE_LINES, ids=[re.findall(r'"([\w-]+)/', text)[0] for text in THREE_LINES])
def test_three_lines_make_a_local_server_work(lines: str) -> None:
    assert len(lines.splitlines()) == 3
    with ScriptedUpstream.running([chat("Hello from here."), chat(calls=[("c1", "look", "{}")])]) as upstream:
        toml = ADDRESS.sub(upstream.base_url, lines)
        assert toml != lines
        wanted = re.findall(r'"[\w-]+/(.*)"', lines)[0]
        with running_gateway_server(f"{_quiet}{toml}") as gateway:
            talk = Talk(gateway.url)
            assert message_text(talk.create({"input": "Hi"})) == "Hello from here."
            tool: dict[str, Any] = {"type": "function", "name": "look", "parameters": {"type": "object"}}
            _, response = talk.stream({"input": "Look", "tools": [tool]})
        assert [item["type"] for item in response["output"]] == ["function_call"]
        assert [request.path for request in upstream.requests] == ["/v1/chat/completions"] * 2
        assert {request.json["model"] for request in upstream.requests} == {wanted}
        assert not any("authorization" in request.headers for request in upstream.requests)


_quiet = "server.port = 0\nstore.url = 'memory:'\nlog.level = 'error'\nmodels.demo = false\n"


def test_all_the_local_servers_have_their_lines() -> None:
    named = {re.findall(r'"([\w-]+)/', text)[0] for text in THREE_LINES}
    assert named == {"ollama", "vllm", "llama-cpp", "lmstudio", "sglang", "mine"}


def test_the_context_of_a_local_model_can_be_told() -> None:
    told = next(block.text for block in toml_blocks(LOCAL) if "limits" in block.text)
    with ScriptedUpstream.running() as upstream:
        toml = f"{_quiet}[providers.ollama]\nbase_url = {upstream.base_url!r}\n{told}"
        with running_gateway_server(toml) as gateway:
            facts = gateway.gateway.directory.find("ollama/qwen3:8b").target.capabilities
    assert facts.limits.context == 32768


def test_the_guides_file_is_a_whole_provider(tmp_path: Path) -> None:
    folder = tmp_path / "providers"
    folder.mkdir()
    whole, notice, derived, use, single = (block.text for block in toml_blocks(ADD))
    (folder / "acme.toml").write_text(f"{whole}\n{notice}")
    assert load_provider("acme", [folder]).notice.shows == {"data.0.owned_by": "acme"}
    (folder / "ours.toml").write_text(derived)
    assert check_provider_file(folder / "acme.toml") == []
    assert check_provider_file(folder / "ours.toml") == []
    assert load_provider("ours", [folder]).capabilities("deepseek-v4-pro").reasoning.scale == ["low", "high", "max"]
    checked = CliRunner().invoke(app, ["providers", "check", str(folder / "acme.toml")])
    assert checked.exit_code == 0, checked.output
    with ScriptedUpstream.running([chat("Clang."), chat("Cling.")]) as upstream:
        reached = f'base_url = "{upstream.base_url}"\napi_key = "sk-acme"\n'
        toml = f"{_quiet}{use.replace('./providers', str(folder))}{reached}{single}"
        with running_gateway_server(toml) as gateway:
            talk = Talk(gateway.url)
            response = talk.create({"input": "Strike", "reasoning": {"effort": "medium"}, "temperature": 1.8})
            talk.create({"model": "acme/anvil-2-mini", "input": "Strike", "reasoning": {"effort": "none"}})
        first, second = (request.json for request in upstream.requests)
    assert message_text(response) == "Clang."
    assert (first["model"], first["max_tokens"], first["temperature"]) == ("anvil-2", 8192, 1)
    assert first["reasoning_effort"] in ("low", "high")
    assert (second["model"], second["max_tokens"], second["think"]) == ("anvil-2-mini", 4096, False)
    assert upstream.requests[0].headers["authorization"] == "Bearer sk-acme"


def test_the_guides_explain_command_works(tmp_path: Path) -> None:
    whole = toml_blocks(ADD)[0].text
    (tmp_path / "acme.toml").write_text(whole)
    command = next(b.text for b in read_blocks(ADD) if b.text.startswith("isthmus explain"))
    arguments = command.split()[1:-1]
    request = ROOT / arguments[1]
    done = CliRunner().invoke(app, ["explain", str(request), *arguments[2:], str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)


CLOUD_BLOCKS = [block.text for block in toml_blocks(CLOUDS)]


@pytest.mark.parametrize("lines", [text for text in CLOUD_BLOCKS if "extends" not in text])
def test_what_the_page_of_the_clouds_shows_is_a_whole_configuration(lines: str, tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(lines)
    file.chmod(0o600)
    environ = {"HOME": str(tmp_path), "AZURE_OPENAI_API_KEY": "k-1", "AZURE_OPENAI_AUTH_TOKEN": "eyJ.1"}
    reading = read_config(file, environ={**environ, "AWS_BEARER_TOKEN_BEDROCK": "k-2"})
    assert reading.problems == ()
    for name, provider in reading.config.providers.items():
        assert "${" not in (provider.base_url or reading.known[name].base_url)


def test_the_clouds_own_file_is_sound(tmp_path: Path) -> None:
    (text,) = (text for text in CLOUD_BLOCKS if "extends" in text)
    (tmp_path / "ours.toml").write_text(text)
    assert check_provider_file(tmp_path / "ours.toml") == []
    assert load_provider("ours", [tmp_path]).endpoint.auth == "sigv4"


@pytest.mark.parametrize("lines", [b.text for b in read_blocks(CLOUDS) if b.text.startswith("export")])
def test_the_variables_of_the_page_are_enough(lines: str, tmp_path: Path) -> None:
    environ = dict(re.findall(r"export (\w+)=(\S+)", lines.replace("…", "k-1")))
    (model,) = re.findall(r"--model (\S+)", lines)
    reading = read_config(environ={"HOME": str(tmp_path), **environ}, cwd=tmp_path)
    assert reading.problems == ()
    assert list(reading.config.providers) == [model.partition("/")[0], "demo"]
