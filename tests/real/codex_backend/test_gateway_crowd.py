"""Many clients at once, each with a conversation of its own: nobody hears anybody else's words, nothing is lost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from isthmus.testing import Answer, RecordedRequest
from real.codex_backend.house import CHAT_WEATHER, House, answers, calls_in, chat_calls, chat_text
from real.codex_backend.rig import WEATHER, calls, outputs_in, real, says
from talking import message_text

pytestmark = real

ROUNDS = 2


def converse_upstream(request: RecordedRequest) -> Answer:
    """Two rounds of two parallel calls, then an answer made of everything that came before: all from the request."""
    body = request.json
    who = next(item for item in body["input"] if item.get("role") == "user")["content"][0]["text"]
    told = outputs_in(body)
    if len(told) < 2 * ROUNDS:
        number = len(told) // 2
        return calls(*((f"{who}-{number}{side}", "get_weather", json.dumps({"city": who + side})) for side in "ab"))
    return says(f"{who}: ", " ".join(str(output) for _, output in told))


def expected(who: str) -> str:
    return f"{who}: " + " ".join(f"{who}{side}{number}" for number in range(ROUNDS) for side in "ab")


def over_responses(house: House, who: str, streamed: bool) -> str:
    def send(body: dict[str, Any]) -> dict[str, Any]:
        return house.stream(body)[1] if streamed else house.create(body)

    response = send(house.ask(who, tools=[WEATHER]))
    for number in range(ROUNDS):
        made = calls_in(response)
        assert [call_id for call_id, _, _ in made] == [f"{who}-{number}a", f"{who}-{number}b"]
        given = answers(response, **{id: json.loads(text)["city"] + str(number) for id, _, text in made})
        response = send(house.ask(given[::-1], tools=[WEATHER], previous_response_id=response["id"]))
    return message_text(response)


def over_chat(house: House, who: str, streamed: bool) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": who}]
    asked = {**house.say(who, tools=[CHAT_WEATHER]), "messages": messages}
    for number in range(ROUNDS):
        if streamed:
            made = chat_calls(house.chat_stream(asked))
        else:
            told = house.chat(asked)["choices"][0]["message"]["tool_calls"]
            made = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in told]
        assert [id for id, _, _ in made] == [f"{who}-{number}a", f"{who}-{number}b"]
        functions = [{"id": id, "type": "function", "function": {"name": n, "arguments": a}} for id, n, a in made]
        messages.append({"role": "assistant", "content": None, "tool_calls": functions})
        messages += [
            {"role": "tool", "tool_call_id": id, "content": json.loads(a)["city"] + str(number)} for id, _, a in made
        ]
    if streamed:
        return chat_text(house.chat_stream(asked))
    return str(house.chat(asked)["choices"][0]["message"]["content"])


def test_three_clients_at_once_each_in_another_form(house: House) -> None:
    house.script(*[converse_upstream] * (3 * (ROUNDS + 1)))
    with ThreadPoolExecutor(3) as pool:
        told = [
            pool.submit(over_responses, house, "ana", True),
            pool.submit(over_chat, house, "ben", True),
            pool.submit(over_chat, house, "cem", False),
        ]
        assert [future.result() for future in told] == [expected(who) for who in ("ana", "ben", "cem")]
    assert len(set(house.threads)) == 3


def test_twenty_conversations_at_once_lose_nothing(house: House) -> None:
    house.script(*[converse_upstream] * (20 * (ROUNDS + 1)))
    names = [f"client{number:02}" for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        told = [
            pool.submit(over_responses if number % 2 else over_chat, house, name, number % 4 > 1)
            for number, name in enumerate(names)
        ]
        assert [future.result() for future in told] == [expected(name) for name in names]
    assert len(house.sent) == 20 * (ROUNDS + 1), "nobody was asked twice"
    assert len(set(house.threads)) == 20, "each conversation kept its thread"
