"""An answer with a type: `run.output` is your own model, checked, and the type checker knows it."""

import asyncio

from pydantic import BaseModel, Field

from isthmus import Bridge


class Report(BaseModel):
    city: str
    degrees: int = Field(ge=-60, le=60)
    tags: list[str]


async def main() -> None:
    async with Bridge.from_env() as bridge:
        run = await bridge.run(None, "A weather report for Oslo, please.", output_type=Report)
        report = run.output
        assert isinstance(report, Report)
        print(f"{type(report).__name__}: {sorted(report.model_dump())}")


asyncio.run(main())
