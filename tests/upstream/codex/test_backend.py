"""The backend as a client meets it: from the configuration to what the program hears, in good times and bad."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_program import alive, heard, install, until_heard
from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.wiring import running_gateway
from serving import GatewayThread, running_gateway_server
from talking import Reply, Talk, message_text

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}


def _toml(folder: Path, **lines: str) -> str:
    said = {"store.url": '"memory:"', "server.port": "0", "models.demo": "false", "log.level": '"error"'}
    said |= {"providers.codex.uses": '"codex"', "providers.codex.codex.binary": f'"{folder / "codex"}"', **lines}
    return "".join(f"{key} = {value}\n" for key, value in said.items())


class House(Talk):
    def __init__(self, gateway: GatewayThread, program: Path) -> None:
        super().__init__(gateway.url)
        self.server, self.program = gateway, program

    def ask(self, text: Any, **fields: Any) -> dict[str, Any]:
        return {"model": "codex/gpt-5.5", "input": text, "tools": [LOOK], **fields}

    def until(self, holds: Callable[[Reply], bool], skipping: float = 0) -> Reply:
        """The first answer of which this holds; so many seconds are skipped before each new try."""
        for _ in range(1000):
            if holds(reply := self.post("/v1/responses", self.ask("hi"))):
                return reply
            self.server.skip(skipping)
        raise AssertionError(f"still {reply.status}")


@contextmanager
def _house(folder: Path, **lines: str) -> Iterator[House]:
    program = install(folder)
    with running_gateway_server(_toml(folder, **lines)) as gateway:
        yield House(gateway, program)


def test_a_conversation_keeps_its_thread_and_a_call_its_turn(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        first = house.create(house.ask("call"))
        (call,) = first["output"]
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
        second = house.create(house.ask([output], previous_response_id=first["id"]))
        assert message_text(second) == "answered"
        third = house.create(house.ask("thanks", previous_response_id=second["id"]))
        assert message_text(third) == "ok"
        told = heard(house.program)
    assert [line["method"] for line in told if "thread/" in str(line.get("method"))] == ["thread/start"]
    replies = [line["result"]["contentItems"] for line in told if "contentItems" in str(line)]
    assert replies == [[{"type": "inputText", "text": "42"}]]


def test_an_image_of_a_tool_goes_into_the_turn_that_waits(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        first = house.create(house.ask("call"))
        output = {"type": "function_call_output", "call_id": "call_a", "output": [IMAGE]}
        assert message_text(house.create(house.ask([output], previous_response_id=first["id"]))) == "answered"
        (reply,) = heard(house.program, None)
    assert reply["result"]["contentItems"] == [{"type": "inputImage", "imageUrl": IMAGE["image_url"]}]


def test_an_image_to_be_looked_at_closely_goes_by_the_history_that_can_say_so(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        first = house.create(house.ask("call"))
        output = {"type": "function_call_output", "call_id": "call_a", "output": [{**IMAGE, "detail": "high"}]}
        assert message_text(house.create(house.ask([output], previous_response_id=first["id"]))) == "ok"
        (injected,) = heard(house.program, "thread/inject_items")
    assert injected["params"]["items"][-1]["output"] == [{**IMAGE, "detail": "high"}]


def test_a_thread_that_said_nothing_is_not_kept(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        house.create(house.ask("nothing"))
        house.server.do(until_heard(house.program, "thread/unsubscribe"))


def test_a_thread_that_is_being_given_its_history_makes_room_for_nobody(tmp_path: Path) -> None:
    with _house(tmp_path, **{"providers.codex.codex.max_threads": "1"}) as house, ThreadPoolExecutor(1) as pool:
        (tmp_path / "trouble").write_text("no thread/inject_items")
        past = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]
        first = pool.submit(house.post, "/v1/responses", house.ask(past))
        house.server.do(until_heard(house.program, "thread/inject_items"))
        reply = house.post("/v1/responses", house.ask("hi"))
        assert (reply.status, reply.error["code"]) == (503, "server_is_overloaded")
        house.server.skip(60)
        assert first.result(60).status == 502
        (tmp_path / "trouble").unlink()
        assert message_text(house.create(house.ask("hi"))) == "ok"


def test_a_process_that_dies_before_a_word_was_said_is_replaced_once(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        house.create(house.ask("hi"))
        reply = house.post("/v1/responses", house.ask("die"))
        assert (reply.status, reply.error["code"]) == (502, "server_error")
        assert len(heard(house.program, "turn/start")) == 3
        assert message_text(house.create(house.ask("hi"))) == "ok"


def test_a_client_that_leaves_in_mid_turn_leaves_no_thread(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        with house.streaming("/v1/responses", house.ask("wait", stream=True)) as events:
            events.until("response.output_text.delta")
        house.server.do(until_heard(house.program, "thread/unsubscribe"))
        said = [line["method"] for line in heard(house.program) if "method" in line]
        assert said[-2:] == ["turn/interrupt", "thread/unsubscribe"]


def test_it_is_ready_when_its_program_is(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        house.create(house.ask("hi"))
        assert house.get("/ready").json["providers"] == {"codex": "ok"}


def test_a_program_that_is_missing_for_a_while_is_told_and_survived(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        assert message_text(house.create(house.ask("hi"))) == "ok"
        house.program.unlink()
        for pid in alive(house.program):
            os.kill(pid, signal.SIGKILL)
        reply = house.until(lambda told: told.status != 200)
        assert (reply.status, reply.error["code"]) == (503, "server_is_overloaded"), reply.body
        assert str(house.program) in reply.error["message"]
        assert int(reply.headers["retry-after"]) >= 1
        install(tmp_path)
        assert house.until(lambda told: told.status == 200, skipping=60).status == 200


def test_a_program_that_an_upgrade_puts_elsewhere_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the path it is looked for at each start, as a shell would."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    monkeypatch.setenv("PATH", f"{old}:{new}", prepend=":")
    program = install(old)
    with running_gateway_server(_toml(tmp_path, **{"providers.codex.codex.binary": '"codex"'})) as gateway:
        house = House(gateway, program)
        assert message_text(house.create(house.ask("hi"))) == "ok"
        program.unlink()
        moved = install(new)
        (pid,) = alive(program)
        os.kill(pid, signal.SIGKILL)
        house.server.do(until_heard(moved, "initialize"))
        assert message_text(house.create(house.ask("hi"))) == "ok"
        assert heard(moved, "turn/start")


STEPS = {"no catalog": "--bundled", "no initialize": "initialize", "no account/read": "account/read", "": "config/read"}


@pytest.mark.parametrize("trouble", [None, *STEPS])
def test_a_start_that_fails_late_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str | None
) -> None:
    """Something after the provider cannot start: at once, or while the program is at this step of its own start."""
    folders = tmp_path / "folders"
    folders.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    program = install(tmp_path)
    (tmp_path / "trouble").write_text(trouble or "")
    file = tmp_path / "isthmus.toml"
    file.write_text(_toml(tmp_path))
    config = load_config(file, environ={}).config

    async def main() -> None:
        before = asyncio.all_tasks()
        with pytest.raises(ConfigError, match="disk is full"):
            async with running_gateway(config):
                if trouble is not None:
                    await until_heard(program, STEPS[trouble])
                raise ConfigError("the disk is full")
        assert asyncio.all_tasks() == before

    asyncio.run(main())
    assert alive(program) == []
    assert list(folders.iterdir()) == []
