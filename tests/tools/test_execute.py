"""Tools: schemas from annotations, arguments checked and coerced, one result for whatever happens."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from isthmus import (
    DocumentPart,
    ImagePart,
    TextPart,
    Tool,
    ToolBox,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolReturn,
    ToolSet,
    tool,
)
from isthmus.client.items import write_items
from isthmus.errors import RequestRefused
from isthmus.testing import PATIENCE
from isthmus.tools.docstring import read_docstring
from isthmus.tools.execute import Rules
from isthmus.tools.messages import Message
from isthmus.tools.toolset import Environment


class Place(BaseModel):
    city: str
    country: str = "NO"


@dataclass
class Window:
    first: date
    last: date | None = None


@tool
def forecast(
    place: Place,
    window: Window,
    unit: Literal["C", "F"] = "C",
    tags: list[str] | None = None,
    limit: Annotated[int, Field(ge=1, le=10)] = 3,
) -> str:
    """The weather of some days.

    Only for Europe.

    Args:
        place: Where; the country as two
            letters.
        unit (str): Of the temperature.

    Returns:
        Words.
    """
    return f"{place.city} {window.first.isoformat()} {unit} {tags} {limit}"


def run(tool: Any, arguments: Any, *, environment: Environment | None = None) -> ToolResult:
    call = ToolCall("c", "t", arguments) if not isinstance(arguments, ToolCall) else arguments
    tools = ToolSet([tool])
    name = next(iter(tools)).name
    return asyncio.run(tools.execute(ToolCall(call.id, name, call.arguments), environment))


class TestSchema:
    def test_comes_from_annotations_and_docstring(self) -> None:
        declared = forecast.declaration()
        assert (declared["name"], declared["description"]) == (
            "forecast",
            "The weather of some days.\n\nOnly for Europe.",
        )
        properties = declared["parameters"]["properties"]
        assert list(properties) == ["place", "window", "unit", "tags", "limit"]
        assert declared["parameters"]["required"] == ["place", "window"]
        assert properties["place"]["description"] == "Where; the country as two letters."
        assert properties["unit"] == {
            "type": "string",
            "enum": ["C", "F"],
            "default": "C",
            "description": "Of the temperature.",
        }
        assert "title" not in str(declared)

    def test_strict_closes_every_object_and_requires_every_property(self) -> None:
        @tool(strict=True)
        def plan(place: Place, days: int = 3) -> str:
            """Plan."""
            return ""

        parameters = plan.declaration()["parameters"]
        assert parameters["required"] == ["place", "days"]
        assert parameters["$defs"]["Place"]["additionalProperties"] is False
        assert parameters["$defs"]["Place"]["required"] == ["city", "country"]

    def test_a_parameter_may_have_any_name(self) -> None:
        @tool
        def odd(schema: str, copy: int, model_config: str = "x") -> str:
            """Odd."""
            return f"{schema}{copy}{model_config}"

        assert run(odd, {"schema": "a", "copy": 1}).value == "a1x"

    def test_a_tool_is_still_the_function(self) -> None:
        place, window = Place(city="Oslo"), Window(date(2026, 1, 2))
        assert forecast(place, window) == "Oslo 2026-01-02 C None 3"

    def test_functions_that_a_model_cannot_fill_are_refused_at_once(self) -> None:
        with pytest.raises(TypeError, match="`\\*args"):

            @tool
            def some(*args: int) -> None: ...

    @pytest.mark.parametrize("name", ["", "with space", "ü", "x" * 65])
    def test_names_that_providers_refuse_are_refused_here(self, name: str) -> None:
        with pytest.raises(RequestRefused, match="tool's name"):
            Tool.from_schema(name, "", {"type": "object"})

    def test_two_tools_of_one_name_are_refused(self) -> None:
        with pytest.raises(RequestRefused, match="two tools are called `forecast`"):
            ToolSet([forecast, forecast])

    def test_a_schema_that_is_none_is_refused(self) -> None:
        with pytest.raises(RequestRefused, match="tool `t`"):
            Tool.from_schema("t", "", {"type": "nonsense"})

    @pytest.mark.parametrize(
        "text",
        [
            "Do it.\n\nArgs:\n    a: first\n    b: second",
            "Do it.\n\n:param a: first\n:param int b: second\n:returns: x",
            "Do it.\n\nParameters\n----------\na : int\n    first\nb\n    second\n\nReturns\n-------\nint",
        ],
        ids=["google", "sphinx", "numpy"],
    )
    def test_docstrings_of_every_style(self, text: str) -> None:
        assert read_docstring(text) == ("Do it.", {"a": "first", "b": "second"})


class TestArguments:
    def test_are_coerced_and_defaults_applied(self) -> None:
        arguments = {"place": {"city": "Oslo"}, "window": {"first": "2026-01-02"}, "limit": "4", "tags": ["a"]}
        assert run(forecast, arguments).value == "Oslo 2026-01-02 C ['a'] 4"

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"place": {}}, "`place.city`: Field required"),
            ({"unit": "K"}, "`unit`"),
            ({"limit": 11}, "`limit`"),
            ({"more": 1}, "`more`: Extra inputs"),
        ],
        ids=["nested", "enum", "bound", "extra"],
    )
    def test_that_do_not_fit_say_where_and_why(self, change: dict[str, Any], words: str) -> None:
        arguments = {"place": {"city": "Oslo"}, "window": {"first": "2026-01-02"}, **change}
        result = run(forecast, arguments)
        assert result.status == "invalid_arguments"
        assert words in result.text

    def test_of_a_schema_tool_are_really_checked(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
        checked = Tool.from_schema("t", "", schema, lambda arguments: arguments["n"])
        assert run(checked, {"n": 2}).value == 2
        assert "`n`" in run(checked, {"n": 0}).text
        assert run(checked, {}).status == "invalid_arguments"


class TestHandlers:
    def test_plain_functions_run_in_a_thread_with_the_callers_context(self) -> None:
        variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
        seen: list[Any] = []

        @tool
        def look() -> str:
            """Look."""
            seen.append(threading.current_thread() is threading.main_thread())
            return variable.get()

        async def main() -> ToolResult:
            variable.set("mine")
            return await ToolSet([look]).execute(ToolCall("c", "look", {}))

        assert asyncio.run(main()).value == "mine"
        assert seen == [False]

    def test_a_plain_function_does_not_block_the_loop(self) -> None:
        released = threading.Event()

        @tool
        def wait() -> str:
            """Wait."""
            return "in time" if released.wait(PATIENCE) else "too late"

        async def main() -> ToolResult:
            task = asyncio.create_task(ToolSet([wait]).execute(ToolCall("c", "wait", {})))
            await asyncio.sleep(0)
            released.set()
            return await task

        assert asyncio.run(main()).value == "in time"

    def test_a_thread_that_never_ends_is_left_behind_and_the_program_ends(self) -> None:
        let_go = threading.Event()
        noticed = threading.Event()

        @tool(timeout=0.05)
        def hang(ctx: ToolContext[None]) -> None:
            """Hang."""
            if ctx.cancelled.wait(PATIENCE):
                noticed.set()
            let_go.wait()

        result = run(hang, {}, environment=Environment(rules=Rules(grace=0.05)))
        assert not let_go.is_set()
        assert result.status == "timeout"
        assert "may still be at work" in result.text
        assert noticed.wait(PATIENCE)
        let_go.set()

    def test_cleaning_up_after_a_timeout_is_bounded(self) -> None:
        cleaned: list[str] = []

        @tool(timeout=0.02)
        async def stubborn(for_ever: bool) -> None:
            """Take its time to stop."""
            try:
                await asyncio.Event().wait()
            finally:
                await (asyncio.Event().wait() if for_ever else asyncio.sleep(0.01))
                cleaned.append("done")

        patient, short = Environment(rules=Rules(grace=PATIENCE)), Environment(rules=Rules(grace=0.2))
        assert "may still" not in run(stubborn, {"for_ever": False}, environment=patient).text
        assert cleaned == ["done"]
        assert "may still be at work" in run(stubborn, {"for_ever": True}, environment=short).text
        assert cleaned == ["done"]

    def test_tool_failed_chooses_the_words(self) -> None:
        @tool
        def refuse() -> None:
            """Refuse."""
            raise ToolFailed("Ask for the ticket number first.")

        result = run(refuse, {})
        assert (result.status, result.text) == ("error", "Ask for the ticket number first.")

    @pytest.mark.parametrize(
        ("on_error", "words"),
        [
            ("detail", "`fail` failed: ValueError: secret"),
            ("generic", "`fail` failed"),
            (lambda error: f"[{type(error).__name__}]", "[ValueError]"),
        ],
        ids=["detail", "generic", "function"],
    )
    def test_what_the_model_reads_of_an_exception_can_be_chosen(self, on_error: Any, words: str) -> None:
        @tool(on_error=on_error)
        def fail() -> None:
            """Fail."""
            raise ValueError("secret")

        result = run(fail, {})
        assert result.text == words
        assert result.error is not None
        assert isinstance(result.error.exception, ValueError)

    def test_long_errors_are_bounded_for_the_model_and_whole_for_the_program(self) -> None:
        @tool
        def fail() -> None:
            """Fail."""
            raise ValueError("x" * 10_000)

        result = run(fail, {})
        assert len(result.text) < 2_100
        assert result.error is not None
        assert len(result.error.message) > 10_000

    def test_a_box_of_tools_shares_its_state(self) -> None:
        class Counter(ToolBox):
            def __init__(self) -> None:
                self.total = 0

            @tool
            def add(self, number: int) -> int:
                """Add."""
                self.total += number
                return self.total

            @tool
            async def reset(self) -> None:
                """Reset."""
                self.total = 0

        box = Counter()
        tools = ToolSet([box])
        assert [one.name for one in tools] == ["add", "reset"]

        async def main() -> list[Any]:
            calls = [ToolCall("a", "add", {"number": 2}), ToolCall("b", "reset", {})]
            return [(await tools.execute(call)).value for call in calls]

        assert asyncio.run(main()) == [2, None]
        assert box.total == 0
        assert box.add(5) == 5


class TestResults:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("words", "words"),
            (None, "done"),
            (5, "5"),
            (True, "true"),
            ({"ü": [1, None]}, '{"ü":[1,null]}'),
            (Place(city="Oslo"), '{"city":"Oslo","country":"NO"}'),
            (Window(date(2026, 1, 2)), '{"first":"2026-01-02","last":null}'),
            ([Place(city="Oslo")], '[{"city":"Oslo","country":"NO"}]'),
        ],
        ids=["text", "none", "number", "boolean", "object", "model", "dataclass", "list"],
    )
    def test_values_as_the_model_reads_them(self, value: object, text: str) -> None:
        result = run(Tool.from_schema("t", "", {"type": "object"}, lambda arguments: value), {})
        assert (result.text, result.value) == (text, value)

    def test_a_value_that_no_model_can_read_is_an_error_not_a_crash(self) -> None:
        result = run(Tool.from_schema("t", "", {"type": "object"}, lambda arguments: object()), {})
        assert (result.status, result.error.code if result.error else "") == ("error", "result_not_serialisable")

    def test_long_results_give_way_in_the_middle(self) -> None:
        long = "a" * 500 + "b" * 500
        made = Tool.from_schema("t", "", {"type": "object"}, lambda arguments: long, max_result_chars=300)
        result = run(made, {})
        assert result.value == long
        assert "[… 700 characters left out …]" in result.text
        assert result.text.startswith("a" * 200)
        assert result.text.endswith("b" * 100)

    def test_two_sides_of_a_result(self) -> None:
        made = Tool.from_schema("t", "", {"type": "object"}, lambda arguments: ToolReturn({"rows": 9}, "nine rows"))
        result = run(made, {})
        assert (result.value, result.text) == ({"rows": 9}, "nine rows")

    def test_images_and_files_travel_as_parts(self) -> None:
        picture, paper = ImagePart.from_bytes(b"png"), DocumentPart.from_bytes("a.pdf", b"pdf")
        made = Tool.from_schema("t", "", {"type": "object"}, lambda arguments: [TextPart("See:"), picture, paper])
        result = run(made, {})
        (item,) = write_items([Message("tool", (result.part(),))])
        assert [part["type"] for part in item["output"]] == ["input_text", "input_image", "input_file"]
        assert item["output"][1]["image_url"].startswith("data:image/png;base64,")
