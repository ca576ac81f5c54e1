"""Names that stand for several targets, from the configuration to the sockets of those that are asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.testing import ScriptedUpstream, Step, chat, error
from keyed_gateway import CHIEF, Keyed
from serving import running_gateway_server
from socketing import open_socket
from talking import Talk
from tracing import trace_of

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
FORMAT = {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}}
PLAIN, STRICT = '["text"]', '["text", "json_object", "json_schema"]'
FACTS = {
    name: f"cost = {{ input = {price}, output = {price} }}\nresponse_formats = {{ supported = {formats} }}\n"
    f"limits = {{ context = {window} }}"
    for name, price, formats, window in (("cheap", 1.0, PLAIN, 8_000), ("dear", 9.0, STRICT, 100_000))
}


class House:
    def __init__(self, talk: Talk, upstreams: dict[str, ScriptedUpstream], gateway: Any) -> None:
        self.talk, self.upstreams, self.gateway = talk, upstreams, gateway

    def ask(self, **fields: Any) -> dict[str, Any]:
        answer = self.talk.post("/v1/responses", {"model": "mix", "input": "hi", **fields})
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json
        return found

    def who(self, **fields: Any) -> str:
        return str(self.ask(**fields)["isthmus"]["provider"])


def _toml(addresses: dict[str, str], models: str) -> str:
    providers = "".join(
        f"[providers.{name}]\nuses = 'openai-compatible'\nbase_url = {url!r}\nretries = 0\nask = false\n"
        f"breaker = {{ failures = 2 }}\n[providers.{name}.models.'*']\n{FACTS[name]}\n"
        for name, url in addresses.items()
    )
    rest = "[store]\nurl = 'memory:'\n[server]\nport = 0\n[log]\nlevel = 'error'\n"
    return f"[models]\ndemo = false\n{models}\n{rest}{providers}"


@contextmanager
def house(models: str, **scripts: Step | None) -> Iterator[House]:
    with ExitStack() as stack:
        upstreams = {
            name: stack.enter_context(ScriptedUpstream.running(default=scripts.get(name) or chat(f"from {name}")))
            for name in FACTS
        }
        toml = _toml({name: each.base_url for name, each in upstreams.items()}, models)
        gateway = stack.enter_context(running_gateway_server(toml))
        yield House(Talk(gateway.url), upstreams, gateway)


TARGETS = 'targets = ["cheap/m", "dear/m"]'
WEIGHTS = f"[models.choices.mix]\n{TARGETS}\nweights = [3, 1]"
PRICE = f'[models.choices.mix]\n{TARGETS}\nby = "price"'
ORDER = f'[models.choices.mix]\n{TARGETS}\nby = "order"'


def test_requests_are_spread_by_weight() -> None:
    with house(WEIGHTS) as it:
        assert [it.who() for _ in range(8)] == ["cheap", "cheap", "dear", "cheap"] * 2
        assert {name: len(each.requests) for name, each in it.upstreams.items()} == {"cheap": 6, "dear": 2}


def test_a_conversation_stays_with_its_target_however_it_is_named() -> None:
    with house(WEIGHTS) as it:
        for number in range(6):
            assert len({it.who(prompt_cache_key=f"thread-{number}") for _ in range(4)}) == 1
        assert {it.who(prompt_cache_key=f"thread-{number}") for number in range(20)} == {"cheap", "dear"}
        for _ in range(4):
            first = it.ask()
            then = [it.ask(previous_response_id=first["id"])["isthmus"]["provider"] for _ in range(2)]
            assert then == [first["isthmus"]["provider"]] * 2
        conversation = it.talk.post("/v1/conversations", {}).json["id"]
        assert len({it.who(conversation=conversation) for _ in range(3)}) == 1


def test_the_choice_is_told_in_the_head_the_body_and_the_trace() -> None:
    with house(PRICE) as it:
        answer = it.talk.post("/v1/responses", {"model": "mix", "input": "hi"})
        assert answer.headers["isthmus-choice"] == "cheap/m; by=price"
        told = answer.json["isthmus"]
        assert (told["alias"], told["choice"]["name"], told["choice"]["by"]) == ("mix", "mix", "price")
        assert "cost $" in told["choice"]["reason"]
        assert told["diagnostics"] == []
        flow: Any = it.talk
        trace = trace_of(flow, answer.json["id"])
        (decision,) = [each for each in trace["decisions"] if each["path"] == "models.choices.mix"]
        assert decision["reason"].startswith("by price: about ")
        for path, body in {
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
            "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 10},
        }.items():
            other = it.talk.post(path, {"model": "mix", **body}, {"anthropic-version": "2023-06-01"})
            assert (other.status, other.headers["isthmus-choice"]) == (200, "cheap/m; by=price")
        with it.talk.streaming("/v1/responses", {"model": "mix", "input": "hi", "stream": True}) as events:
            assert events.headers["isthmus-choice"] == "cheap/m; by=price"
            assert list(events)[-1]["response"]["isthmus"]["choice"]["name"] == "mix"


def test_by_price_the_cheapest_answers_that_keeps_the_format_and_has_room() -> None:
    with house(PRICE, cheap=chat('{"a": "b"}'), dear=chat('{"a": "b"}')) as it:
        assert it.who() == "cheap"
        response = it.ask(text=FORMAT)
        assert response["isthmus"]["provider"] == "dear"
        assert "`cheap/m` would have to change `text.format`" in response["isthmus"]["choice"]["reason"]
        assert it.who(input="word " * 9_000) == "dear"


@pytest.mark.parametrize("models", [WEIGHTS, PRICE, ORDER])
def test_another_target_answers_where_the_first_fails_and_is_asked_first_while_it_is_left_alone(models: str) -> None:
    with house(models, cheap=error(500, "sick")) as it:
        response = it.ask()
        assert response["isthmus"]["provider"] == "dear"
        for _ in range(6):
            it.ask()
        assert len(it.upstreams["cheap"].requests) == 2  # then it is left alone, and nobody even tries
        last = it.ask()["isthmus"]
        assert last["diagnostics"] == []
        assert "left alone just now: `cheap/m`" in last["choice"]["reason"]


def test_where_all_targets_fail_the_fallbacks_of_the_name_are_tried() -> None:
    models = f'{ORDER.replace(", " + chr(34) + "dear/m" + chr(34), "")}\n[models.fallbacks]\nmix = ["dear/other"]'
    with house(models, cheap=error(500, "sick")) as it:
        response = it.ask()
        assert (response["isthmus"]["provider"], response["isthmus"]["model"]) == ("dear", "other")


def test_aliases_the_default_and_any_name_may_mean_a_choice() -> None:
    models = f'default = "mix"\naliases = {{ gpt-5 = "mix", "*" = "mix" }}\n{ORDER}'
    with house(models) as it:
        for model in ("gpt-5", "mix", "whatever"):
            told = it.ask(model=model)["isthmus"]
            assert (told["provider"], told["choice"]["name"]) == ("cheap", "mix")
        assert it.talk.post("/v1/responses", {"input": "hi"}).json["isthmus"]["choice"]["name"] == "mix"
        assert "choice" not in it.ask(model="dear/m")["isthmus"]


def test_the_list_of_models_shows_what_holds_for_all_targets() -> None:
    with house(WEIGHTS) as it:
        listed = {each["id"]: each["isthmus"] for each in it.talk.get("/v1/models").json["data"]}
        assert listed["mix"]["context_window"] == 8000
        assert it.talk.get("/v1/models/mix").json["isthmus"]["source"] == "configuration"


def test_vectors_are_not_left_to_a_choice() -> None:
    with house(WEIGHTS) as it:
        answer = it.talk.post("/v1/embeddings", {"model": "mix", "input": "hi"})
        assert (answer.status, answer.error["param"]) == (400, "model")
        assert "`cheap/m`, `dear/m`" in answer.error["message"]


def test_counting_takes_nobodys_turn() -> None:
    with house(WEIGHTS) as it:
        for _ in range(3):
            assert it.talk.post("/v1/responses/input_tokens", {"model": "mix", "input": "hi"}).status == 200
        assert [it.who() for _ in range(4)] == ["cheap", "cheap", "dear", "cheap"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('choices = { mix = { by = "price" } }', "targets` is missing"),
        ('choices = { mix = { targets = ["cheap/m", "cheap/m"] } }', "twice"),
        ('choices = { mix = { targets = ["chaep/m"] } }', "did you mean `cheap/m`"),
        ('choices = { mix = { targets = ["cheap/m", "dear/m"], weights = [1] } }', "another length"),
        ('choices = { mix = { targets = ["cheap/m"], weights = [2], by = "price" } }', "means nothing"),
        ('choices = { mix = { targets = ["cheap/m", "dear/m"], weights = [1000, 1] } }', "more than 1000"),
        ('choices = { "a/b" = { targets = ["cheap/m"] } }', "no usable name"),
        ('choices = { mix = { targets = ["cheap/m"] } }\naliases = { mix = "cheap/m" }', "is an alias, too"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, wrong: str, words: str) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(_toml(dict.fromkeys(FACTS, "http://127.0.0.1:9/v1"), wrong))
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=words):
        load_config(file, environ={"HOME": str(tmp_path)})


def test_explain_shows_which_target_would_be_taken_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, asked = tmp_path / "isthmus.toml", tmp_path / "request.json"
    file.write_text(_toml(dict.fromkeys(FACTS, "http://127.0.0.1:9/v1"), PRICE))
    file.chmod(0o600)
    asked.write_text(json.dumps({"input": "hi", "text": FORMAT}))
    monkeypatch.setenv("ISTHMUS_CONFIG", str(file))
    shown = CliRunner().invoke(app, ["explain", str(asked), "--model", "mix", "--json"])
    assert shown.exit_code == 0, shown.output
    explained = json.loads(shown.stdout)
    assert (explained["provider"], explained["model"]) == ("dear", "m")
    (decision,) = [each for each in explained["decisions"] if each["path"] == "models.choices.mix"]
    assert decision["reason"].startswith("by price: ")
    assert "`cheap/m` would have to change `text.format`" in decision["reason"]
    screen = CliRunner().invoke(app, ["explain", str(asked), "--model", "mix"], env={"COLUMNS": "300"})
    assert "models.choices.mix" in screen.output


# ── keys that may not use all of it ────────────────────────────────────────────────────────────────


@contextmanager
def keyed_house(models: str) -> Iterator[tuple[Keyed, dict[str, ScriptedUpstream]]]:
    with ExitStack() as stack:
        upstreams = {
            name: stack.enter_context(ScriptedUpstream.running(default=chat(f"from {name}"), strict=False))
            for name in FACTS
        }
        toml = _toml({name: each.base_url for name, each in upstreams.items()}, models)
        server = stack.enter_context(
            running_gateway_server(toml.replace("port = 0", f'port = 0\nadmin_key = "{CHIEF}"'))
        )
        yield Keyed(server), upstreams


HI = {"model": "mix", "input": "hi"}


@pytest.mark.parametrize("choice", [WEIGHTS, PRICE, ORDER])
def test_only_targets_that_a_key_may_use_take_part(choice: str) -> None:
    """The first of them, the heaviest and the cheapest is the one that is not open."""
    with keyed_house(choice) as (keyed, upstreams):
        ann, bob = keyed.person("ann", models=["dear/*"]), keyed.person("bob")
        for _ in range(5):
            told = ann.create(HI)["isthmus"]
            assert told["provider"] == "dear"
            assert "not open to this key: `cheap/m`" in told["choice"]["reason"]
        assert upstreams["cheap"].requests == []
        told = bob.create(HI)["isthmus"]
        assert (told["provider"], "not open" in told["choice"]["reason"]) == ("cheap", False)
        assert keyed.person("cat", models=["mix"]).create(HI)["isthmus"]["provider"] == "cheap", "the name opens it all"
        with open_socket(keyed.server.url, headers=ann.headers) as socket:
            assert socket.answer(HI)["isthmus"]["provider"] == "dear"
        assert [each["id"] for each in ann.get("/v1/models").json["data"] if "/" not in each["id"]] == ["mix"]
        assert ann.get("/v1/models/mix").status == 200


def test_where_none_of_it_is_open_it_is_a_403_at_every_door() -> None:
    user = {"model": "mix", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 10}
    with keyed_house(f"{WEIGHTS}\n[models.aliases]\nalso = 'mix'") as (keyed, upstreams):
        ann = keyed.person("ann", models=["dear/other"])
        for path, body in (
            ("/v1/responses", HI),
            ("/v1/responses", {**HI, "model": "also"}),
            ("/v1/chat/completions", user),
        ):
            assert ann.code("POST", path, body) == (403, "not_allowed")
        assert ann.post("/v1/messages", user).status == 403
        assert ann.code("GET", "/v1/models/mix") == (403, "not_allowed")
        assert "mix" not in [each["id"] for each in ann.get("/v1/models").json["data"]]
        assert all(each.requests == [] for each in upstreams.values())


def test_who_may_use_fewer_takes_no_turn_of_the_others() -> None:
    with keyed_house(WEIGHTS.replace("[3, 1]", "[1, 1]")) as (keyed, _):
        ann, bob = keyed.person("ann", models=["dear/*"]), keyed.person("bob")
        mixed = [[each.create(HI)["isthmus"]["provider"] for each in (ann, bob)] for _ in range(4)]
        assert [who for who, _ in mixed] == ["dear"] * 4
        assert [who for _, who in mixed] == ["cheap", "dear"] * 2


def test_fallbacks_of_a_choice_that_are_not_open_are_no_way() -> None:
    """The fallback of the only open target is not open: it is not tried; for somebody else it is."""
    models = f'{ORDER}\n[models.fallbacks]\n"dear/m" = ["cheap/spare"]'
    with keyed_house(models) as (keyed, upstreams):
        ann, bob = keyed.person("ann", models=["dear/*"]), keyed.person("bob", models=["dear/*", "cheap/spare"])
        upstreams["dear"].push(error(500, "broken"))
        assert ann.post("/v1/responses", HI).status >= 500
        assert upstreams["cheap"].requests == []
        upstreams["dear"].push(error(500, "broken"))
        assert bob.create(HI)["model"] == "spare"
