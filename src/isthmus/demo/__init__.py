"""The demo model: a deterministic Chat Completions server on a loopback port, for trying things and for tests.

async with DemoServer() as demo:
    ...  # any Chat Completions client, pointed at `demo.base_url`
"""

from isthmus.demo.server import DemoServer

__all__ = ["DemoServer"]
