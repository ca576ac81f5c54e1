"""A computer's mouse, keyboard and screen as a function, for models that see: `computer`, `computer_use_preview`.

In: the client's declaration, or the arguments of a call. Out: what the model is told, or the actions of a
`computer_call`. Worth knowing: the newer tool takes several actions at once, the older one a single action; the schema
of the function is flat, because that is what models write most reliably, so an action is checked here. One that does
not fit its type makes the whole call a plain `function_call`: half of what was meant must not be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.bridge.tools.shapes import closed, field
from isthmus.protocol.json import JsonObject

COMPUTERS: Final = ("computer", "computer_use_preview")
BUTTONS: Final = ("left", "right", "wheel", "back", "forward")
_PLACED: Final = ("click", "double_click", "move", "scroll")
_TYPES: Final = ("screenshot", *_PLACED, "drag", "keypress", "type", "wait")
MAX_ACTIONS: Final = 32
"""Of one call; a model that asks for more has lost itself."""
_POINT: Final = {"x": field("integer", "From the left edge."), "y": field("integer", "From the top edge.")}
_ACTION: Final = closed(
    {
        "type": field("string", "What to do; `screenshot` only looks.", enum=[*_TYPES]),
        "x": field("integer", "Pixels from the left edge; for click, double_click, move and scroll."),
        "y": field("integer", "Pixels from the top edge; likewise."),
        "button": field("string", "For click; left if it is not named.", enum=[*BUTTONS]),
        "scroll_x": field("integer", "For scroll: pixels to the right."),
        "scroll_y": field("integer", "For scroll: pixels down."),
        "path": field("array", "For drag: the points of the way.", items=closed(_POINT, "y")),
        "keys": field("array", "For keypress: the keys; else those that are held.", items={"type": "string"}),
        "text": field("string", "For type: what to type."),
    }
)


def describe_computer(kind: str, tool: Mapping[str, Any]) -> tuple[str, JsonObject]:
    wide, high, where = (tool.get(name) for name in ("display_width", "display_height", "environment"))
    size = f" It is {wide} by {high} pixels." if wide and high else ""
    place = f" ({where})" if isinstance(where, str) and where else ""
    words = str(tool.get("description") or "") or (
        f"Use the mouse, the keyboard and the screen of a computer{place}. Each call is answered with a picture of the "
        f"screen after it.{size}"
    )
    if kind == "computer":
        doing = field("array", "What to do, in this order.", items=_ACTION, minItems=1, maxItems=MAX_ACTIONS)
        return words, closed({"actions": doing})
    return words, closed({"action": {**_ACTION, "description": "What to do."}})


def read_actions(given: JsonObject) -> list[JsonObject] | None:
    """The actions of a call, each with what its type needs; `None`: one of them cannot be meant."""
    listed = given.get("actions", given.get("action", given if "type" in given else None))
    asked = listed if isinstance(listed, list) else [listed]
    actions = [_read(one) if isinstance(one, dict) else None for one in asked]
    if not actions or len(actions) > MAX_ACTIONS or any(action is None for action in actions):
        return None
    return [action for action in actions if action is not None]


def _read(given: JsonObject) -> JsonObject | None:
    kind = given.get("type")
    keys = [key for key in _listed(given.get("keys")) if isinstance(key, str)]
    held: JsonObject = {"keys": keys} if keys else {}
    match kind:
        case "screenshot" | "wait":
            return {"type": kind}
        case "type":
            text = given.get("text")
            return {"type": kind, "text": text} if isinstance(text, str) else None
        case "keypress":
            return {"type": kind, "keys": keys} if keys else None
        case "drag":
            path = [_point(point) if isinstance(point, dict) else None for point in _listed(given.get("path"))]
            return {"type": kind, "path": path, **held} if len(path) > 1 and None not in path else None
    point = _point(given)
    if kind not in _PLACED or point is None:
        return None
    if kind == "scroll":
        held |= {name: _whole(given.get(name)) or 0 for name in ("scroll_x", "scroll_y")}
    if kind == "click":
        button = given.get("button")
        held["button"] = button if isinstance(button, str) and button in BUTTONS else "left"
    return {"type": kind, **point, **held}


def _point(given: JsonObject) -> JsonObject | None:
    x, y = _whole(given.get("x")), _whole(given.get("y"))
    return None if x is None or y is None else {"x": x, "y": y}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -(2**31) < value < 2**31:
        return None
    return round(value)
