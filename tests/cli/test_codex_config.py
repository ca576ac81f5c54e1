"""Our keys in Codex's configuration: in and out again, and whatever else is in the file keeps its bytes."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.cli.codex_config import apply_setup, overrides
from isthmus.cli.codex_document import parse_document, read_document, write_document
from isthmus.cli.codex_keys import Settings
from isthmus.cli.codex_undo import has_setup, undo_setup
from isthmus.errors import ConfigError
from toml_documents import toml_documents

SETTINGS = Settings("http://127.0.0.1:8484/v1", "deepseek/deepseek-v4-pro", "/home/me/.codex/isthmus-models.json")
OTHER = Settings(
    "http://elsewhere/v1",
    "zhipu/glm-5.3",
    "C:\\x\\isthmus-models.json",
    key_env="ISTHMUS_KEY",
    websockets=True,
    search=True,
    images=True,
)
ACTOR = {"x-openai-actor-authorization": "isthmus"}

FILES = {
    "empty": "",
    "comments only": "# mine\n",
    "own model": '# mine\nmodel = "gpt-5.5"  # the usual one\nmodel_provider="openai"\n\n[tui]\ntheme = "dark"\n',
    "no last newline": 'model = "gpt-5.5"\n[tui]\ntheme = "dark"',
    "a key of ours last, without a newline": 'model = "gpt-5.5"',
    "windows lines": 'model = "gpt-5.5"\r\n\r\n[tui]\r\ntheme = "dark"\r\n',
    "windows lines and byte order mark": '\ufeffmodel = "gpt-5.5"\r\n[tui]\r\ntheme = "dark"',
    "other providers": '[model_providers.local]\nname = "Local"\nbase_url = "http://localhost:1/v1"\n',
    "providers in a table": '[model_providers]\nlocal = { name = "Local" }\n[tui]\n',
    "providers by dotted keys": 'model_providers.local.name = "Local"\n',
    "quoted key": '"model" = "gpt-5.5"\n',
    "a value of many lines": 'model = """\ngpt\n\n5.5"""\nx = 1\n',
    "model in a table": '[profiles.fast]\nmodel = "gpt-5.5"\n',
    "a key inside a text": 'instructions = """\nmodel = "not a key"\n"""\n',
    "an inline table": 'model_providers = {  local = { name = "Local" }  } # mine\n[tui]\ntheme = "dark"\n',
    "an inline table, without a newline": 'model_providers = {local={name="Local"}}',
    "an inline table over many lines": 'model_providers = {\n  local = { name = "Local" }, # here\n}\nmodel = "m"',
    "tables out of order": "[a.b]\nx = 1\n[c]\ny = 1\n[a]\nz = 1\n[[d]]\n[d.e]\n[[d]]\n",
    "not a number": "x = nan\n",
    "a search of its own": 'web_search = "live"  # mine\n[tui]\n',
    "no search": 'web_search="disabled"',
}

MCP = '\n[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "docs"]\n'
TRUST = '\n[projects."/home/me/work"]\ntrust_level = "trusted"\n'


def written_by_0_1_0(text: str) -> str:
    """The lines of version 0.1.0 around a file with at most one key of ours in its first lines."""
    begin, end = "# >>> isthmus codex setup: `isthmus codex setup --undo` takes these lines out again", "# <<< isthmus"
    newline = "\r\n" if "\r\n" in text else "\n"
    joined = bool(text) and not text.endswith("\n")
    kept = re.sub(r"^(model\w* ?=)", r"# isthmus keeps: \1", text, count=2, flags=re.MULTILINE)
    root = [begin, 'model = "a/b"', 'model_provider = "isthmus"', 'model_catalog_json = "/h/isthmus-models.json"']
    table = ["[model_providers.isthmus]", 'name = "Isthmus"', 'base_url = "http://h/v1"', 'wire_api = "responses"']
    close = f"{end} codex setup"
    first = newline.join([*root, close, ""])
    return first + kept + newline * joined + newline.join([begin + " (joined)" * joined, *table, close, ""])


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_setup_keeps_every_other_setting_and_undo_restores_every_byte(text: str) -> None:
    new = apply_setup(text, SETTINGS)
    before, after = (parse_document(each.removeprefix("\ufeff"), "x") for each in (text, new))
    assert (after["model"], after["model_provider"]) == ("deepseek/deepseek-v4-pro", "isthmus")
    assert after["model_providers"].pop("isthmus")["base_url"] == "http://127.0.0.1:8484/v1"
    assert after["model_providers"] == before.get("model_providers", {})
    ours = {"model", "model_provider", "model_catalog_json", "model_providers"}
    assert [(k, str(v)) for k, v in after.items() if k not in ours] == [
        (k, str(v)) for k, v in before.items() if k not in ours
    ]
    assert undo_setup(new) == text


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_second_setup_replaces_the_first(text: str) -> None:
    once = apply_setup(text, SETTINGS)
    assert apply_setup(once, SETTINGS) == once
    twice = apply_setup(once, OTHER)
    said = parse_document(twice.removeprefix("\ufeff"), "x")
    assert said["model_providers"]["isthmus"]["env_key"] == "ISTHMUS_KEY"
    assert said["model_providers"]["isthmus"]["supports_websockets"] is True
    assert said["model_providers"]["isthmus"]["http_headers"] == ACTOR
    assert apply_setup(twice, SETTINGS) == once
    assert said["model_catalog_json"] == "C:\\x\\isthmus-models.json"
    assert undo_setup(twice) == text


@given(toml_documents())
@settings(max_examples=100, deadline=None)
def test_any_document_comes_back_byte_for_byte(text: str) -> None:
    new = apply_setup(text, SETTINGS)
    assert has_setup(new)
    assert undo_setup(new) == text
    assert undo_setup(apply_setup(new, OTHER)) == text


@given(toml_documents())
@settings(max_examples=60, deadline=None)
def test_the_statements_of_any_document_are_the_document(text: str) -> None:
    body = text.removeprefix("\ufeff")
    assert write_document(read_document(body, "x")) == body


@given(toml_documents(), st.data())
@settings(max_examples=60, deadline=None)
def test_what_codex_writes_between_our_lines_stays(text: str, data: st.DataObject) -> None:
    """Root keys go anywhere before the first table, tables anywhere behind the root, between any two statements."""
    new = apply_setup(text, SETTINGS)
    mark = new[: len(new) - len(new.removeprefix("\ufeff"))]
    statements = read_document(new.removeprefix("\ufeff"), "x")
    first = next(index for index, each in enumerate(statements) if each.kind == "table")
    at_root = data.draw(st.integers(0, first))
    heads = [index for index, each in enumerate(statements) if each.kind == "table"]
    at_table = data.draw(st.sampled_from([*heads, len(statements)]))
    pieces = [each.text for each in statements]
    pieces.insert(at_table, TRUST)
    pieces.insert(at_root, 'personality = "friendly"\n')
    written = mark + "".join(pieces)

    def alone(result: str) -> str:
        assert TRUST in result
        assert 'personality = "friendly"\n' in result
        return result.replace(TRUST, "").replace('personality = "friendly"\n', "")

    # A file without a newline at its end has got one for the table that now stands behind it.
    assert alone(undo_setup(written)).rstrip("\r\n") == text.rstrip("\r\n")
    again = apply_setup(written, OTHER)
    assert parse_document(again.removeprefix("\ufeff"), "x")["model"] == "zhipu/glm-5.3"
    assert undo_setup(again) == undo_setup(written)


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_foreign_keys_in_our_own_table_stay_and_codex_can_still_read_it(text: str) -> None:
    new = apply_setup(text, SETTINGS)
    if "[model_providers.isthmus]" not in new:
        new = new.replace('name = "Isthmus"', 'request_max_retries = 7, name = "Isthmus"')
    else:
        new = new.replace('name = "Isthmus"', 'request_max_retries = 7\nname = "Isthmus"')
        new += "[model_providers.isthmus.http_headers]\nx = 'y'\n"
    left = undo_setup(new)
    said = parse_document(left.removeprefix("\ufeff"), "x")["model_providers"]["isthmus"]
    # Codex refuses its whole configuration over a provider without a name.
    assert said.pop("name") == "Isthmus"
    assert said.pop("request_max_retries") == 7
    assert said in ({}, {"http_headers": {"x": "y"}})
    assert not has_setup(left)
    if "[model_providers.isthmus]" in new:
        assert undo_setup(apply_setup(left, OTHER)) == left
        assert undo_setup(apply_setup(new, OTHER)) == left


def test_a_model_picked_in_codex_is_ours_and_the_one_of_before_comes_back() -> None:
    new = apply_setup('# mine\nmodel = "gpt-5.5"\n', SETTINGS)
    picked = new.replace('model = "deepseek/deepseek-v4-pro"', 'model = "zhipu/glm-5"\nmodel_reasoning_effort = "high"')
    assert undo_setup(picked) == '# mine\nmodel = "gpt-5.5"\nmodel_reasoning_effort = "high"\n'


@pytest.mark.parametrize(
    ("left", "right"),
    [("[model_providers]\nisthmus = {", "}\n"), ("model_providers = { isthmus = {", "}, local = { name = 'L' } }\n")],
    ids=["in a table", "in an inline table"],
)
def test_our_table_is_found_in_whatever_form_a_formatter_has_given_it(left: str, right: str) -> None:
    root = 'model_provider = "isthmus"\nmodel = "a/b"\nmodel_catalog_json = "/h/isthmus-models.json"\n'
    ours = "name = 'Isthmus', base_url = 'http://h/v1', wire_api = 'responses'"
    bare = undo_setup(f"{root}x = 1\n{left}{ours}{right}")
    assert "isthmus" not in bare.lower()
    assert tomllib.loads(bare).pop("x") == 1
    said = tomllib.loads(undo_setup(f"{root}x = 1\n{left}{ours}, retries = 7{right}"))
    assert said["model_providers"].pop("isthmus") == {"name": "Isthmus", "retries": 7}
    assert said["model_providers"] in ({}, {"local": {"name": "L"}})


def test_a_provider_chosen_by_hand_since_then_stays_with_its_model() -> None:
    new = apply_setup('model = "gpt-5.5"\n', SETTINGS)
    chosen = new.replace('model_provider = "isthmus"', 'model_provider = "local"')
    chosen = chosen.replace("deepseek/deepseek-v4-pro", "mine")
    assert tomllib.loads(undo_setup(chosen)) == {"model": "mine", "model_provider": "local"}


@pytest.mark.parametrize("name", ["empty", "own model", "no last newline", "windows lines", "other providers"])
def test_what_0_1_0_wrote_is_upgraded_and_undone(name: str) -> None:
    text = FILES[name]
    old = written_by_0_1_0(text)
    assert tomllib.loads(old)["model"] == "a/b"
    assert undo_setup(old) == text
    new = apply_setup(old, SETTINGS)
    assert ">>>" not in new
    assert undo_setup(new) == text


def test_what_codex_wrote_into_the_blocks_of_0_1_0_survives_upgrade_and_undo() -> None:
    text = FILES["own model"]
    old = written_by_0_1_0(text)
    root, end = 'model_catalog_json = "/h/isthmus-models.json"\n', 'wire_api = "responses"\n'
    # Where Codex puts them: root keys behind the last one, tables before the comment that ends the file.
    written = old.replace(root, root + 'model_reasoning_effort = "high"\n').replace(end, end + MCP + TRUST)
    assert undo_setup(written) == 'model_reasoning_effort = "high"\n' + text + MCP + TRUST
    again = apply_setup(written, SETTINGS)
    assert undo_setup(again) == undo_setup(written)


def test_what_the_user_adds_after_the_setup_stays_when_it_is_undone() -> None:
    assert undo_setup(apply_setup("# mine\n", SETTINGS) + MCP) == "# mine\n" + MCP


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('\n[model_providers.isthmus]\nname = "Mine"\n', 3),
        ('model_providers.isthmus.base_url = "http://h"\n', 1),
        ('[model_providers]\n\nisthmus = { name = "Mine" }\n', 3),
        ('model_providers = { isthmus = { name = "Mine" } }\n', 1),
    ],
)
def test_a_provider_of_our_name_that_is_not_ours_is_named_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match=f"`my.toml` has a provider `isthmus` of its own at line {line}, which"):
        apply_setup(text, SETTINGS, "my.toml")
    assert not has_setup(text)
    assert undo_setup(text) == text


@pytest.mark.parametrize("text", ["model.x = 1\n", "model_providers = 1\n", "[[model_providers]]\n", "[model]\n"])
def test_a_file_that_cannot_be_added_to_safely_is_left_alone(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be added to safely"):
        apply_setup(text, SETTINGS)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nmodel = \n", "line 2, column 9"),
        ("a = 1\n\na = 2\n", "line 3"),
        ("[a]\n[b]\n[a]\n", "line 3"),
        ('# isthmus codex setup: x\n"\n', "line 2"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=f"`my.toml` is not valid TOML at {place}"):
        apply_setup(text, SETTINGS, "my.toml")


def test_overrides_say_the_same_for_one_run() -> None:
    arguments = overrides(Settings("http://h/v1", 'odd"model', "C:\\models.json"))
    assert arguments[::2] == ["-c"] * (len(arguments) // 2)
    read = tomllib.loads("\n".join(arguments[1::2]))
    assert read["model"] == 'odd"model'
    assert read["model_catalog_json"] == "C:\\models.json"
    assert read["model_providers"]["isthmus"] == {"name": "Isthmus", "base_url": "http://h/v1", "wire_api": "responses"}


def test_a_gateway_that_searches_is_used_for_it() -> None:
    said = tomllib.loads(apply_setup("[tui]\n", OTHER))
    assert said["web_search"] == "live"
    assert said["model_providers"]["isthmus"]["supports_standalone_web_search"] is True
    assert "web_search" not in tomllib.loads(apply_setup("", SETTINGS))
    assert {"-c", 'web_search="live"'} <= set(overrides(OTHER))


@pytest.mark.parametrize("own", ["live", "cached", "disabled", "indexed"])
def test_what_the_user_says_of_search_stays(own: str) -> None:
    text = f'web_search = "{own}"\n'
    after = apply_setup(text, OTHER)
    assert tomllib.loads(after)["web_search"] == own
    assert apply_setup(after, OTHER) == after
    assert undo_setup(after) == text


def test_a_gateway_that_no_longer_searches_takes_its_word_back() -> None:
    assert apply_setup(apply_setup("[tui]\n", OTHER), SETTINGS) == apply_setup("[tui]\n", SETTINGS)


def test_a_search_that_the_user_has_switched_off_since_stays_off() -> None:
    off = apply_setup("", OTHER).replace('"live"', '"disabled"')
    assert tomllib.loads(apply_setup(off, OTHER))["web_search"] == "disabled"
    assert tomllib.loads(undo_setup(off)) == {"web_search": "disabled"}


@pytest.mark.parametrize("inline", [False, True], ids=["a table of its own", "inside a table of providers"])
def test_headers_that_somebody_has_put_beside_ours_stay(inline: bool) -> None:
    before = 'model_providers = { local = { name = "Local" } }\n' if inline else ""
    new = apply_setup(before, OTHER)
    if inline:
        written = new.replace('authorization = "isthmus"', 'authorization = "isthmus", x-mine = "1"')
    else:
        written = new + 'http_headers.x-mine = "1"\n'
    assert written != new
    left = parse_document(undo_setup(written), "x")["model_providers"]["isthmus"]
    assert left == {"name": "Isthmus", "http_headers": {"x-mine": "1"}}


def test_images_are_told_for_one_run_too() -> None:
    flags = overrides(OTHER)
    assert 'model_providers.isthmus.http_headers.x-openai-actor-authorization="isthmus"' in flags
    assert not any("http_headers" in flag for flag in overrides(SETTINGS))
