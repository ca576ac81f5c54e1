from __future__ import annotations

from isthmus.bridge.dialects.codex.catalog import plain_catalog


def test_a_plain_catalog_keeps_facts_and_drops_codexs_own_tools() -> None:
    model = {"slug": "m", "tool_mode": "code_mode_only", "use_responses_lite": True, "context_window": 9}
    plain = plain_catalog({"models": [model], "version": 1})
    assert plain["version"] == 1
    assert plain["models"][0]["slug"] == "m"
    assert plain["models"][0]["context_window"] == 9
    assert plain["models"][0]["tool_mode"] is None
    assert plain["models"][0]["use_responses_lite"] is False
    assert plain["models"][0]["experimental_supported_tools"] == []
    assert model["tool_mode"] == "code_mode_only"
