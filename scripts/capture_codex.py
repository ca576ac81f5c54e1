"""A real run of Codex on the demo model, as a picture: `python scripts/capture_codex.py docs/images/codex-demo.svg`.

It runs in a pseudo-terminal, so that the picture shows what a person would see, colours included.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMANDS = (
    'isthmus codex run -- exec -s workspace-write "create hello.txt with hello world"',
    "cat hello.txt",
)
QUIET = ("analytics.enabled", "feedback.enabled", "features.plugins", "features.apps", "features.remote_plugin")
NOISE = re.compile(r"warning: Codex could not find bubblewrap|WARNING: proceeding|Reading additional input")
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDTH = 104


def main(target: Path) -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    # Codex warns about a home inside the system's temporary folder.
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="isthmus-capture-") as folder:
        work = Path(folder) / "project"
        work.mkdir()
        subprocess.run(["git", "init", "-q", str(work)], check=True)
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            for line in _shown(_run(command, work, Path(folder)), folder):
                console.print(Text.from_ansi(line))
    target.write_text(console.export_svg(title="Codex on the demo model", unique_id="codex", clear=False))
    print(console.export_text())


def _run(command: str, work: Path, home: Path) -> str:
    """Its output on a terminal of its own."""
    real = command
    if command.startswith("isthmus"):
        flags = " ".join(f"-c {key}=false" for key in (*QUIET, "features.plugin_sharing"))
        real = f"{Path(sys.executable).parent}/{command}".replace(" -- exec", f" -- {flags} exec")
    own = {"HOME": str(home), "CODEX_HOME": str(home / "codex"), "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    (home / "codex").mkdir(exist_ok=True)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        real, shell=True, cwd=work, env={"PATH": os.environ["PATH"], **own}, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:
        pass  # Linux ends a terminal with an error, not with silence
    os.close(ours)
    if process.wait() != 0:
        raise SystemExit(b"".join(pieces).decode())
    return b"".join(pieces).decode()


def _shown(output: str, folder: str) -> list[str]:
    lines = output.replace("\r\n", "\n").replace(folder, "~").rstrip("\n").split("\n")
    return [ID.sub("…", line) for line in lines if not NOISE.search(COLOUR.sub("", line))]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
