"""The demo model: a deterministic Chat Completions server on a loopback port, for trying things and for tests.

async with DemoServer() as demo:
    ...  # any Chat Completions client, pointed at `demo.base_url`
"""

from isthmus.demo.model import MODELS, Reply, answer
from isthmus.demo.question import Refused
from isthmus.demo.server import DemoServer

__all__ = ["MODELS", "DemoServer", "Refused", "Reply", "answer"]
