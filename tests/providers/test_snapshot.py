"""The snapshot: where it comes from, that only what is named is read, and which layer has the last word on a fact."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import get_args
from zipfile import ZipFile

import pytest

from isthmus.bridge.capabilities import Dialect
from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.providers import load_provider, provider_names
from isthmus.providers import snapshot as room
from isthmus.providers.catalog import describe_model, is_known, known_models
from isthmus.providers.find import find_file, snapshot_names
from isthmus.providers.snapshot import Listed, Row, Snapshot, obstacle, snapshot_head, snapshot_index, snapshot_models

GLM = "zai-org/GLM-5.2"
FOLDER = files("isthmus.providers") / "data" / "snapshot"


def test_it_says_where_it_comes_from_and_its_licences_lie_beside_it() -> None:
    head = snapshot_head()
    assert (head.source, head.prices.partition(" ")[0]) == ("models.dev", "genai-prices")
    assert head.date < head.prices_date
    for licence in ("LICENSE.models-dev", "LICENSE.genai-prices"):
        text = (FOLDER / licence).read_text()
        assert "Permission is hereby granted, free of charge" in text
        assert "Copyright (c)" in text
    assert "MIT" in head.licence
    assert "MIT" in head.prices_licence


def test_the_wheel_carries_it_with_both_notices(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        beside = "isthmus/providers/data/snapshot/"
        assert wheel.read(f"{beside}providers.jsonl") == (FOLDER / "providers.jsonl").read_bytes()
    for notice in ("LICENSE.models-dev", "LICENSE.genai-prices"):
        assert f"{beside}{notice}" in names
        assert any(".dist-info/licenses/" in name and name.endswith(notice) for name in names)


def test_the_index_leads_to_every_line() -> None:
    lines = (FOLDER / "providers.jsonl").read_bytes().splitlines(keepends=True)
    index = list(snapshot_index().values())
    assert len(index) == snapshot_head().providers == len(lines) - 2
    body = b"".join(lines[2:])
    for listed in index:
        models = json.loads(body[listed.start : listed.start + listed.length])
        assert len(models) == listed.models == len(snapshot_models(listed.id).rows)
    assert sum(listed.models for listed in index) == snapshot_head().models


def test_nothing_but_the_index_is_read_before_a_model_is_asked_for(tmp_path: Path) -> None:
    room._read_rows.cache_clear()
    load_config(None, environ={"HOME": str(tmp_path), "NEBIUS_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}, cwd=tmp_path)
    nebius = load_provider("nebius")
    assert room._read_rows.cache_info().misses == 0
    nebius.capabilities(GLM)
    assert room._read_rows.cache_info().misses == 1


def test_a_provider_without_a_file_is_the_cautious_one_with_the_models_own_facts() -> None:
    provider, cautious = load_provider("nebius"), load_provider("openai-compatible").capabilities()
    assert provider.endpoint.url() == "https://api.tokenfactory.nebius.com/v1/chat/completions"
    assert provider.endpoint.key_env == ["NEBIUS_API_KEY"]
    assert provider.endpoint.needs_key
    assert provider.title == "Nebius Token Factory"
    assert provider.checked == snapshot_head().date
    facts = provider.capabilities(GLM)
    assert facts.provider == "nebius"
    assert facts.assumed == cautious.assumed != frozenset()
    assert facts.tool_choice == cautious.tool_choice
    assert (facts.limits.context, facts.limits.output) == (432_000, 432_000)
    assert facts.reasoning.scale == ["low", "medium", "high"]
    assert (facts.messages.replay, facts.messages.replay_field) == ("tool_turns", "reasoning_content")
    assert facts.messages.input == frozenset()
    assert facts.cost.input is not None
    origins = provider.origins(GLM)
    assert origins["limits.context"] == f'{snapshot_head().label} [models."{GLM}".limits]'
    assert origins["parameters.temperature.high"] == "openai-compatible.toml [parameters.temperature]"
    assert provider.capabilities(GLM.lower()).limits == facts.limits  # names are read as in the globs of a file


def test_a_model_that_nobody_knows_gets_the_cautious_facts() -> None:
    facts = load_provider("nebius").capabilities("brand-new")
    assert facts.limits.context is None
    assert facts.messages.input == {"image"}
    assert facts.reasoning.effort == "none"


def test_a_price_from_the_newer_list_says_so() -> None:
    repriced = [
        (listed.id, row)
        for listed in snapshot_index().values()
        for row in snapshot_models(listed.id).rows.values()
        if row.repriced
    ]
    assert len(repriced) == snapshot_head().repriced > 0
    id, row = next((id, row) for id, row in repriced if id in snapshot_names() and not obstacle(snapshot_index()[id]))
    origin = load_provider(id).origins(row.id)["cost.input"]
    assert origin == f'{snapshot_head().prices_label} [models."{row.id}".cost]'


# Which layer has the last word


def test_a_file_speaks_for_all_its_models_and_the_snapshot_for_one(tmp_path: Path) -> None:
    provider = load_provider("deepseek")
    origins = provider.origins("deepseek-v4-pro")
    assert origins["limits.context"].startswith(snapshot_head().label)  # the file says it of all its models
    assert origins["limits.send_default"] == "deepseek.toml [limits]"  # nobody else says it
    assert origins["cost.input"] == 'deepseek.toml [models."deepseek-v4-pro".cost]'  # the file says it of this one
    assert origins["reasoning.scale"].startswith("deepseek.toml")  # the endpoint's, not the model's alone
    (tmp_path / "deepseek.toml").write_text("[limits]\noutput = 4000\n")
    mine = load_provider("deepseek", [tmp_path])
    assert mine.origins("deepseek-v4-pro")["limits.output"] == f"{tmp_path / 'deepseek.toml'} [limits]"
    own = {"deepseek-v4-pro": {"limits": {"output": 3000}}}
    entry = load_provider("deepseek", [tmp_path], models=own, place="mine")
    assert entry.capabilities("deepseek-v4-pro").limits.output == 3000


def test_a_users_file_of_that_name_stands_on_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "nebius.toml").write_text("[tools]\nmax = 7\n[models.'zai-org/*']\nlimits = { context = 5000 }\n")
    facts = load_provider("nebius", [tmp_path]).capabilities(GLM)
    assert (facts.tools.max, facts.limits.context, facts.limits.output) == (7, 5000, 432_000)
    assert [part.own for part in load_provider("nebius", [tmp_path]).parts] == [False, False, True]


def test_a_users_file_may_extend_one_of_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text("extends = 'nebius'\n[endpoint]\nbase_url = 'https://ours.example/v1'\n")
    provider = load_provider("ours", [tmp_path])
    assert (provider.name, provider.title) == ("ours", "ours")
    assert provider.endpoint.url() == "https://ours.example/v1/chat/completions"
    assert provider.capabilities(GLM).limits.context == 432_000


@pytest.mark.parametrize(
    "name", [name for name in provider_names() if load_provider(name).parts[-1].head.get("snapshot")]
)
def test_a_file_that_names_its_id_answers_to_it(name: str) -> None:
    known = load_provider(name).snapshot
    assert known is not None
    assert not known.whole
    assert find_file(known.id, ()) == name
    assert known.id not in snapshot_names()


def test_the_endpoint_says_what_it_takes_and_the_model_what_it_reads() -> None:
    takes = frozenset({"image", "audio", "file"})
    row = Row("m", reads=["image", "audio", "video"])
    known = Snapshot("openai", snapshot_head(), "responses", whole=False, reads=takes)
    assert known._facts(row)["messages"]["input"] == ["audio", "file", "image"]
    assert known._facts(Row("m", reads=["file"]))["messages"]["input"] == ["file"]
    assert known._facts(Row("m"))["messages"]["input"] == []
    alone = snapshot_models("nebius")
    assert alone._facts(row)["messages"]["input"] == ["image"]
    openai = load_provider("openai").capabilities("gpt-5")
    assert openai.messages.input == {"image", "file"}  # the file says sounds as well, of others


def test_documents_go_where_a_model_is_spoken_to_in_messages() -> None:
    free, zen = snapshot_models("freemodel"), snapshot_models("opencode")
    row = Row("m", reads=["image", "file"])
    assert free._facts(row)["messages"]["input"] == ["file", "image"]
    assert free._facts(Row("m", reads=["image", "file"], speaks="chat"))["messages"]["input"] == ["image"]
    assert zen._facts(row)["messages"]["input"] == ["image"]
    assert zen._facts(Row("m", reads=["image", "file"], speaks="messages"))["messages"]["input"] == ["file", "image"]


def test_a_model_may_be_spoken_to_in_another_protocol_than_the_rest() -> None:
    zen = snapshot_models("opencode")
    assert zen.mixed
    said = ("gpt-5.5", "claude-sonnet-5", "glm-5.2", "brand-new")
    assert [zen.speaks(model) for model in said] == ["responses", "messages", "chat", ""]
    assert not snapshot_models("nebius").mixed


# What a row becomes


@pytest.mark.parametrize(
    ("row", "section", "facts"),
    [
        (Row("m", thinks=True), "reasoning", {"default_on": True}),
        (
            Row("m", thinks=True, efforts=["low", "high"]),
            "reasoning",
            {"default_on": True, "effort": "native", "scale": ["low", "high"]},
        ),
        (Row("m"), "reasoning", {"default_on": False}),
        (
            Row("m", thinks=True, back="reasoning"),
            "messages",
            {"input": [], "replay": "tool_turns", "replay_field": "reasoning"},
        ),
        (
            Row("m", thinks=True, back="reasoning"),
            "reply",
            {"reasoning_fields": ["reasoning", "reasoning_content"]},
        ),
        (
            Row("m", thinks=True, back="reasoning_details"),
            "messages",
            {"input": [], "replay": "tool_turns", "replay_details": True},
        ),
        (Row("m", schemas=True), "response_formats", {"supported": ["text", "json_object", "json_schema"]}),
        (Row("m", schemas=False), "response_formats", {"supported": ["text", "json_object"]}),
        (Row("m", temperature=False), "parameters", {"temperature": False}),
        (Row("m", context=5, output=4), "limits", {"context": 5, "output": 4}),
    ],
)
def test_a_row_becomes_facts(row: Row, section: str, facts: object) -> None:
    assert snapshot_models("nebius")._facts(row)[section] == facts


def test_what_is_not_known_is_not_said() -> None:
    facts = snapshot_models("nebius")._facts(Row("m"))
    assert "response_formats" not in facts
    assert "parameters" not in facts
    assert facts["limits"] == {}
    under_a_file = snapshot_models("nebius", ())._facts(Row("m", thinks=True, efforts=["low"], schemas=False))
    assert set(under_a_file) == {"limits", "messages"}


# Who cannot be used


def test_who_speaks_something_else_is_refused_with_words() -> None:
    with pytest.raises(ConfigError, match="`gitlab` cannot be used: its package `gitlab-ai-provider` speaks"):
        load_provider("gitlab")


def test_a_protocol_is_usable_as_soon_as_there_is_a_dialect_for_it() -> None:
    row = Listed("x", "X", "", ["X"], "https://x.example/v1", "messages", "", 1, 0, 1)
    assert bool(obstacle(row)) is ("messages" not in get_args(Dialect))
    if obstacle(row):
        with pytest.raises(ConfigError, match="speaks Messages, which this version does not speak yet"):
            load_provider("freemodel")
    assert not obstacle(Listed("x", "X", "", ["X"], "https://x.example/v1", "chat", "", 1, 0, 1))


def test_a_responses_provider_is_spoken_to_in_responses() -> None:
    provider = load_provider("perplexity-agent")
    assert provider.responses is not None
    assert provider.responses.preferred
    assert provider.endpoint.url(provider.responses.path) == "https://api.perplexity.ai/v1/responses"


def test_a_server_on_this_machine_needs_no_key() -> None:
    assert not load_provider("atomic-chat").endpoint.needs_key
    assert load_provider("neon").endpoint.needs_key  # its address has a blank where the host stands
    assert "${NEON_AI_GATEWAY_BASE_URL}" in load_provider("neon").endpoint.base_url


# Lists


def test_lists_are_short_and_begin_with_models_that_call_tools() -> None:
    provider = load_provider("nano-gpt")
    assert provider.snapshot is not None
    assert len(provider.snapshot.rows) > 300
    listed = known_models([provider])
    assert len(listed) == 10
    assert all(provider.snapshot.rows[known.model.lower()].tools for known in listed)
    assert len(known_models([provider], listed=3)) == 3
    assert [known.model for known in known_models([load_provider("openrouter")])] == ["openrouter/auto"]


def test_titles_come_from_the_snapshot_where_no_file_has_one() -> None:
    assert describe_model(load_provider("nebius"), "deepseek-ai/DeepSeek-V4-Pro").title == "DeepSeek V4 Pro"
    assert describe_model(load_provider("deepseek"), "deepseek-chat").title != "deepseek-chat"
    assert describe_model(load_provider("zhipu"), "glm-5").title == "GLM-5"


def test_a_model_is_known_where_a_file_or_the_snapshot_names_it() -> None:
    nebius, deepseek = load_provider("nebius"), load_provider("deepseek")
    assert is_known(nebius, GLM)
    assert not is_known(nebius, "brand-new")
    assert is_known(deepseek, "deepseek-v4-pro")
    assert not is_known(deepseek, "deepseek-v4-flash-2027")
