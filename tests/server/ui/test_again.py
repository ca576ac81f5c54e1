"""A request planned once more for another model, beside the plan that was made then; nothing is sent."""

from __future__ import annotations

from server.ui.conftest import Browser, Opened

OTHER = '[providers.other]\nuses = "deepseek"\nbase_url = "http://127.0.0.1:9"\napi_key = "k"\n'


def test_both_plans_differences_are_shown(opened: Opened) -> None:
    browser = opened(OTHER)
    id = browser.made(
        {"input": "hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}}
    )
    asked = len(browser.upstream.requests)
    seen = browser.look(f"/ui/requests/{id}/replay?model=other/deepseek-chat")
    assert seen.status == 200
    assert "text.format" in seen.text
    assert "degraded" in seen.text
    assert "response_format" in seen.text
    assert len(browser.upstream.requests) == asked, "nothing is sent"
    assert "The same, byte for byte" in browser.look(f"/ui/requests/{id}/replay?model=main/model").text


def test_a_refusal_is_told(browser: Browser) -> None:
    id = browser.made({"input": "hi"})
    seen = browser.look(f"/ui/requests/{id}/replay?model=nobody/x")
    assert seen.status == 200
    assert "nobody" in seen.text


def test_without_content_it_is_made_again_from_the_stored_response(opened: Opened) -> None:
    browser = opened(OTHER, trace="")
    kept = browser.made({"input": "hi", "temperature": 0.3})
    seen = browser.look(f"/ui/requests/{kept}/replay?model=other/deepseek-chat").text
    assert "made again from the stored response" in seen
    assert "this would be sent now" in seen
    lost = browser.made({"input": "hi", "store": False})
    assert "It cannot be planned again" in browser.look(f"/ui/requests/{lost}/replay").text


def test_it_opens_in_the_playground(browser: Browser) -> None:
    id = browser.made({"input": "a particular word", "model": "main/model", "stream": True})
    seen = browser.look(f"/ui/playground?from={id}&model=main/x").text
    assert "a particular word" in seen
    assert 'value="main/x"' in seen
    assert "&#34;stream&#34;" not in seen
