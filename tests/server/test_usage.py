"""`/v1/isthmus/usage` where no keys are asked for. What others see is shown in `tests/flows/test_budgets.py`."""

from __future__ import annotations

from isthmus.testing import ScriptedUpstream, chat
from one_provider import one_provider, say


def test_on_this_machine_without_keys_all_of_it_is_told() -> None:
    with ScriptedUpstream.running(default=chat("Hello.")) as upstream, one_provider(upstream) as (talk, _):
        assert talk.get("/v1/isthmus/usage").json["data"] == []
        for _ in range(3):
            say(talk)
        told = talk.get("/v1/isthmus/usage?by=provider,model").json
        assert told["data"] == [
            {
                "provider": "main",
                "model": "some-model",
                "requests": 3,
                "input_tokens": 30,
                "cached_tokens": 0,
                "output_tokens": 15,
                "cost": 0.0,
                "unpriced_requests": 3,
            }
        ]
        assert told["has_more"] is False
        table = talk.get("/v1/isthmus/usage?format=csv&by=model")
        assert table.headers["content-disposition"] == 'attachment; filename="usage.csv"'
        assert table.body.decode().splitlines()[1] == "some-model,3,30,0,15,0.000000000,3"
