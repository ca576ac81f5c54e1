"""The page says what the prompt cache found of a conversation, and where a turn parts from the one before."""

from __future__ import annotations

from server.ui.conftest import Browser


def test_a_changed_instruction_is_named(browser: Browser) -> None:
    first = browser.talk.post("/v1/responses", {"input": "one", "instructions": "be kind"}).json["id"]
    second = browser.talk.post(
        "/v1/responses", {"input": "two", "instructions": "be kind", "previous_response_id": first}
    )
    id = browser.made({"input": "three", "instructions": "be quick", "previous_response_id": second.json["id"]})
    seen = browser.look(f"/ui/requests/{id}").text
    rows = seen[seen.index('id="cache"') :].split("<tr>")[2:]
    assert len(rows) == 3
    assert "100 % the same" in rows[1]
    assert ">broken<" in rows[2]
    assert "<code>messages[0]</code>" in rows[2]
