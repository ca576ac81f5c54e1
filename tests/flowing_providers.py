"""A gateway in front of one scripted upstream that plays any set of providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flowing import Flow
from isthmus.testing import ScriptedUpstream, Step
from serving import running_gateway_server


@contextmanager
def provider_flow(
    folder: Path,
    providers: Mapping[str, str],
    *,
    extra: str = "",
    routes: Mapping[str, Step] | None = None,
) -> Iterator[Flow]:
    """`providers`: name in the configuration → lines of its section; address and key are added."""
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream.running(routes=routes))
        sections = "".join(
            f"[providers.{name!r}]\nbase_url = {upstream.base_url!r}\napi_key = 'sk-upstream-secret'\n"
            f"retries = 0\n{lines}\n"
            for name, lines in providers.items()
        )
        head = f"[models]\ndemo = false\n[server]\nport = 0\n[store]\nurl = 'sqlite:{folder / 'flow.db'}'\n"
        toml = f"{head}[log]\nlevel = 'error'\n{sections}{extra}"
        gateway = stack.enter_context(running_gateway_server(toml))
        yield Flow(gateway, upstream, folder / "flow.db")
