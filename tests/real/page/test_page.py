"""The page in a real browser: every page at three widths, in the light and in the dark, and what people do there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream, chat, error
from serving import GatewayThread, running_gateway_server
from talking import Talk

PROJECT = Path(__file__).parents[3]
MODULES = PROJECT / ".venv" / "page"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
NODE = shutil.which("node")
HOSTILE = '"><img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=2</script>\'`{{7*7}}'
ADMIN = "admin-key-0123456789"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (NODE and CHROMIUM and MODULES.exists()), reason="needs Node.js, Chromium and `make test-page`"
    ),
]


@contextmanager
def gateway(folder: Path, server: str = "", answer: str = "hello") -> Iterator[tuple[GatewayThread, ScriptedUpstream]]:
    with ScriptedUpstream.running(default=chat(answer), strict=False) as upstream:
        provider = f'uses = "openai-compatible"\nbase_url = "{upstream.base_url}"\nretries = 0\n'
        toml = (
            f'[server]\nport = 0\n{server}\n[models]\ndefault = "demo/demo"\n'
            f'[store]\nurl = "sqlite:{folder / "p.db"}"\n'
            f'[trace]\ncapture = "full"\n[providers.demo]\nuses = "demo"\n[providers.main]\n{provider}'
        )
        with running_gateway_server(toml) as running:
            yield running, upstream


def browse(scenario: str, url: str, **options: Any) -> Any:
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(Path(__file__).parent / "node" / "page.mjs"), scenario, url, json.dumps(options)],
        env={**os.environ, "PAGE_MODULES": str(MODULES), "CHROMIUM": CHROMIUM},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["trouble"] == []
    return told


def settle(running: GatewayThread) -> None:
    tracing = running.gateway.tracing
    assert tracing is not None
    running.do(tracing.settle())


def ask_around(running: GatewayThread, upstream: ScriptedUpstream, words: str = "hi") -> list[str]:
    """Requests of every kind: a chain with a branch, other doors, changes, a failure, a refusal."""
    talk, ids = Talk(running.url), []

    def ask(body: dict[str, Any], path: str = "/v1/responses") -> Any:
        reply = talk.post(path, body)
        ids.append(reply.headers["x-request-id"])
        return reply.json

    tool = {"type": "function", "name": "look", "description": words, "parameters": {"type": "object"}}
    first = ask({"model": "main/m", "input": words, "instructions": words})["id"]
    second = ask({"model": "main/m", "input": words, "previous_response_id": first})["id"]
    ask({"model": "main/m", "input": words, "previous_response_id": first})
    ask(
        {
            "model": "main/m",
            "input": words,
            "previous_response_id": second,
            "tools": [tool, {"type": "code_interpreter"}],
        }
    )
    ask({"model": "main/m", "messages": [{"role": "user", "content": words}]}, "/v1/chat/completions")
    ask({"input": words, "top_logprobs": 3})
    upstream.push(error(500, words))
    ask({"model": "main/m", "input": words})
    ask({"model": words, "input": words})
    ask({"input": 5})
    settle(running)
    return ids


def test_every_page_fits_its_window_and_has_no_serious_fault(tmp_path: Path) -> None:
    with gateway(tmp_path) as (running, upstream):
        ids = ask_around(running, upstream)
        more = [
            f"/requests/{ids[3]}",
            f"/requests/{ids[6]}",
            f"/requests/{ids[3]}/replay?model=demo/demo",
            "/providers/main",
        ]
        shots = os.environ.get("PAGE_SHOTS", "")
        assert browse("looks", running.url, more=more, shots=shots)["found"] == {}


def test_pictures_are_taken_for_the_docs(tmp_path: Path) -> None:
    """`make pictures` puts them where the docs show them."""
    folder = Path(os.environ.get("PAGE_PICTURES") or tmp_path)
    with gateway(tmp_path, answer="An isthmus is a narrow strip of land that joins two larger ones.") as (
        running,
        upstream,
    ):
        ids = ask_around(running, upstream, "What is an isthmus?")
        pictures = [("home", "", 860), ("overview", "/overview", 900), ("request", f"/requests/{ids[3]}", 1180)]
        pictures += [("requests", "/requests", 640), ("playground", "/playground", 1150)]
        told = browse("pictures", running.url, folder=str(folder), pictures=pictures, second="main/m")
        assert len(told["taken"]) == len(list(folder.glob("page-*.png"))) == 5


def test_a_question_is_answered_on_the_first_page(tmp_path: Path) -> None:
    with gateway(tmp_path) as (running, _):
        assert "hello" in browse("tries", running.url)["answer"].lower()


def test_a_request_appears_while_one_watches(tmp_path: Path) -> None:
    with gateway(tmp_path) as (running, upstream):
        ask_around(running, upstream)
        told = browse("live", running.url)
        assert told["rows"] == 1
        assert told["id"] in told["title"]


def test_filters_are_links_that_can_be_shared(tmp_path: Path) -> None:
    with gateway(tmp_path) as (running, upstream):
        ids = ask_around(running, upstream)
        told = browse("filters", running.url)
        assert {outcome.strip() for outcome in told["outcomes"]} == {"refused"}
        assert "outcome=refused" in told["address"]
        assert told["all"] == len(ids)


def test_two_models_answer_side_by_side_after_their_plans(tmp_path: Path) -> None:
    with gateway(tmp_path, answer="from the other") as (running, _):
        told = browse("plays", running.url, second="main/m")
        assert "no JSON" in told["problem"]
        assert told["planned"] == ["", ""], "nothing was sent before"
        assert told["names"] == ["demo/demo", "main/m"]
        assert told["answers"][1] == "from the other"
        assert told["answers"][0]
        assert any("response.completed" in event for event in told["events"])


def test_people_log_in_and_out(tmp_path: Path) -> None:
    with gateway(tmp_path, f'admin_key = "{ADMIN}"') as (running, _):
        told = browse("enters", running.url, key=ADMIN)
        assert "/ui/login?next=" in told["asked"]
        assert "not known" in told["refused"]
        assert told["cookie"]["httpOnly"]
        assert told["cookie"]["sameSite"] == "Strict"
        assert told["script"] == "", "no script can read it"
        assert told["forged"] == 403
        assert "/ui/login" in told["after"]


def test_nothing_that_clients_send_is_ever_run(tmp_path: Path) -> None:
    with gateway(tmp_path, answer=HOSTILE) as (running, upstream):
        ids = ask_around(running, upstream, HOSTILE)
        paths = ["", "/requests", "/overview", *(f"/requests/{id}" for id in ids[:8])]
        paths += [f"/requests/{ids[0]}/replay?model=demo/demo", f"/playground?from={ids[0]}"]
        seen = browse("bears", running.url, paths=paths)["seen"]
        for path, told in seen.items():
            assert (told["hacked"], told["images"], told["faults"]) == (None, 0, []), path
        assert seen[f"/requests/{ids[0]}"]["read"], "it is shown, as text"


def test_without_scripts_everything_but_the_playground_can_be_read(tmp_path: Path) -> None:
    with gateway(tmp_path) as (running, upstream):
        ids = ask_around(running, upstream)
        told = browse("plain", running.url, more=[f"/requests/{ids[0]}", "/providers/main"])
        assert all(length > 80 for length in told["seen"].values()), told["seen"]
        assert "/ui/playground?input=Say+hello" in told["went"]


def test_the_keyboard_goes_everywhere_and_one_sees_where(tmp_path: Path) -> None:
    with gateway(tmp_path) as (running, _):
        told = browse("keys", running.url)
        assert told["stops"][0]["text"] == "Skip to the content"
        assert [stop["text"] for stop in told["stops"][2:11]] == [
            "Home",
            "Overview",
            "Requests",
            "Usage",
            "Playground",
            "Providers",
            "Models",
            "Keys",
            "Settings",
        ]
        assert all(stop["ring"] for stop in told["stops"])
        assert told["hash"] == "#content"
