"""Which tools a gateway with this configuration would run for a request; nobody is asked.

Of a request that was answered, the lists of MCP servers are those that its answer tells of.
"""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.bridge.types.managed import Managed
from isthmus.cli.explain_plan import Asked
from isthmus.config.schema import Config, draws
from isthmus.ports.tools import HostedTool
from isthmus.wiring import open_workers
from isthmus.wiring_search import search_tools
from isthmus.wiring_tools import open_hosted


def foresee(config: Config, asked: Asked) -> Managed:
    hosted = open_hosted(config, _tools(config))
    return hosted.foresee(asked.request.body.get("tools"), [*asked.history, *asked.request.items, *asked.listed])


def _tools(config: Config) -> Iterator[HostedTool]:
    if config.search.backend:
        yield from search_tools(config, open_workers(config.checks))
    if draws(config):
        from isthmus.wiring_images import foresee_image_tool

        yield foresee_image_tool(config)
