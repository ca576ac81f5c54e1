"""Tools whose schema Anthropic publishes and its models know by heart, as the functions that any model can call.

In: the client's declaration. Out: a description and a schema. The client runs these tools itself, so the fields are
those that its side reads; they are listed at https://platform.claude.com/docs/en/agents-and-tools (2026-11-16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from isthmus.bridge.tools.shapes import closed, field
from isthmus.protocol.json import JsonObject

_Described = tuple[str, JsonObject]


def _bash(tool: Mapping[str, Any]) -> _Described:
    words = "Run a command in a bash session that stays open between calls, and get its output."
    restart = field("boolean", "Restart the session instead of running a command.")
    return words, _open({"command": field("string", "The command to run."), "restart": restart})


def _text_editor(tool: Mapping[str, Any]) -> _Described:
    most = tool.get("max_characters")
    short = f" At most {most} characters of a file are shown." if isinstance(most, int) else ""
    commands = ["view", "create", "str_replace", "insert"]
    return (
        "View and edit files. `view` shows a file or a folder, `create` writes a whole file, `str_replace` replaces "
        f"text that occurs exactly once, `insert` puts text behind a line.{short}",
        closed(
            {
                "command": field("string", "What to do.", enum=commands),
                "path": field("string", "The file or folder."),
                "file_text": field("string", "For `create`: the whole content of the file."),
                "old_str": field("string", "For `str_replace`: the text to replace."),
                "new_str": field("string", "For `str_replace`: the text to put in its place."),
                "insert_line": field("integer", "For `insert`: the line to insert behind; 0 is the beginning."),
                "insert_text": field("string", "For `insert`: the text to insert."),
                "view_range": field("array", "For `view`: the first and the last line.", items={"type": "integer"}),
            },
            "path",
        ),
    )


def _memory(tool: Mapping[str, Any]) -> _Described:
    commands = ["view", "create", "str_replace", "insert", "delete", "rename"]
    return (
        "Keep notes in files below `/memories` that outlive this conversation. Look there before you begin.",
        closed(
            {
                "command": field("string", "What to do.", enum=commands),
                "path": field("string", "The file or folder, below `/memories`."),
                "file_text": field("string", "For `create`: the whole content of the file."),
                "old_str": field("string", "For `str_replace`: the text to replace."),
                "new_str": field("string", "For `str_replace`: the text to put in its place."),
                "insert_line": field("integer", "For `insert`: the line to insert behind; 0 is the beginning."),
                "insert_text": field("string", "For `insert`: the text to insert."),
                "old_path": field("string", "For `rename`: the present name."),
                "new_path": field("string", "For `rename`: the new name."),
                "view_range": field("array", "For `view`: the first and the last line.", items={"type": "integer"}),
            }
        ),
    )


def _computer(tool: Mapping[str, Any]) -> _Described:
    width, height = tool.get("display_width_px"), tool.get("display_height_px")
    size = f" The screen has {width} by {height} pixels." if width and height else ""
    actions = [
        *("screenshot", "key", "type", "mouse_move", "left_click", "right_click", "middle_click", "double_click"),
        *("triple_click", "left_click_drag", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait"),
        *("cursor_position", "zoom"),
    ]
    point = {"items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    return (
        f"Use the mouse, the keyboard and the screen of a computer; `screenshot` shows what is there.{size}",
        closed(
            {
                "action": field("string", "What to do.", enum=actions),
                "coordinate": field("array", "The place, as x and y.", **point),
                "start_coordinate": field("array", "For `left_click_drag`: where it begins, as x and y.", **point),
                "text": field("string", "For `type` the text, for `key` and `hold_key` the keys, such as `ctrl+s`."),
                "scroll_direction": field("string", "For `scroll`.", enum=["up", "down", "left", "right"]),
                "scroll_amount": field("integer", "For `scroll`: how many clicks of the wheel."),
                "duration": field("number", "For `hold_key` and `wait`: the seconds."),
                "region": field("array", "For `zoom`: x and y of two corners.", items={"type": "integer"}),
            }
        ),
    )


def _open(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "additionalProperties": False}


PUBLISHED: Final[Mapping[str, Callable[[Mapping[str, Any]], _Described]]] = {
    "bash": _bash,
    "text_editor": _text_editor,
    "memory": _memory,
    "computer": _computer,
}
