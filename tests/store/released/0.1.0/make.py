"""Makes the files beside this one, with the sources and test helpers of a checkout of 0.1.0 (see README.md).

A real server of that version, a scripted upstream behind it, requests over HTTP; then the database is copied as it
stands, with one response still being made. `made.json` says what that version answered about it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from flowing import DEEPSEEK, PLAIN, Flow, running_flow  # the helpers of 0.1.0
from isthmus.testing import HANG, chat, chat_chunks, stream

HERE = Path(__file__).parent
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a city. " * 80,  # above 2 kB: such a field is stored compressed
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
THINKING = {
    "model": DEEPSEEK,
    "tools": [WEATHER],
    "reasoning": {"effort": "high"},
    "include": ["reasoning.encrypted_content"],
    "instructions": "Answer in one sentence, and say where you looked. " * 15,  # above 512 bytes: shared by all turns
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_flow(Path(folder)) as flow:
        made = talk(flow)
        hanging = leave_one_unfinished(flow)
        copy(flow.database)
        flow.post(f"/v1/responses/{hanging}/cancel", {})
    made["unfinished"] = hanging
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in made.items())
    (HERE / "made.json").write_text(f"{{\n{lines}\n}}\n")


def talk(flow: Flow) -> dict[str, Any]:
    def call(number: int, city: str) -> tuple[str, str, dict[str, str]]:
        return (f"call_{number}", "get_weather", {"city": city})

    flow.script(
        chat(reasoning="Which city? Rome first.", calls=[call(1, "Rome")]),
        chat(reasoning="And Oslo.", calls=[call(2, "Oslo")]),
        chat("Rome is sunny, Oslo is not."),
        chat("Take the train."),
        chat("Fly."),
        chat("Gone soon."),
        chat("Told in the background, word by word.", pieces=6),
        chat("Once more."),
    )
    first = flow.create({**THINKING, "input": "Weather in Rome and Oslo?"})
    second = flow.create({**THINKING, "input": [output(1, "sunny")], "previous_response_id": first["id"]})
    third = flow.create({**THINKING, "input": [output(2, "snow")], "previous_response_id": second["id"]})
    train = flow.create({"model": PLAIN, "input": "How do I get there?", "previous_response_id": third["id"]})
    fly = flow.create({"model": PLAIN, "input": "Quickly?", "previous_response_id": third["id"]})
    deleted = flow.create({"model": PLAIN, "input": "Forget this."})
    assert flow.delete(f"/v1/responses/{deleted['id']}").status == 200
    body = {"model": PLAIN, "input": "Tell me slowly.", "background": True, "stream": True}
    with flow.streaming("/v1/responses", body) as told:
        events = list(told)
    background = events[0]["response"]["id"]
    history = [{"role": "user", "content": "Weather in Rome and Oslo?"}, *first["output"], output(1, "sunny")]
    whole = flow.create({"model": PLAIN, "input": [*history, {"role": "user", "content": "Again?"}]})
    kept = [response["id"] for response in (first, second, third, train, fly, whole)] + [background]
    return {
        "chain": [response["id"] for response in (first, second, third, train)],
        "fork": fly["id"],
        "whole_history": whole["id"],
        "deleted": deleted["id"],
        "background": background,
        "events": events,
        "responses": {id: flow.get(f"/v1/responses/{id}").json for id in kept},
        "input_items": {id: flow.get(f"/v1/responses/{id}/input_items?limit=100").json["data"] for id in kept},
    }


def leave_one_unfinished(flow: Flow) -> str:
    flow.script(stream([*chat_chunks("Half of an answer that never ends", pieces=6)[:4], HANG], done=False))
    id: str = flow.create({"model": PLAIN, "input": "Take your time.", "background": True})["id"]
    assert flow.database is not None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with closing(sqlite3.connect(flow.database)) as connection:
            found = "SELECT sum(last - first + 1) FROM events JOIN responses ON key = response WHERE id = ?"
            if (connection.execute(found, (id,)).fetchone()[0] or 0) >= 6:
                return id
        time.sleep(0.05)
    raise TimeoutError("its first events were not stored")


def copy(database: Path | None) -> None:
    assert database is not None
    (HERE / "isthmus.sqlite").unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(HERE / "isthmus.sqlite")) as target:
        source.backup(target)
    shutil.copy(f"{database}.key", HERE / "isthmus.sqlite.key")


def output(number: int, text: str) -> dict[str, str]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": text}


if __name__ == "__main__":
    main()
