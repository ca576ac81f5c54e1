"""Names in the configuration become hooks, or a mistake that says where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.hooks.load import load_hooks

MINE = """
from dataclasses import dataclass

class Mine:
    def before_plan(self, request, context): ...

@dataclass
class Made:
    word: str = "made"
    def after_reply(self, response, context, *more): ...

ready = Made("ready")

class Broken:
    def __init__(self): raise ValueError("no setting")

class Short:
    def before_send(self, body, context): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "my_company_hooks.py").write_text(MINE)
    (tmp_path / "bad.py").write_text("1 +")
    return tmp_path


def test_a_class_is_made_and_an_object_is_used_as_it_is(folder: Path) -> None:
    names = ["mine.py:Mine", "mine.py:Made", "mine.py:ready", "my_company_hooks:ready"]
    mine, made, ready, module = load_hooks(names, str(folder))
    assert [each.name for each in (mine, made, ready, module)] == names
    assert (made.hook.word, ready.hook.word, module.hook.word) == ("made", "ready", "ready")  # type: ignore[attr-defined]
    assert mine.method("before_plan") is not None
    assert mine.method("before_send") is None


def test_a_file_is_read_once(folder: Path) -> None:
    one, other = load_hooks(["mine.py:ready", "mine.py:ready"], str(folder))
    assert one.hook is other.hook


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ("mine.py", "names no hook"),
        (":Mine", "names no hook"),
        ("mine.py:not a name", "names no hook"),
        ("mine.py:Nobody", "has no `Nobody`"),
        ("mine.py:dataclass", "cannot be called|is no hook"),
        ("mine.py:Broken", "ValueError: no setting"),
        ("mine.py:Short", r"`mine.py:Short.before_send` cannot be called with \(body, sending, context\)"),
        ("bad.py:Mine", "SyntaxError"),
        ("missing.py:Mine", "there is no file"),
        ("no_such_module_of_ours:Mine", "ModuleNotFoundError"),
    ],
)
def test_a_mistake_says_where_it_stands(folder: Path, uses: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as told:
        load_hooks(["mine.py:Mine", uses], str(folder))
    assert told.value.param == "hooks.uses[1]"
