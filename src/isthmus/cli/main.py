"""The `isthmus` command, before any of it is loaded.

A gateway that is started in plain words has its options read here, and needs none of what reads and shows those of all
other commands (typer, rich and pydantic take as long to load as a fifth of its start). All the rest is for `commands`.
"""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows `?` in its place
    words = sys.argv[1:]
    completing = any(name.startswith("_ISTHMUS") for name in os.environ)  # a shell asks what could be typed
    if completing or (words and words[0] != "serve") or not _serve(words[1:]):
        from isthmus.cli.commands import app

        app()


def _serve(words: list[str]) -> bool:
    """Until it ends. False: it takes more to read these words."""
    gc.disable()  # what is loaded now stays; `search_seldom` lets it look for garbage when all of it is there
    from isthmus.cli.plain_options import read_plainly
    from isthmus.cli.serve_command import OPTIONS, serve
    from isthmus.errors import IsthmusError

    options = read_plainly(OPTIONS, words)
    if options is None:
        gc.enable()
        return False
    try:
        serve(**options)
    except IsthmusError as error:
        from isthmus.cli.terminal import say_failure

        say_failure(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    return True
