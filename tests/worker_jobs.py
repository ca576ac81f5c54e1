"""Jobs for worker processes in tests: well-behaved ones, and every way to misbehave."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

RUNNERS = {
    name: f"worker_jobs:{name}" for name in ("echo", "spin", "die", "hog", "swell", "fail", "surroundings", "hold")
}


def echo(payload: bytes) -> bytes:
    print("words between the frames")
    return payload


def spin(payload: bytes) -> bytes:
    while True:
        pass


def hold(payload: bytes) -> bytes:
    """Tell that it began, and wait until the test opens the other end."""
    begun, gate = json.loads(payload)
    with Path(begun).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return Path(gate).read_bytes()


def die(payload: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return payload


def hog(payload: bytes) -> bytes:
    return bytes(10_000_000_000)


def swell(payload: bytes) -> bytes:
    """Need more than half of what a process may have, and give it back."""
    size = len(bytearray(b"x") * int(payload))
    return str(size).encode()


def fail(payload: bytes) -> bytes:
    raise ValueError("a bug")


def surroundings(payload: bytes) -> bytes:
    files = sorted(os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_open(name))
    return json.dumps({"environment": dict(os.environ), "files": files}).encode()


def _is_open(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")
