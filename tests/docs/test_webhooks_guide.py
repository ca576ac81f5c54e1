"""The guide to webhooks shows a configuration that is whole, and a receiver that verifies what the gateway sends."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from doc_pages import ROOT
from isthmus.config import load_config
from isthmus.config.schema import Webhooks

SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXIhISE="
PAGE = (ROOT / "docs" / "guides" / "webhooks.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_its_configuration_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "isthmus.toml"
    whole, rotated = blocks("toml")
    before = "the secret that it had before this one"
    environ = {"HOME": str(tmp_path), "BILLING_WEBHOOK_SECRET": SECRET, "BILLING_WEBHOOK_SECRET_BEFORE": before}
    for text in (whole, whole.replace('secret = "${BILLING_WEBHOOK_SECRET}"', rotated)):
        file.write_text(text)
        file.chmod(0o600)
        reading = load_config(file, environ=environ)
        assert reading.warnings == ()
        assert reading.config.webhooks.endpoints["billing"].secret == SECRET


def test_its_receiver_verifies_what_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BILLING_WEBHOOK_SECRET", SECRET)
    names: dict[str, Any] = {}
    (program,) = blocks("python")
    exec(program, names)
    body = '{"id":"evt_1","object":"event","created_at":1,"type":"response.completed","data":{"id":"resp_1"}}'
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "wh_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign("wh_1", now, body),
    }
    for _ in range(2):
        assert names["receive"](body.encode(), headers) == 200
    assert capsys.readouterr().out == "response.completed resp_1\n", "once"
    assert names["receive"](body.encode() + b" ", headers) == 400


def test_its_numbers_are_the_defaults() -> None:
    ours = Webhooks()
    assert f"`timeout` ({ours.timeout:g} s)" in PAGE
    assert f"`first_wait` ({ours.first_wait:g} s)" in PAGE
    assert f"`longest_wait` ({ours.longest_wait / 3600:g} h)" in PAGE
    assert f"`give_up` ({ours.give_up / 3600:g} h)" in PAGE
    assert f"`at_once` ({ours.at_once})" in PAGE
    assert f"`max_queued` ({ours.max_queued:,})" in PAGE
    assert f"`keep` ({ours.keep / 86400:g} days)" in PAGE
