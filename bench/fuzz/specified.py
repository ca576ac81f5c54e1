"""`python -m bench.fuzz.specified --schemathesis PATH [--examples 20] [--seed N]`: our OpenAPI document, tried by
schemathesis, with keys on.

Three times: with a narrow key, a plain one and an operator's. Whatever it makes of the document, nothing of ours fails
(5xx); what it sends with a key it also sends without, and with a wrong one (`ignored_auth`), and neither is let in.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.fuzz.keyed import running_town

WHO: Final = ("narrow", "config", "operator")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz.specified", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--schemathesis", type=Path, required=True, help="the program")
    parser.add_argument("--examples", type=int, default=20, help="for each operation")
    parser.add_argument("--seed", type=int, default=None, help="not given: the time, so that every run is another one")
    parser.add_argument("--who", nargs="*", choices=WHO, default=WHO)
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    with running_town() as town:
        found = [who for who in arguments.who if run(town.house.url, town.keys[who], arguments, seed)]
    print(f"seed {seed}: {f'something was found as {found}' if found else 'nothing was found'}", flush=True)
    return 1 if found else 0


def run(url: str, key: str, arguments: argparse.Namespace, seed: int) -> int:
    """Its exit code: 0 where it found nothing."""
    command = [
        *(str(arguments.schemathesis.absolute()), "run", f"{url}/openapi.json"),
        *("--checks", "not_a_server_error,ignored_auth"),
        *("--phases", "coverage,fuzzing", "--max-examples", str(arguments.examples), "--seed", str(seed)),
        *("--request-timeout", "30", "--suppress-health-check", "all", "--continue-on-failure", "--no-color"),
    ]
    command += ["--header", f"Authorization: Bearer {key}"]
    with tempfile.TemporaryDirectory() as folder:  # it keeps what it found beside itself
        plain = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        return subprocess.run(command, cwd=folder, env=plain, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
