"""The pages for people, as tests read them: their code blocks, their links, and a way to run what they show.

A `console` block is executed: its `$ ` lines are commands, what follows each is its output. A `python` or `js` block is
executed too, and the `text` block right behind it is its output. `…` stands for whatever was left out. `sh` blocks
are only shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "http://127.0.0.1:8484"
"""Where the pages say that the gateway is."""
WIDTH = "100"
"""Columns of the terminal that the pages were copied from; the README says so, too."""

_OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
}
"""Clients that would ask the web at their start."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    language: str
    text: str
    line: int
    follows: int
    """Characters of the page between this block and the one before."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Shown:
    """Something that a page runs, and what it says that comes out."""

    block: Block
    source: str
    output: str

    def __str__(self) -> str:
        return f"{self.block}:{self.source[:40]}"


@dataclass(frozen=True, slots=True)
class Gateway:
    """The one that the pages' commands talk to."""

    address: str
    home: Path
    banner: str

    def run_command(self, command: str, folder: Path = ROOT) -> str:
        """Run a command as a page has it; gives what it prints."""
        return _run(["sh", "-c", self.here(command)], self.home, folder)

    def run_program(self, source: str, python: str | Path = sys.executable) -> str:
        """`python`: of the environment that has what it imports."""
        return _run([str(python), "-c", self.here(source)], self.home)

    def run_script(self, source: str, modules: Path) -> str:
        """A module in JavaScript; what it imports is below `modules`."""
        return _run(["node", "--input-type=module", "--eval", self.here(source)], self.home, modules)

    def here(self, text: str) -> str:
        """The text, with the address of this gateway in the place of the pages'."""
        return text.replace(ADDRESS, self.address)


@contextmanager
def running_gateway(home: Path) -> Iterator[Gateway]:
    command = ["isthmus", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(home), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines: list[str] = []
            for line in process.stderr:
                lines.append(line)
                if "sets up another" in line:
                    break
            else:
                raise RuntimeError(f"the gateway did not start:\n{''.join(lines)}")
            # Somebody must go on reading: a full pipe would stop the server.
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            # A busy machine may have said before that its loop was held up.
            start = next(index for index, line in enumerate(lines) if "is listening on" in line)
            yield Gateway(lines[start].split()[-1], home, "".join(lines[start:]))
        finally:
            process.terminate()
            process.wait(60)
        reader.join(60)


def all_pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "README.md"]


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text()
    blocks: list[Block] = []
    end = 0
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        blocks.append(Block(page, found[1], found[2], line, len(text[end : found.start()].strip())))
        end = found.end()
    return blocks


def read_commands(page: Path) -> Iterator[Shown]:
    """Every command of the page's `console` blocks, with the output shown for it."""
    for block in read_blocks(page):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, output = part.replace("\\\n", "").partition("\n")
                yield Shown(block, command, output)


def read_programs(page: Path, language: str = "python") -> Iterator[Shown]:
    """Every block of the page in that language, with the `text` block that stands right behind it."""
    blocks = read_blocks(page)
    for block, after in zip_longest(blocks, blocks[1:]):
        if block.language == language:
            told = after.text if after is not None and after.language == "text" and after.follows == 0 else ""
            yield Shown(block, block.text, told)


def check_output(shown: Shown, actual: str) -> None:
    """Fails unless the actual output is what the page shows, line by line as wide as the pages say.

    `…` stands for anything, with the blanks beside it, and for lines when it has one to itself; blanks at the ends of
    lines do not count.
    """
    pattern = re.sub(r"(?:\\ )*…(?:\\ )*", ".*?", re.escape(_trimmed(shown.output)))
    assert re.fullmatch(pattern, _trimmed(actual), re.DOTALL), (
        f"{shown}\n--- shown\n{shown.output}\n--- actual\n{actual}"
    )


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def environment(home: Path) -> dict[str, str]:
    """A new user's: no keys, no configuration, the package's commands on the path."""
    tools = home / "bin"
    tools.mkdir(exist_ok=True)
    if shutil.which("curl") is None:
        (tools / "curl").write_text(f"#!{sys.executable}\n{_CURL}")
        (tools / "curl").chmod(0o755)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], str(tools)])
    alone = {"ISTHMUS_DISCOVERY_LOCAL": "false", "NO_PROXY": "*", **_OFFLINE}
    return {"PATH": path, "HOME": str(home), "COLUMNS": WIDTH, "PYTHONUTF8": "1", **alone}


def _run(arguments: list[str], home: Path, folder: Path = ROOT) -> str:
    done = subprocess.run(arguments, cwd=folder, env=environment(home), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


_CURL = '''
"""As much of curl as the pages use, for machines without it: -s, -N, -i, -H, -d, -X."""
import argparse, http.client, sys
from urllib.parse import urlsplit

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("url")
parser.add_argument("-H", action="append", default=[])
parser.add_argument("-d")
parser.add_argument("-X")
for flag in "sNi":
    parser.add_argument("-" + flag, action="store_true")
asked = parser.parse_args()
place = urlsplit(asked.url)
connection = http.client.HTTPConnection(place.netloc)
headers = dict(line.split(": ", 1) for line in asked.H)
method = asked.X or ("POST" if asked.d else "GET")
path = place.path + ("?" + place.query if place.query else "")
connection.request(method, path, asked.d.encode() if asked.d else None, headers)
answer = connection.getresponse()
if asked.i:
    print(f"HTTP/1.1 {answer.status} {answer.reason}")
    for name, value in answer.getheaders():
        print(f"{name}: {value}")
    print()
sys.stdout.write(answer.read().decode())
'''
