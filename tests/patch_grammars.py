"""Grammars as agents send them with their custom tools."""

from __future__ import annotations

from typing import Any

PATCH = r"""
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: add | delete | update
add: "*** Add File: " name LF added+
delete: "*** Delete File: " name LF
update: "*** Update File: " name LF move? change?
name: /(.+)/
added: "+" /(.*)/ LF -> line
move: "*** Move to: " name LF
change: (context | line)+ tail?
context: ("@@" | "@@ " /(.+)/) LF
line: ("+" | "-" | " ") /(.*)/ LF
tail: "*** End of File" LF
%import common.LF
"""


def lark(definition: str) -> dict[str, Any]:
    return {"type": "grammar", "syntax": "lark", "definition": definition}


def regex(definition: str) -> dict[str, Any]:
    return {"type": "grammar", "syntax": "regex", "definition": definition}


GOOD_PATCH = "*** Begin Patch\n*** Update File: a b.py\n@@ def f():\n x\n-y\n+\n*** Delete File: c\n*** End Patch"
