"""What an MCP server says, in the words of the API."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp")

from isthmus.bridge.types.managed import Ran
from isthmus.upstream.mcp.results import list_tools, shape_error, tell_result
from isthmus.upstream.mcp.sessions import Busy
from leaking import assert_silent, listening
from mcp_asking import LABEL, SECRET, called, host_of
from mcp_world import real_server


async def test_a_picture_is_shown_to_the_model_and_told_of_in_the_item() -> None:
    async with real_server() as real, host_of(real.url) as host:
        ran = await called(host, "picture")
        assert isinstance(ran.output, list)
        assert [part["type"] for part in ran.output] == ["input_text", "input_image"]
        assert ran.output[1]["image_url"].startswith("data:image/png;base64,")
        assert ran.fields["output"] == "Here it is:\n[an image]"


async def test_a_server_that_repeats_what_it_was_shown_tells_nobody() -> None:
    async with real_server() as real, host_of(real.url, headers={"X-Token": SECRET}) as host:
        own = "client-7b1d5e9f3c2a4468"
        with listening() as said:
            ran = await called(host, "whoami", {**LABEL, "authorization": own, "headers": {"X-Mine": own + "2"}})
        assert "<redacted>" in str(ran.output)
        assert_silent([SECRET, own, own + "2"], output=str(ran), log=said.text)


def block(type: str, **fields: Any) -> Any:
    return SimpleNamespace(type=type, **fields)


def answer(*content: Any, error: bool = False, structured: Any = None) -> Any:
    return SimpleNamespace(content=list(content), is_error=error, structured_content=structured)


@pytest.mark.parametrize(
    ("said", "output"),
    [
        (answer(block("text", text="a"), block("text", text="b")), "a\nb"),
        (answer(structured={"b": 1}), '{"b":1}'),
        (answer(block("text", text="a"), structured={"b": 1}), "a"),
        (answer(), ""),
        (answer(block("audio", mime_type="audio/wav", data="")), "[a recording, audio/wav]"),
        (answer(block("resource_link", name="n", uri="file:///x")), "[n](file:///x)"),
        (answer(block("resource", resource=SimpleNamespace(text="words"))), "words"),
        (answer(block("resource", resource=SimpleNamespace(uri="file:///x", blob=""))), "[a file: file:///x]"),
        (answer(block("hologram")), "[content of the type hologram]"),
    ],
)
def test_whatever_a_tool_gives_is_told_in_words(said: Any, output: str) -> None:
    ran = tell_result(said, str)
    assert (ran.output, ran.fields, ran.failed) == (output, {"output": output, "error": None}, False)


def test_a_tool_that_fails_in_silence_has_failed_all_the_same() -> None:
    ran = tell_result(answer(error=True), str)
    assert ran == Ran(
        "[it failed]", {"error": {"type": "mcp_tool_execution_error", "content": []}, "output": None}, failed=True
    )


def test_a_tool_that_nobody_could_call_costs_only_itself() -> None:
    def tool(name: str, **more: Any) -> Any:
        given = {"input_schema": {}, "description": None, "annotations": None, **more}
        return SimpleNamespace(name=name, **given)

    found = [tool("a"), tool("a", description="again"), tool(""), tool("x" * 129), tool("b", input_schema=None)]
    assert [one["name"] for one in list_tools(found, str)] == ["a", "b"]
    assert list_tools(found, str)[0] == {"name": "a", "input_schema": {"type": "object"}, "annotations": None}


def test_a_description_that_repeats_a_secret_is_struck_out() -> None:
    tool = SimpleNamespace(name="a", input_schema={}, description=f"for {SECRET}", annotations=None)
    (one,) = list_tools([tool], lambda text: text.replace(SECRET, "<redacted>"))
    assert one["description"] == "for <redacted>"


def test_the_innermost_reason_of_a_group_is_told() -> None:
    group = ExceptionGroup("tasks", [ExceptionGroup("more", [ValueError("the very reason")])])
    assert shape_error(group) == {"type": "mcp_protocol_error", "code": -32000, "message": "the very reason"}
    assert shape_error(Busy("full")) == {"type": "http_error", "code": 503, "message": "full"}
