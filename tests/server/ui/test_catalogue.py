"""Providers with the origin of each fact, models, and the settings in force without their secrets."""

from __future__ import annotations

from server.ui.conftest import Opened

PROVIDERS = (
    '[providers.deep]\nuses = "deepseek"\nbase_url = "http://127.0.0.1:9"\napi_key = "sk-very-secret-1234567890"\n'
)


def test_providers_are_compared_and_each_fact_has_its_origin(opened: Opened) -> None:
    browser = opened(PROVIDERS)
    seen = browser.look("/ui/providers").text
    row = seen[seen.index("/ui/providers/deep") :].split("</tr>")[0]
    assert "✓ yes" in row
    assert "– no" in row
    one = browser.look("/ui/providers/deep").text
    assert "<code>dialect</code>" in one
    assert "deepseek.toml" in one or "provider file" in one
    assert "reasoner" in browser.look("/ui/providers/deep?model=deepseek-reasoner").text


def test_what_runs_here_is_said_of_providers_that_do_not_do_it(opened: Opened) -> None:
    browser = opened(PROVIDERS + '[search]\nbackend = "demo"\n')
    assert "✓ runs here" in browser.look("/ui/providers").text
    assert "runs here" not in opened(PROVIDERS).look("/ui/providers").text


def test_models_are_found_by_name(opened: Opened) -> None:
    browser = opened(PROVIDERS + '[models.aliases]\nmine = "deep/deepseek-chat"\n')
    assert "deep/deepseek-" in browser.look("/ui/models").text
    found = browser.look("/ui/models?q=MINE").text
    assert "<code>mine</code>" in found
    assert "<code>deep/" not in found


def test_settings_have_origins_and_no_secret(opened: Opened) -> None:
    browser = opened(PROVIDERS)
    seen = browser.look("/ui/settings").text
    assert "sk-very-secret" not in seen
    row = seen[seen.index("[providers.deep]") :].split("</table>")[0]
    assert "&lt;redacted&gt;" in row
    assert "<td><code>uses</code></td>" in row
    assert "isthmus.toml" in row, "where it comes from"
    assert ">default</td>" in seen
