"""Config → the tools that run here; each is loaded only where it is configured."""

from __future__ import annotations

from collections.abc import Iterable

from isthmus.bridge.types.managed import ToolLimits
from isthmus.conduct.hosted import Hosted
from isthmus.config.schema import Config
from isthmus.ports.tools import HostedTool


def open_hosted(config: Config, executors: Iterable[HostedTool] = ()) -> Hosted:
    """What a gateway or a library is handed; whoever takes it closes it. `executors` win over what is configured."""
    tools, opened = config.tools, list[HostedTool]()
    if config.mcp:
        from isthmus.wiring_mcp import open_mcp_host

        opened.append(open_mcp_host(config))
    return Hosted(
        [*opened, *executors], ToolLimits(tools.max_rounds, tools.max_parallel, tools.timeout, tools.max_result)
    )
