"""What must not leave the house is refused before anything is planned; what must not be said, before it is told.

[hooks]
uses = ["guard.py:Guard"]
"""

from __future__ import annotations

import json

from isthmus.hooks import Context, JsonObject, Refuse

PROJECTS = ("project heron", "project kestrel")


class Guard:
    holds_streams = True

    async def before_plan(self, request: JsonObject, context: Context) -> Refuse | None:
        for index, item in enumerate(request["input"]):
            for project in PROJECTS:
                if project in json.dumps(item).lower():
                    words = f"`{project}` must not be told to a model; leave it out, or ask security@example.com"
                    return Refuse(words, param=f"input[{index}]")
        return None

    async def after_reply(self, response: JsonObject, context: Context) -> Refuse | None:
        said = response["output_text"].lower()
        if any(project in said for project in PROJECTS):
            return Refuse("the answer speaks of something that must not be told")
        return None
