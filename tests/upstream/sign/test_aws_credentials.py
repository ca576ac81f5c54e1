"""AWS credentials: those of the environment need no package, all others are botocore's business."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import ConfigError
from isthmus.upstream.sign import CannotSign
from isthmus.upstream.sign.aws_credentials import ByBotocore, Credentials, InEnvironment, find_credentials

KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret-1"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*KEYS, "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


def found(finder: InEnvironment | ByBotocore) -> Credentials:
    return asyncio.run(finder())


def test_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.upstream.sign.aws_credentials.find_spec", lambda name: None)
    assert found(find_credentials("bedrock", KEYS, 1.0)) == Credentials("AKID", "secret-1")
    role = find_credentials("bedrock", {**KEYS, "AWS_SESSION_TOKEN": "t"}, 1.0)
    assert found(role) == Credentials("AKID", "secret-1", "t")


def test_without_them_and_without_the_package_one_sentence_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.upstream.sign.aws_credentials.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'isthmus\[bedrock\]'") as failure:
        find_credentials("bedrock", {"AWS_ACCESS_KEY_ID": "AKID"}, 1.0)
    assert "AWS_SECRET_ACCESS_KEY" in failure.value.message
    assert "AKID" not in failure.value.message


def test_a_profile_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[work]\naws_access_key_id = AKWORK\naws_secret_access_key = secret-2\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert found(find_credentials("bedrock", {}, 30.0)) == Credentials("AKWORK", "secret-2")


@pytest.mark.parametrize(("profile", "words"), [("", "there are no AWS credentials"), ("gone", "gone")])
def test_where_there_are_none_the_next_step_is_told(monkeypatch: pytest.MonkeyPatch, profile: str, words: str) -> None:
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)
    with pytest.raises(CannotSign, match=words) as failure:
        found(find_credentials("bedrock", {}, 30.0))
    assert failure.value.code == "upstream_unauthorized"


class Expiring:
    """What botocore gives for a role."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.until = datetime.now(UTC) + timedelta(hours=1)

    def refresh_needed(self) -> bool:
        return self.until < datetime.now(UTC)

    def get_frozen_credentials(self) -> Any:
        if self.refresh_needed():
            self.asked.append(threading.current_thread().name)
            self.until = datetime.now(UTC) + timedelta(hours=1)

        class Frozen:
            access_key, secret_key, token = "AK", f"secret-{len(self.asked)}", f"token-{len(self.asked)}"

        return Frozen


def test_those_that_expire_are_renewed_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    role = Expiring()
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda self: role)
    finder = find_credentials("bedrock", {}, 30.0)

    async def ask() -> list[str]:
        seen = [(await finder()).token]
        role.until = datetime.now(UTC) - timedelta(seconds=1)
        seen += [(await finder()).token, (await finder()).token]
        return seen

    assert asyncio.run(ask()) == ["token-0", "token-1", "token-1"]
    assert role.asked
    assert all(name != threading.main_thread().name for name in role.asked)


def test_they_are_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda self: held.wait(60))

    async def ask() -> None:
        try:
            with pytest.raises(CannotSign) as failure:
                await ByBotocore(0.05)()
            assert failure.value.code == "upstream_timeout"
        finally:
            held.set()

    asyncio.run(ask())
