"""The key of the envelopes: one for all, private, whole, and found again whatever happened while it was made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.store.envelope_key import envelope_key

RUN = "import sys; from pathlib import Path; from isthmus.store.envelope_key import envelope_key\n"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_is_made_once_with_its_folder_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)  # whatever the user's own rule is
    try:
        key = envelope_key(tmp_path / "new" / "x.db")
    finally:
        os.umask(before)
    file = tmp_path / "new" / "x.db.key"
    assert (len(key), file.read_bytes()) == (32, key)
    assert file.stat().st_mode & 0o777 == 0o600
    assert envelope_key(tmp_path / "new" / "x.db") == key
    assert files(tmp_path / "new") == ["x.db.key"]


@pytest.mark.parametrize("at", ["write", "fsync", "name"])
def test_an_end_at_any_moment_leaves_a_whole_key_or_none(tmp_path: Path, at: str) -> None:
    """The process is gone between two steps, as by `kill -9`."""
    crash = {
        "write": "os.fdopen = lambda *_: os._exit(9)",
        "fsync": "os.fsync = lambda *_: os._exit(9)",
        "name": "os.link = os.rename = os.replace = lambda *_: os._exit(9)",
    }[at]
    code = f"import os; {RUN}{crash}\nenvelope_key(Path(sys.argv[1]))"
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.db")], env=dict(os.environ), check=False)
    assert ended.returncode == 9
    assert not (tmp_path / "x.db.key").exists()
    key = envelope_key(tmp_path / "x.db")
    assert len(key) == 32
    assert envelope_key(tmp_path / "x.db") == key
    assert all((tmp_path / name).stat().st_mode & 0o077 == 0 for name in files(tmp_path))


def test_an_empty_file_that_a_crash_left_is_no_reason_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "x.db.key").touch()
    key = envelope_key(tmp_path / "x.db")
    assert len(key) == 32
    assert (tmp_path / "x.db.key").stat().st_mode & 0o777 == 0o600
    assert files(tmp_path) == ["x.db.key"]


@pytest.mark.parametrize("left", [False, True], ids=["none yet", "an empty file"])
def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path, left: bool) -> None:
    if left:
        (tmp_path / "x.db.key").touch()
    code = RUN + "sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.readline()\n"
    code += "print(envelope_key(Path(sys.argv[1])).hex())"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "x.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        for _ in range(4)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    keys = {each.communicate()[0] for each in started}
    assert keys == {(tmp_path / "x.db.key").read_bytes().hex() + "\n"}
    assert files(tmp_path) == ["x.db.key"]


@pytest.mark.parametrize("system", ["no locks", "no links", "Windows"])
def test_it_is_made_where_the_system_cannot_do_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    if system == "no locks":
        monkeypatch.setitem(sys.modules, "fcntl", None)
    elif system == "no links":
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "not here")))
    else:
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setattr("isthmus.store.envelope_key.ON_WINDOWS", True)
        monkeypatch.delattr("os.link")
    key = envelope_key(tmp_path / "x.db")
    assert envelope_key(tmp_path / "x.db") == key
    assert files(tmp_path) == ["x.db.key"]


def test_what_is_no_key_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.db.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match="is not a key; delete it"):
        envelope_key(tmp_path / "x.db")
    assert (tmp_path / "x.db.key").read_bytes() == b"short"


def test_a_place_that_cannot_be_written_is_the_operators_to_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"choose another `store\.url`"):
        envelope_key(tmp_path / "file" / "x.db")
