"""Codex's own image tool on a chat model: what `isthmus codex setup` writes switches it on, and it works."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

from isthmus.cli.changes import carry_out
from isthmus.cli.codex_keys import CATALOGUE, Settings
from isthmus.cli.codex_setup import plan_setup, plan_undo
from isthmus.demo.pictures import make_picture
from isthmus.providers import load_provider
from isthmus.providers.codex_catalog import codex_catalogue, describe_offered
from isthmus.testing import ScriptedUpstream, chat
from real.codex.rig import BINARY, environment, real, tool_names
from serving import GatewayThread, running_gateway_server

pytestmark = real

MODEL = "seeing/painter"
QUIET = [
    part
    for key in ("analytics.enabled", "feedback.enabled", "features.plugins", "features.apps", "features.remote_plugin")
    for part in ("-c", f"{key}=false")
]
CONFIG = """
[server]
port = 0
[store]
url = "memory:"
[models]
default = "seeing/painter"
[providers.seeing]
uses = "openai-compatible"
base_url = "@UPSTREAM@"
retries = 0
[providers.seeing.models."*"]
messages = { input = ["image"] }
[log]
level = "error"
"""


def run(folder: Path, gateway: GatewayThread, images: bool) -> list[dict[str, Any]]:
    """`setup`, one `codex exec`, and `setup --undo`."""
    home, work = folder / "codex", folder / "work"
    home.mkdir()
    work.mkdir()
    provider = load_provider("openai-compatible", models={"*": {"messages": {"input": ["image"]}}})
    models = {MODEL: describe_offered(MODEL, {"seeing": provider}, {}, MODEL)}
    settings = Settings(f"{gateway.url}/v1", MODEL, str(home / CATALOGUE), images=images)
    carry_out(plan_setup(home, settings, codex_catalogue(models), None))
    line = [str(BINARY), *QUIET, "exec", "-s", "danger-full-access", "--skip-git-repo-check", "--json", "draw a fox"]
    said = subprocess.run(
        line, cwd=work, env=environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert said.returncode == 0, said.stderr
    carry_out(plan_undo(home, None))
    assert not (home / "config.toml").exists()
    return [json.loads(each) for each in said.stdout.splitlines() if each.startswith("{")]


def call(id: str, **arguments: Any) -> Any:
    return chat(calls=[(id, "image_gen__imagegen", {"prompt": "a fox", "transparent_background": False, **arguments})])


def images_in(body: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(re.findall(r"data:image/png;base64,[A-Za-z0-9+/=]+", json.dumps(body))))


def test_codex_draws_and_changes_images_with_what_setup_writes(tmp_path: Path) -> None:
    steps = [call("call_1"), call("call_2", prompt="bluer", num_last_images_to_include=1), chat("Here is your fox.")]
    with ScriptedUpstream.running(steps) as upstream:
        config = CONFIG.replace("@UPSTREAM@", upstream.base_url) + "[images]\nprovider = 'demo'\n"
        with running_gateway_server(config) as gateway:
            events = run(tmp_path, gateway, images=True)
    first, second, third = (request.json for request in upstream.requests)
    assert "image_gen__imagegen" in tool_names(first)
    (fox,) = images_in(second)
    assert b64decode(fox.partition(",")[2]) == make_picture("a fox")
    changed = [each for each in images_in(third) if each != fox]
    assert [b64decode(each.partition(",")[2]) for each in changed] == [
        make_picture("bluer", given=[make_picture("a fox")])
    ]
    said = [event["item"]["text"] for event in events if event["type"] == "item.completed" and "text" in event["item"]]
    assert said == ["Here is your fox."]


def test_codex_offers_no_such_tool_where_nobody_draws(tmp_path: Path) -> None:
    with (
        ScriptedUpstream.running([chat("I cannot draw.")]) as upstream,
        running_gateway_server(CONFIG.replace("@UPSTREAM@", upstream.base_url)) as gateway,
    ):
        run(tmp_path, gateway, images=False)
    assert "image_gen__imagegen" not in tool_names(upstream.requests[0].json)
