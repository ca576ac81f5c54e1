"""Proofs for `[metrics]` and `[otel]`: who may look, what is counted, what leaves for a collector."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from isthmus.observe.metrics.meters import Meters
from isthmus.observe.otel.open import OtelOptions
from isthmus.wiring import running_gateway
from settings.proving import Scene, proves

ON = {"otel.enabled": "true"}


@proves("metrics.enabled", "false")
async def nothing_is_told(scene: Scene) -> None:
    async with scene.served() as server:
        assert await server.status("GET", "/metrics") == 404


@proves("metrics.key", '"sk-watch"')
async def it_opens_the_metrics(scene: Scene) -> None:
    async with scene.served() as server:
        assert await server.status("GET", "/metrics") == 401
        assert await server.status("GET", "/metrics", Authorization="Bearer sk-watch") == 200
        assert await server.status("GET", "/v1/models") == 200


@proves("metrics.key_file", '"watch"')
async def the_key_in_it_does(scene: Scene) -> None:
    (scene.folder / "watch").write_text("sk-watch\n")
    async with scene.served() as server:
        assert await server.status("GET", "/metrics") == 401
        assert await server.status("GET", "/metrics", x_api_key="sk-watch") == 200


@proves("metrics.max_models", "7")
async def so_many_models_have_numbers_of_their_own(scene: Scene) -> None:
    async with running_gateway(scene.load(), Meters()) as gateway:
        observers: Any = gateway.observer
        assert [each._models._most for each in observers._observers if hasattr(each, "_models")] == [7]


async def _opened(scene: Scene) -> list[OtelOptions]:
    """With what the way to a collector is opened."""
    found: list[OtelOptions] = []

    class Otel:
        def __init__(self, options: OtelOptions, models: Any, vendors: Any) -> None:
            found.append(options)

        async def aclose(self) -> None:
            pass

    # Not by its name: another test of this process may have loaded it anew, and its package would have the one before.
    scene.monkeypatch.setattr(import_module("isthmus.observe.otel.open"), "Otel", Otel)
    async with scene.gateway():
        return found


@proves("otel.enabled", "true")
async def a_collector_is_told(scene: Scene) -> None:
    assert len(await _opened(scene)) == 1


@proves("otel.endpoint", '"http://127.0.0.1:1"', beside=ON)
async def it_is_told_there(scene: Scene) -> None:
    assert [each.endpoint for each in await _opened(scene)] == ["http://127.0.0.1:1"]


@proves("otel.headers", '{ x-key = "sk-1" }', beside=ON)
async def it_is_shown_these(scene: Scene) -> None:
    assert [dict(each.headers) for each in await _opened(scene)] == [{"x-key": "sk-1"}]


@proves("otel.service_name", '"our-gateway"', beside=ON)
async def we_are_called_so(scene: Scene) -> None:
    assert [each.service_name for each in await _opened(scene)] == ["our-gateway"]


@proves("otel.traces", "false", beside=ON)
async def no_spans_are_sent(scene: Scene) -> None:
    assert [each.traces for each in await _opened(scene)] == [False]


@proves("otel.metrics", "false", beside=ON)
async def no_metrics_are_sent(scene: Scene) -> None:
    assert [each.metrics for each in await _opened(scene)] == [False]


@proves("otel.sample", "0.25", beside=ON)
async def a_quarter_of_the_requests_has_spans(scene: Scene) -> None:
    assert [each.sample for each in await _opened(scene)] == [0.25]


@proves("otel.interval", "7", beside=ON)
async def metrics_are_sent_so_often(scene: Scene) -> None:
    assert [each.interval for each in await _opened(scene)] == [7.0]


@proves("otel.max_queued", "7", beside=ON)
async def so_many_spans_may_wait(scene: Scene) -> None:
    assert [each.max_queued for each in await _opened(scene)] == [7]


@proves("otel.pass_on", '["main"]', beside=ON)
async def this_provider_hears_of_the_trace(scene: Scene) -> None:
    assert [each.pass_on for each in await _opened(scene)] == [frozenset({"main"})]
