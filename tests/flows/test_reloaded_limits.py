"""SIGHUP to a gateway that many share: what was counted and set aside goes on, what is new counts at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.ports.keys import Budget, Grant, Rates
from isthmus.testing import Gate, chat_chunks, stream
from keyed import secret_of, stored_key
from limited import TOKENS, bearer, dollars
from shared import shared
from socketing import open_socket
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")


def key(name: str = "ann", team: str = "", *, budget: float = 0.0, models: tuple[str, ...] = (), **rates: int) -> Any:
    grant = Grant(rates=Rates(**rates), budget=Budget(dollars(budget), 0.0), models=models)
    return stored_key(name, team=team, grant=grant)


def held_back(gate: Gate) -> Any:
    first, *rest = chat_chunks("Hello.", pieces=3)
    return stream([first, gate, *rest])


def test_what_was_counted_stays_so_and_new_limits_count_at_once(tmp_path: Path) -> None:
    with shared(tmp_path, key(), toml="[limits]\nrequests_per_minute = 3\n") as house:
        assert [house.ask().status for _ in range(2)] == [200, 200]
        house.reload("[limits]\nrequests_per_minute = 3\n")
        assert [house.ask().status for _ in range(2)] == [200, 429], "two of three were used before"
        assert house.refusals("rate") == [1.0]
        house.reload("[limits]\nrequests_per_minute = 5\n")
        assert house.refusals("rate") == [1.0], "neither twice nor from the beginning"
        told = [house.ask() for _ in range(3)]
        assert [each.status for each in told] == [200, 200, 429]
        assert told[0].headers["x-ratelimit-limit-requests"] == "5"
        assert "5 requests per minute" in told[2].error["message"]
        assert house.refusals("rate") == [2.0]
        house.reload("")
        assert house.ask().status == 200
        assert "x-ratelimit-limit-requests" not in house.ask().headers


def test_a_limit_that_comes_before_the_first_request_is_the_one_that_counts(tmp_path: Path) -> None:
    with shared(tmp_path, key(), toml="[limits]\nrequests_per_minute = 9\n") as house:
        house.reload("[limits]\nrequests_per_minute = 1\n")
        assert [house.ask().status for _ in range(2)] == [200, 429]


def test_a_stream_from_before_keeps_its_place_and_is_paid_for_once(tmp_path: Path) -> None:
    gate = Gate()
    toml = "[limits]\nconcurrent_streams = {}\n"
    with shared(tmp_path, key(budget=2000), toml=toml.format(1)) as house:
        house.upstream.push(held_back(gate))
        body = {"input": "hi", "stream": True, "max_output_tokens": 1500}
        with house.talk.streaming("/v1/responses", body, headers=bearer("ann")) as told:
            gate.reached.wait()
            house.reload(toml.format(1))
            taken = house.ask(stream=True)
            assert (taken.status, taken.error["code"]) == (429, "rate_limit_exceeded"), "its place is taken"
            poor = house.ask(max_output_tokens=1500)
            assert (poor.status, poor.error["code"]) == (429, "insufficient_quota"), "what it may cost is set aside"
            house.reload(toml.format(2))
            assert house.ask(stream=True).status == 200, "there is another place now"
            gate.open()
            assert list(told)[-1]["type"] == "response.completed"
        until(lambda: house.total()[0] == 2)
        assert house.total() == (2, 2 * TOKENS)
        assert [house.ask(max_output_tokens=1500).status for _ in range(2)] == [200, 200], "nothing is left set aside"
        assert house.total() == (4, 4 * TOKENS)
        assert (house.refusals("rate"), house.refusals("budget")) == ([1.0], [1.0])


def test_a_teams_budget_is_the_new_one_and_what_was_spent_is_spent(tmp_path: Path) -> None:
    toml = "[teams.t]\ndaily_budget = {}\n"
    with shared(tmp_path, key(team="t"), toml=toml.format(dollars(100))) as house:
        assert house.ask().status == 200
        house.reload(toml.format(dollars(TOKENS)))
        refused = house.ask()
        assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
        house.reload(toml.format(dollars(1000)))
        assert house.ask().status == 200


def test_the_models_of_a_team_are_those_of_the_newest_configuration(tmp_path: Path) -> None:
    """At a door and on a socket that was opened long before."""
    toml = '[teams.t]\nmodels = ["{}"]\n'
    with (
        shared(tmp_path, key(team="t"), key("bob"), toml=toml.format("main/some-model")) as house,
        open_socket(house.process.url, headers=bearer("ann")) as socket,
    ):

        def asked(model: str) -> list[int]:
            """At the door, on the socket, and by somebody of no team."""
            frame = {"input": "hi", "model": model, "store": False}
            socket.ask(frame)
            first = socket.next_of()
            if first["type"] == "error":
                assert (first["error"]["code"], first["error"]["param"]) == ("not_allowed", "model")
                over_socket = first["status"]
            else:
                assert socket.rest(begun=1)[-1]["type"] == "response.completed"
                over_socket = 200
            return [house.ask(model=model).status, over_socket, house.ask("bob", model=model).status]

        assert asked("main/some-model") == [200, 200, 200]
        assert asked("main/other") == [403, 403, 200]
        refused = house.ask(model="main/other").error
        assert (refused["code"], refused["param"]) == ("not_allowed", "model")
        assert "`main/some-model`" in refused["message"]
        house.reload(toml.format("main/other"))
        assert asked("main/some-model") == [403, 403, 200]
        assert asked("main/other") == [200, 200, 200]
        listed = house.talk.request("GET", "/v1/models", None, bearer("ann")).json["data"]
        assert {each["id"] for each in listed} <= {"main/other"}
        house.reload("")
        assert asked("main/some-model") == [200, 200, 200]
        assert secret_of("ann") not in house.process.log.read_text()


HOOK = """
from isthmus.hooks import Refuse

class Guard:
    def before_plan(self, request, context):
        if "{word}" in str(request["input"]):
            raise Refuse("not here: {word}")
"""


def test_hooks_and_choices_follow(tmp_path: Path) -> None:
    choice = '[models.choices.mix]\ntargets = ["main/a", "main/b"]\nby = "order"\n'
    toml = f'[hooks]\nuses = ["guard.py:Guard"]\nfolder = "{tmp_path}"\n{choice}'
    (tmp_path / "guard.py").write_text(HOOK.format(word="spade"))
    with shared(tmp_path, key(), toml=toml) as house:
        assert house.ask(input="a spade", model="mix").error["code"] == "refused_by_hook"
        assert house.ask(input="a heart", model="mix").json["model"] == "a"
        (tmp_path / "guard.py").write_text(HOOK.format(word="heart"))
        house.reload(toml.replace('"main/a", "main/b"', '"main/b", "main/a"'))
        assert house.ask(input="a spade", model="mix").json["model"] == "b"
        assert house.ask(input="a heart", model="mix").error["code"] == "refused_by_hook", "the file as it is now"
        house.reload("")
        assert house.ask(input="a heart").status == 200
        assert house.ask(model="mix").json["model"] == "mix", "the name stands for nothing any more"
